/* Waits, and the thread that continues the protocol while the program computes; see internal.h. */

#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "internal.h"

/* Longest sleep: another thread may have set an earlier timer in the engine. */
#ifndef LONGEST_MS
#define LONGEST_MS 100
#endif
/* Time without a call of the program after which the progression thread works instead of it. */
#define IDLE_MS 5
#define MILLISECOND 1000000ull
/* A wait polls for so long before it sleeps: longer than an answer of a partner that polls takes. */
#define SPIN_SECONDS 50e-6
/* Polls between two reads of the clock. */
#define POLLS 64
/* Polls of a thread that found nothing before it yields the processor: to its partner, perhaps. On 2 processors with 18
 * ready threads, half a round trip of 64 KiB takes 10 to 30 ms, and without yields 40 to 80 ms. Even if no other thread is
 * ready, a yield takes longer than several polls. Before its first yield, a thread polls PATIENT_POLLS times, for as long
 * as a partner that polls takes to answer, so that a yield delays no such answer. */
#define IDLE_POLLS 16
#define PATIENT_POLLS 1024

uint64_t mxw_beats;
int mxw_tick;
int mxw_single;
int mxw_threadless;
int mxw_watchers;
__thread int mxw_in_handler;

static pthread_cond_t changed;
static uint64_t changes;      /* counts what a waiting thread might wait for; with the lock held */
static int driving, asleep;   /* a thread waits for frames; it sleeps; with the lock held */
static int waiters;           /* threads that wait at the condition variable; with the lock held */
static int wake_driver = -1;  /* event descriptors */
static int stop_thread = -1;
static pthread_t progression;
static int progressing;
static uint64_t spin;
static int ends_by_signals;

uint64_t mxw_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

/* Notice that timers may be due, as the progression thread does when there is one. */
void mxw_check_time(void)
{
    static uint64_t next;
    uint64_t now = mxw_now();
    if (now < __atomic_load_n(&next, __ATOMIC_RELAXED))
        return;
    __atomic_store_n(&next, now + IDLE_MS * MILLISECOND, __ATOMIC_RELAXED);
    __atomic_store_n(&mxw_tick, 1, __ATOMIC_RELAXED);
}

static __thread unsigned idle_polls; /* since the last work */

void mxw_idle(void)
{
    if (++idle_polls < PATIENT_POLLS)
        return;
    idle_polls -= IDLE_POLLS;
    sched_yield();
}

void mxw_progress(void)
{
    if (mxw_in_handler)
        return;
    idle_polls = 0;
    __atomic_store_n(&mxw_tick, 0, __ATOMIC_RELAXED);
    mxw_engine.step();
    mxw_drain();
}

void mxw_signal_event(int descriptor)
{
    uint64_t one = 1;
    if (descriptor >= 0 && write(descriptor, &one, sizeof one) < 0) {
        /* It is full, so it is readable. */
    }
}

void mxw_clear_event(int descriptor)
{
    uint64_t count;
    if (read(descriptor, &count, sizeof count) < 0) {
        /* It was not set. */
    }
}

/* Notify waiting threads; with the lock held. */
void mxw_changed_locked(void)
{
    changes++;
    if (waiters)
        pthread_cond_broadcast(&changed);
    if (asleep)
        mxw_signal_event(wake_driver);
}

/* Let a waiting thread poll and sleep for frames instead of this one, which runs an unexpected handler or returns. */
void mxw_hand_over(void)
{
    if (!__atomic_load_n(&waiters, __ATOMIC_RELAXED))
        return;
    pthread_mutex_lock(&mxw_lock);
    if (!driving)
        pthread_cond_signal(&changed);
    pthread_mutex_unlock(&mxw_lock);
}

/* Sleep until a frame arrives, the engine is due, or event is signalled; at most longest ns. Return 1 after a signal. */
static int sleep_for_frames(int event, uint64_t longest)
{
    struct pollfd ready[MXW_LINKS + 2];
    nfds_t count = 0;
    ready[count].fd = event;
    ready[count++].events = POLLIN;
    for (uint64_t place = 0; place < mxw_shared.descriptors; place++) {
        ready[count].fd = (int)mxw_shared.descriptor[place];
        ready[count++].events = POLLIN;
    }
    int64_t due = mxw_engine.pause();
    if (due >= 0 && (uint64_t)due < longest)
        longest = (uint64_t)due;
    struct timespec limit = {(time_t)(longest / 1000000000ull), (long)(longest % 1000000000ull)};
    int interrupted = longest && ppoll(ready, count, &limit, NULL) < 0 && errno == EINTR;
    if (due >= 0)
        __atomic_store_n(&mxw_tick, 1, __ATOMIC_RELAXED);
    return interrupted;
}

static uint64_t longest_sleep(uint64_t deadline)
{
    uint64_t longest = LONGEST_MS * MILLISECOND, now = mxw_now();
    if (deadline && deadline < now + longest)
        longest = deadline > now ? deadline - now : 0;
    return longest;
}

/* Sleep at the condition variable; with the lock held. */
static void sleep_for_changes(uint64_t deadline)
{
    uint64_t until = mxw_now() + longest_sleep(deadline);
    struct timespec limit = {(time_t)(until / 1000000000ull), (long)(until % 1000000000ull)};
    waiters++;
    pthread_cond_timedwait(&changed, &mxw_lock, &limit);
    waiters--;
}

