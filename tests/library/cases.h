/* Common part of the test programs: assertions that print their line, and cases that are run by name. */

#ifndef CASES_H
#define CASES_H

#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "mx_extensions.h"
#include "mx_internals/mx__driver_interface.h"
#include "myriexpress.h"

#define ALL MX_MATCH_MASK_NONE

static int failures;

#define EXPECT(condition)                                                           \
    do {                                                                            \
        if (!(condition)) {                                                         \
            failures++;                                                             \
            printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);          \
        }                                                                           \
    } while (0)

#define EQUAL(value, wanted)                                                                                   \
    do {                                                                                                       \
        long long got_ = (long long)(value), wanted_ = (long long)(wanted);                                    \
        if (got_ != wanted_) {                                                                                 \
            failures++;                                                                                        \
            printf("%s:%d: %s is %lld, not %lld\n", __FILE__, __LINE__, #value, got_, wanted_);                \
        }                                                                                                      \
    } while (0)

/* A call without which the case cannot continue. */
#define MUST(call)                                                                                             \
    do {                                                                                                       \
        mx_return_t code_ = (call);                                                                            \
        if (code_ != MX_SUCCESS) {                                                                             \
            printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, mx_strerror(code_));                          \
            exit(1);                                                                                           \
        }                                                                                                      \
    } while (0)

__attribute__((unused)) static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Wait for a request, and return its status code. If it does not end in 20 s, end the case: its memory is still in use, so
 * that later checks of it would look like wrong data. */
__attribute__((unused)) static int finish(mx_endpoint_t endpoint, mx_request_t *request, mx_status_t *status)
{
    mx_status_t unused;
    uint32_t result = 0;
    MUST(mx_wait(endpoint, request, 20000, status ? status : &unused, &result));
    if (!result) {
        printf("%s:%d: a request has not ended within 20 s\n", __FILE__, __LINE__);
        exit(1);
    }
    EXPECT(*request == NULL);
    return (int)(status ? status : &unused)->code;
}

__attribute__((unused)) static mx_request_t post(mx_endpoint_t endpoint, void *memory, uint32_t length, uint64_t info,
                                                 uint64_t mask)
{
    mx_segment_t segment = {memory, length};
    mx_request_t request = NULL;
    MUST(mx_irecv(endpoint, &segment, 1, info, mask, memory, &request));
    return request;
}

__attribute__((unused)) static mx_request_t send_to(mx_endpoint_t endpoint, mx_endpoint_addr_t to, const void *memory,
                                                    uint32_t length, uint64_t info)
{
    mx_segment_t segment = {(void *)memory, length};
    mx_request_t request = NULL;
    MUST(mx_isend(endpoint, &segment, 1, to, info, NULL, &request));
    return request;
}

__attribute__((unused)) static uint64_t own_nic(void)
{
    uint64_t nic_id = 0;
    MUST(mx_board_number_to_nic_id(0, &nic_id));
    return nic_id;
}

#endif
