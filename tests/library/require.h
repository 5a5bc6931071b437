/* REQUIRE, which prints the line of the first condition that fails, and numbers without order, for tests in C. */

#ifndef REQUIRE_H
#define REQUIRE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define REQUIRE(condition)                                                                                             \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            printf("line %d: %s\n", __LINE__, #condition);                                                             \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

/* The next number of a sequence (xorshift); the state is not 0. */
static inline uint64_t shuffle(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* An irregular pause of up to a quarter of a millisecond, or none. */
static inline void pause_shortly(void)
{
    static uint64_t state = 1;
    uint64_t number = shuffle(&state);
    if (number & 1)
        usleep(number >> 8 & 255);
}

#endif
