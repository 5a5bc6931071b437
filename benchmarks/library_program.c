/* The contestant of benchmarks/library.py that uses the C interface of MX.
 *
 *   library_program MEASURE COUNT LENGTH [HOST]     with HOST the active side, which prints its result
 *
 * The passive side prints a line when its endpoint is open; the active side reads it before it connects.
 *
 * MEASURE: trip (half round trip in s), large (bytes/s), rate (messages/s), test (s per mx_test with nothing new), or
 * start (s of mx_init). */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "myriexpress.h"

#define KEY 1
#define UNDER_WAY 4
#define SMALL_UNDER_WAY 32
#define LONGEST (4 << 20)

static mx_endpoint_t endpoint;
static mx_endpoint_addr_t partner;
static char memory[UNDER_WAY][LONGEST];

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
    uint64_t nic_id;
    uint32_t number;
    mx_decompose_endpoint_addr(status.source, &nic_id, &number);
    mx_connect(endpoint, nic_id, number, KEY, 10000, &partner);
}

static double trip(int active, int count, uint32_t length)
{
    double start = seconds();
    mx_request_t next = receive(memory[0], length);
    for (int number = 0; number < count; number++) {
        mx_request_t sent = NULL;
        if (active) {
            sent = send(memory[1], length);
            if (number)
                next = receive(memory[0], length);
            finish(next);
        } else {
            mx_status_t status = finish(next);
            if (!number)
                reply_to(status);
            sent = send(memory[1], length);
            if (number + 1 < count)
                next = receive(memory[0], length);
        }
        finish(sent);
    }
    return (seconds() - start) / count / 2;
}

static double large(int active, int count, uint32_t length)
{
    mx_request_t requests[UNDER_WAY];
    double start = seconds();
    for (int number = 0; number < count + UNDER_WAY; number++) {
        int place = number % UNDER_WAY;
        mx_status_t status;
        if (number >= UNDER_WAY)
            status = finish(requests[place]);
        if (number == UNDER_WAY && !active)
            reply_to(status);
        if (number < count)
            requests[place] = active ? send(memory[place], length) : receive(memory[place], length);
    }
    finish(active ? receive(memory[0], 1) : send(memory[0], 1));
    return (double)count * length / (seconds() - start);
}

static double rate(int active, int count, uint32_t length)
{
    mx_request_t requests[SMALL_UNDER_WAY];
    double start = seconds();
    for (int number = 0; number < count / SMALL_UNDER_WAY; number++) {
        mx_status_t status;
        if (active) {
            for (int place = 0; place < SMALL_UNDER_WAY; place++)
                requests[place] = send(memory[0], length);
            for (int place = 0; place < SMALL_UNDER_WAY; place++)
                finish(requests[place]);
            finish(receive(memory[0], length));
        } else {
            for (int place = 0; place < SMALL_UNDER_WAY; place++)
                requests[place] = receive(memory[0], length);
            for (int place = 0; place < SMALL_UNDER_WAY; place++)
                status = finish(requests[place]);
            if (!number)
                reply_to(status);
            finish(send(memory[0], length));
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
    return (seconds() - start) / count;
}

int main(int words, char **word)
{
    if (words < 4)
        return 2;
    int count = atoi(word[2]), active = words > 4;
    uint32_t length = (uint32_t)atoi(word[3]);
    double start = seconds(), result;
    mx_init();
    result = seconds() - start;
    mx_open_endpoint(0, active, KEY, NULL, 0, &endpoint);
    if (active) {
        uint64_t nic_id;
        while (getchar() != '\n')
            if (feof(stdin))
                return 1;
        mx_hostname_to_nic_id(word[4], &nic_id);
        mx_connect(endpoint, nic_id, 0, KEY, 10000, &partner);
    } else {
        puts("ready");
        fflush(stdout);
    }
    if (!strcmp(word[1], "trip"))
        result = trip(active, count, length);
    else if (!strcmp(word[1], "large"))
        result = large(active, count, length);
    else if (!strcmp(word[1], "rate"))
        result = rate(active, count, length);
    else if (!strcmp(word[1], "test"))
        result = test(count);
    if (active || !strcmp(word[1], "test") || !strcmp(word[1], "start"))
        printf("%.9g\n", result);
    mx_close_endpoint(endpoint);
    mx_finalize();
    return 0;
}
