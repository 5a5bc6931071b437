/* A program that sleeps in poll on the descriptor of its endpoint, while a thread sends messages to the endpoint at
 * irregular times: with a posted receive, without one, and with none but mx_wakeup. */

#include <myriexpress.h>
#include <mx_extensions.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>

#include "require.h"

enum { TURNS = 2000, LOST_MS = 20000 };
static mx_endpoint_t endpoint;
static mx_endpoint_addr_t own;
static int descriptor;

static uint64_t taken;

/* Each message waits for the one before: a later one would end the sleep that a lost wake-up leaves. */
static void *send_all(void *unused)
{
    for (uint64_t number = 0; number < 2 * TURNS; number++) {
        while (__atomic_load_n(&taken, __ATOMIC_ACQUIRE) != number)
            sched_yield();
        pause_shortly();
        mx_segment_t segment = {&number, sizeof number};
        mx_request_t request;
        REQUIRE(mx_isend(endpoint, &segment, 1, own, number, NULL, &request) == MX_SUCCESS);
        REQUIRE(mx_forget(endpoint, &request) == MX_SUCCESS);
    }
    return unused;
}

static void *wake(void *unused)
{
    usleep(20000);
    mx_wakeup(endpoint);
    return unused;
}

static void sleep_until(void)
{
    uint32_t idle;
    struct pollfd readable = {descriptor, POLLIN, 0};
    REQUIRE(mx__arm(endpoint, &idle) == MX_SUCCESS);
    REQUIRE(!idle || poll(&readable, 1, LOST_MS) == 1);
}

int main(void)
{
    pthread_t thread;
    mx_status_t status;
    mx_request_t request;
    uint32_t found = 0, idle = 0;
    struct pollfd readable = {.events = POLLIN};
    REQUIRE(mx_init() == MX_SUCCESS && mx_open_endpoint(0, 1, 0x77, NULL, 0, &endpoint) == MX_SUCCESS);
    REQUIRE(mx_get_endpoint_addr(endpoint, &own) == MX_SUCCESS);
    mx_set_error_handler(MX_ERRORS_RETURN);
    REQUIRE(mx__arm(endpoint, &idle) != MX_SUCCESS);
    REQUIRE(mx__descriptor(endpoint, &descriptor) == MX_SUCCESS && mx__descriptor(endpoint, &readable.fd) == MX_SUCCESS);
    REQUIRE(descriptor == readable.fd && poll(&readable, 1, 0) == 1);
    while (!idle)
        REQUIRE(mx__arm(endpoint, &idle) == MX_SUCCESS);
    /* The timer of a program without a progression thread ends its sleep now and then. */
    REQUIRE(getenv("MX_MONOTHREAD") || !poll(&readable, 1, 20));
    REQUIRE(!pthread_create(&thread, NULL, wake, NULL));
    REQUIRE(poll(&readable, 1, LOST_MS) == 1);
    pthread_join(thread, NULL);
    REQUIRE(!pthread_create(&thread, NULL, send_all, NULL));
    for (uint64_t number = 0, data; number < 2 * TURNS; number++) {
        mx_segment_t segment = {&data, sizeof data};
        if (number & 1)
            for (found = 0; !found;) {
                REQUIRE(mx_iprobe(endpoint, number, MX_MATCH_MASK_NONE, &status, &found) == MX_SUCCESS);
                if (!found)
                    sleep_until();
            }
        REQUIRE(mx_irecv(endpoint, &segment, 1, number, MX_MATCH_MASK_NONE, NULL, &request) == MX_SUCCESS);
        while (mx_test(endpoint, &request, &status, &found) == MX_SUCCESS && !found)
            sleep_until();
        REQUIRE(data == number);
        __atomic_store_n(&taken, number + 1, __ATOMIC_RELEASE);
    }
    pthread_join(thread, NULL);
    REQUIRE(mx_close_endpoint(endpoint) == MX_SUCCESS && poll(&readable, 1, 0) == 1 && readable.revents & POLLNVAL);
    REQUIRE(mx_finalize() == MX_SUCCESS);
    puts("done");
    return 0;
}