static int wait_for(struct mxw_endpoint *endpoint, int (*check)(struct mxw_endpoint *, void *), void *argument,
                    uint64_t deadline)
{
    uint64_t handle = endpoint->handle, sleep_from = mxw_now() + spin;
    unsigned woken = __atomic_load_n(&endpoint->woken, __ATOMIC_ACQUIRE);
    for (;;) {
        mxw_beat();
        pthread_mutex_lock(&mxw_lock);
        uint64_t seen = changes;
        pthread_mutex_unlock(&mxw_lock);
        if (mxw_attention())
            mxw_progress();
        if (endpoint->handle != handle || !mxw_alive)
            return -1;
        if (check(endpoint, argument))
            return 1;
        if (mxw_in_handler || __atomic_load_n(&endpoint->woken, __ATOMIC_ACQUIRE) != woken)
            return 0;
        uint64_t now = mxw_now();
        if (deadline && now >= deadline)
            return 0;
        if (now < sleep_from) {
            for (int polls = 0; polls < POLLS && !mxw_attention(); polls++)
                mxw_idle();
            continue;
        }
        pthread_mutex_lock(&mxw_lock);
        if (changes != seen) {
            /* Something has changed since the check. */
        } else if (driving) {
            sleep_for_changes(deadline);
        } else {
            driving = asleep = 1;
            pthread_mutex_unlock(&mxw_lock);
            int interrupted = sleep_for_frames(wake_driver, longest_sleep(deadline));
            pthread_mutex_lock(&mxw_lock);
            mxw_clear_event(wake_driver);
            driving = asleep = 0;
            /* Another thread takes over if this one finds that its wait is over. */
            if (waiters)
                pthread_cond_signal(&changed);
            if (interrupted && ends_by_signals)
                deadline = 1;
        }
        pthread_mutex_unlock(&mxw_lock);
    }
}

int mxw_wait_for(struct mxw_endpoint *endpoint, int (*check)(struct mxw_endpoint *, void *), void *argument,
                 uint64_t deadline, enum mxw_condition condition)
{
    if (condition == MXW_STATE)
        __atomic_add_fetch(&mxw_watchers, 1, __ATOMIC_SEQ_CST);
    int result = wait_for(endpoint, check, argument, deadline);
    if (condition == MXW_STATE)
        __atomic_sub_fetch(&mxw_watchers, 1, __ATOMIC_SEQ_CST);
    mxw_hand_over();
    return result;
}

static int stopped(uint64_t milliseconds)
{
    struct pollfd stop = {stop_thread, POLLIN, 0};
    return poll(&stop, 1, (int)milliseconds) > 0;
}

static void *run_progression(void *unused)
{
    (void)unused;
    for (;;) {
        uint64_t beats = __atomic_load_n(&mxw_beats, __ATOMIC_RELAXED);
        if (stopped(IDLE_MS))
            return NULL;
        if (__atomic_load_n(&driving, __ATOMIC_RELAXED))
            continue;
        if (__atomic_load_n(&mxw_beats, __ATOMIC_RELAXED) != beats) {
            /* The program makes calls: the next one also runs the timers that are due. */
            __atomic_store_n(&mxw_tick, 1, __ATOMIC_RELAXED);
            continue;
        }
        while (__atomic_load_n(&mxw_beats, __ATOMIC_RELAXED) == beats && !stopped(0)) {
            if (mxw_attention())
                mxw_progress();
            sleep_for_frames(stop_thread, LONGEST_MS * MILLISECOND);
        }
    }
}

static int is_set(const char *variable)
{
    const char *value = getenv(variable);
    return value && *value && strcmp(value, "0");
}

int mxw_monothreaded(void)
{
    return !is_set("OMX_IGNORE_MX_ENV") && is_set("MX_MONOTHREAD");
}

int mxw_start_progression(void)
{
    /* Once: threads that were waiting at mx_finalize may still use these. */
    if (wake_driver < 0) {
        mxw_reset_waits();
        wake_driver = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        stop_thread = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    }
    mxw_clear_event(stop_thread);
    mxw_single = mxw_monothreaded();
    spin = (uint64_t)(mxw_seconds("MXWIRE_SPIN", mxw_single || is_set("OMX_WAITSPIN") ? 1e6 : SPIN_SECONDS) * 1e9);
    ends_by_signals = is_set("OMX_WAITINTR");
    mxw_threadless = mxw_single || !mxw_own_python;
    if (mxw_threadless)
        return wake_driver >= 0;
    /* Signals belong to the threads of the program. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    progressing = wake_driver >= 0 && stop_thread >= 0 && !pthread_create(&progression, NULL, run_progression, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return progressing;
}

void mxw_stop_progression(void)
{
    if (progressing && !pthread_equal(pthread_self(), progression)) {
        mxw_signal_event(stop_thread);
        pthread_join(progression, NULL);
    }
    progressing = 0;
    pthread_mutex_lock(&mxw_lock);
    mxw_changed_locked();
    pthread_mutex_unlock(&mxw_lock);
}

/* Start without waits and without a thread: before the first mx_init, and in the child of a fork. */
void mxw_reset_waits(void)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    if (wake_driver >= 0)
        close(wake_driver);
    if (stop_thread >= 0)
        close(stop_thread);
    wake_driver = stop_thread = -1;
    driving = asleep = waiters = progressing = mxw_watchers = 0;
}
