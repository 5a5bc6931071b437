/* The limit to measure against: two processes that exchange messages through shared memory, as mxwire's local path
   does, and nothing else. Up to 4096 bytes are copied into shared memory and out of it; longer messages are read out
   of the sender's memory (cross memory attach), or copied through shared memory where that is forbidden.

   local_limit BYTES TURNS ROUNDS FIRST_CPU SECOND_CPU: prints the microseconds per message of each round. */

#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THRESHOLD 4096
#define CHUNK 32768

struct side {
    _Alignas(64) atomic_ulong sent;
    _Alignas(64) atomic_ulong taken;
    _Alignas(64) uint64_t address;
    pid_t process;
    char data[CHUNK];
};

static size_t length;
static int forbidden;

static void put(struct side *to, const char *memory, unsigned long number)
{
    if (length > THRESHOLD && !forbidden) {
        to->address = (uint64_t)(uintptr_t)memory;
        atomic_store_explicit(&to->sent, number, memory_order_release);
        /* The memory may be reused only when the message was read. */
        while (atomic_load_explicit(&to->taken, memory_order_acquire) != number)
            ;
        return;
    }
    size_t done = 0;
    unsigned long part = atomic_load_explicit(&to->sent, memory_order_relaxed);
    do {
        size_t size = length - done < CHUNK ? length - done : CHUNK;
        while (atomic_load_explicit(&to->taken, memory_order_acquire) != part)
            ;
        memcpy(to->data, memory + done, size);
        done += size;
        atomic_store_explicit(&to->sent, ++part, memory_order_release);
    } while (done < length);
}

static void take(struct side *from, char *memory, unsigned long number)
{
    if (length > THRESHOLD && !forbidden) {
        while (atomic_load_explicit(&from->sent, memory_order_acquire) != number)
            ;
        struct iovec here = {memory, length}, there = {(void *)(uintptr_t)from->address, length};
        if (process_vm_readv(from->process, &here, 1, &there, 1, 0) != (ssize_t)length)
            exit(3);
        atomic_store_explicit(&from->taken, number, memory_order_release);
        return;
    }
    size_t done = 0;
    unsigned long part = atomic_load_explicit(&from->taken, memory_order_relaxed);
    do {
        size_t size = length - done < CHUNK ? length - done : CHUNK;
        while (atomic_load_explicit(&from->sent, memory_order_acquire) == part)
            ;
        memcpy(memory + done, from->data, size);
        done += size;
        atomic_store_explicit(&from->taken, ++part, memory_order_release);
    } while (done < length);
}

static void bind_to(int processor)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    sched_setaffinity(0, sizeof set, &set);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e6 + time.tv_nsec / 1e3;
}

int main(int count, char **arguments)
{
    if (count != 6)
        return 2;
    length = strtoul(arguments[1], NULL, 10);
    unsigned long turns = strtoul(arguments[2], NULL, 10), rounds = strtoul(arguments[3], NULL, 10);
    struct side *sides = mmap(NULL, 2 * sizeof *sides, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    char *memory = malloc(length + 1);
    memset(memory, 1, length + 1);
    sides[0].process = getpid();
    pid_t child = fork();
    if (!child) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        char probe;
        struct iovec here = {&probe, 1}, there = {memory, 1};
        /* The parent finds out by its own test, with the same result or a better one: decide once, here. */
        forbidden = process_vm_readv(sides[0].process, &here, 1, &there, 1, 0) != 1;
        sides[1].process = getpid();
        sides[0].address = (uint64_t)forbidden;
        atomic_store(&sides[1].taken, ~0UL);
        while (atomic_load(&sides[1].taken))
            ;
        bind_to(atoi(arguments[5]));
        for (unsigned long turn = 1; turn <= turns * rounds; turn++) {
            take(&sides[0], memory, turn);
            put(&sides[1], memory, turn);
        }
        return 0;
    }
    while (!atomic_load(&sides[1].taken))
        ;
    forbidden = (int)sides[0].address;
    atomic_store(&sides[1].taken, 0);
    bind_to(atoi(arguments[4]));
    for (unsigned long round = 0; round < rounds; round++) {
        double start = now();
        for (unsigned long turn = 1; turn <= turns; turn++) {
            put(&sides[0], memory, round * turns + turn);
            take(&sides[1], memory, round * turns + turn);
        }
        printf("%.4f\n", (now() - start) / turns / 2);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return status != 0;
}
