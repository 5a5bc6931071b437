/* The contestant of benchmarks/curve.py and mpi.py that uses the C interface of MX.
 *
 *   library_program [HOST]     with HOST the active side; start it when the passive side is ready
 *
 * Both print a line when their endpoints are open, and then a result for each line of their input, MEASURE LENGTH COUNT
 * WINDOW: trip (half round trip in s), rate (messages/s, with WINDOW messages answered by one), test (s per mx_test with
 * nothing new), or start (s of mx_init). */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "myriexpress.h"

#define KEY 1
#define MOST_UNDER_WAY 64

static mx_endpoint_t endpoint;
static mx_endpoint_addr_t partner;
static char *memory[MOST_UNDER_WAY];

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static mx_request_t send(void *data, uint32_t length)
{
    mx_segment_t segment = {data, length};
    mx_request_t request;
    mx_isend(endpoint, &segment, 1, partner, 0, NULL, &request);
    return request;
}

static mx_request_t receive(void *data, uint32_t length)
{
    mx_segment_t segment = {data, length};
    mx_request_t request;
    mx_irecv(endpoint, &segment, 1, 0, 0, NULL, &request);
    return request;
}

static mx_status_t finish(mx_request_t request)
{
    mx_status_t status;
    uint32_t done;
    do
        mx_test(endpoint, &request, &status, &done);
    while (!done);
    return status;
}

static void reply_to(mx_status_t status)
{
    static int connected;
    if (connected)
        return;
    connected = 1;
    uint64_t nic_id;
    uint32_t number;
    mx_decompose_endpoint_addr(status.source, &nic_id, &number);
    mx_connect(endpoint, nic_id, number, KEY, 10000, &partner);
}

static double trip(int active, int count, uint32_t length)
{
    double start = seconds();
    int first = -(count / 10 + 1);
    mx_request_t next = receive(memory[0], length);
    for (int number = first; number < count; number++) {
        mx_request_t sent = NULL;
        if (number == 0)
            start = seconds();
        if (active) {
            sent = send(memory[1], length);
            if (number > first)
                next = receive(memory[0], length);
            finish(next);
        } else {
            mx_status_t status = finish(next);
            if (number == first)
                reply_to(status);
            sent = send(memory[1], length);
            if (number + 1 < count)
                next = receive(memory[0], length);
        }
        finish(sent);
    }
    return (seconds() - start) / count / 2;
}

static double rate(int active, int count, uint32_t length, int window)
{
    mx_request_t requests[MOST_UNDER_WAY];
    double start = seconds();
    for (int number = 0; number < count / window; number++) {
        mx_status_t status;
        if (active) {
            for (int place = 0; place < window; place++)
                requests[place] = send(memory[place], length);
            for (int place = 0; place < window; place++)
                finish(requests[place]);
            finish(receive(NULL, 0));
        } else {
            for (int place = 0; place < window; place++)
                requests[place] = receive(memory[place], length);
            for (int place = 0; place < window; place++)
                status = finish(requests[place]);
            if (!number)
                reply_to(status);
            finish(send(NULL, 0));
        }
    }
    return count / (seconds() - start);
}

static double test(int count)
{
    mx_status_t status;
    uint32_t done;
    mx_request_t request = receive(memory[0], 1);
    double start = seconds();
    for (int number = 0; number < count; number++)
        mx_test(endpoint, &request, &status, &done);
    double taken = seconds() - start;
    mx_cancel(endpoint, &request, &done);
    return taken / count;
}

int main(int words, char **word)
{
    char measure[16];
    int count, window, active = words > 1;
    uint32_t length;
    double start = seconds(), begun, result;
    mx_init();
    begun = seconds() - start;
    mx_open_endpoint(0, active, KEY, NULL, 0, &endpoint);
    if (active) {
        uint64_t nic_id;
        mx_hostname_to_nic_id(word[1], &nic_id);
        mx_connect(endpoint, nic_id, 0, KEY, 10000, &partner);
    }
    puts("ready");
    fflush(stdout);
    while (scanf("%15s %u %d %d", measure, &length, &count, &window) == 4) {
        if (window < 1 || window > MOST_UNDER_WAY)
            return 2;
        for (int each = 0; each < window || each < 2; each++)
            memory[each] = calloc(1, length + 1);
        result = begun;
        if (!strcmp(measure, "trip"))
            result = trip(active, count, length);
        else if (!strcmp(measure, "rate"))
            result = rate(active, count, length, window);
        else if (!strcmp(measure, "test"))
            result = test(count);
        printf("%.9g\n", result);
        fflush(stdout);
        for (int each = 0; each < window || each < 2; each++)
            free(memory[each]);
    }
    mx_close_endpoint(endpoint);
    mx_finalize();
    return 0;
}
