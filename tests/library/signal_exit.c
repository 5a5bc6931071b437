/* Exits in the handler of a signal, which interrupts the engine nearly always. */

#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>

#include "myriexpress.h"

static void leave(int signal)
{
    (void)signal;
    exit(3);
}

int main(int count, char **words)
{
    mx_endpoint_t endpoint;
    mx_endpoint_addr_t own;
    static char sent[20000], received[20000];
    mx_init();
    mx_open_endpoint(0, 1, 1, NULL, 0, &endpoint);
    mx_get_endpoint_addr(endpoint, &own);
    signal(SIGALRM, leave);
    struct itimerval timer = {{0, 0}, {0, count > 1 ? atoi(words[1]) : 1000}};
    setitimer(ITIMER_REAL, &timer, NULL);
    for (uint64_t number = 0;; number++) {
        mx_segment_t from = {sent, sizeof sent}, to = {received, sizeof received};
        mx_request_t send, receive;
        mx_status_t status;
        uint32_t result;
        mx_irecv(endpoint, &to, 1, number, MX_MATCH_MASK_NONE, NULL, &receive);
        mx_isend(endpoint, &from, 1, own, number, NULL, &send);
        mx_wait(endpoint, &send, MX_INFINITE, &status, &result);
        mx_wait(endpoint, &receive, MX_INFINITE, &status, &result);
    }
}
