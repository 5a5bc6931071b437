/* A descriptor per endpoint, for programs that sleep in poll or epoll with other descriptors.
 *
 * Theory of operation
 * -------------------
 * It is an epoll set of the descriptors of the links, a timer, and an event descriptor of the endpoint. Frames make it
 * readable by themselves, so that the program processes them without another thread. What other threads do, such as the
 * progression thread, would be lost: each completed request, each mx_wakeup, and each unexpected message that no handler
 * takes therefore sets the event, once per sleep. The timer is set if no progression thread runs the engine's timers.
 *
 * A program that checks and then sleeps would miss what happens in between. mx__arm closes the gap: it first makes the
 * event ready to be set, and then checks. */

#define _GNU_SOURCE
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "internal.h"

/* Longest sleep, as in progress.c: another thread may have set an earlier timer in the engine. */
#define LONGEST_NS 100000000

int mxw_armed;

/* End the sleep of a program; with the lock held. */
void mxw_notify_locked(struct mxw_endpoint *endpoint)
{
    if (!endpoint->armed)
        return;
    endpoint->armed = 0;
    mxw_armed--;
    mxw_signal_event(endpoint->event);
}

static int has_unexpected(const struct mxw_endpoint *endpoint)
{
    const volatile uint64_t *count = &mxw_shared.unexpected[endpoint->place];
    return !endpoint->unexpected && *count;
}

/* Notify programs whose endpoints have unexpected messages; with the lock held. */
void mxw_notify_unexpected_locked(void)
{
    for (struct mxw_endpoint *each = NULL; mxw_armed && (each = mxw_next_endpoint(each));)
        if (has_unexpected(each))
            mxw_notify_locked(each);
}

/* With the lock held. */
void mxw_close_descriptor(struct mxw_endpoint *endpoint)
{
    if (endpoint->armed)
        mxw_armed--;
    if (endpoint->descriptor) {
        close(endpoint->descriptor);
        close(endpoint->event);
        close(endpoint->timer);
    }
    endpoint->descriptor = endpoint->armed = 0;
}

static int watch(int set, int descriptor)
{
    struct epoll_event readable = {.events = EPOLLIN};
    return epoll_ctl(set, EPOLL_CTL_ADD, descriptor, &readable);
}

/* Standard streams are open, so that 0 is no descriptor of an endpoint. */
static int open_descriptor(struct mxw_endpoint *endpoint)
{
    endpoint->event = eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC);
    endpoint->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    endpoint->descriptor = epoll_create1(EPOLL_CLOEXEC);
    int failed = endpoint->event < 0 || endpoint->timer < 0 || endpoint->descriptor < 0 ||
                 watch(endpoint->descriptor, endpoint->event) || watch(endpoint->descriptor, endpoint->timer);
    for (uint64_t place = 0; place < mxw_shared.descriptors && !failed; place++)
        failed = watch(endpoint->descriptor, (int)mxw_shared.descriptor[place]);
    if (failed)
        mxw_close_descriptor(endpoint);
    return !failed;
}

EXPORTED mx_return_t mx__descriptor(mx_endpoint_t handle, int *descriptor)
{
    struct mxw_endpoint *endpoint = mxw_endpoint(handle);
    if (!endpoint)
        return mxw_fail_handle("mx__descriptor");
    pthread_mutex_lock(&mxw_lock);
    int opened = endpoint->descriptor || open_descriptor(endpoint);
    *descriptor = endpoint->descriptor;
    pthread_mutex_unlock(&mxw_lock);
    return mxw_fail(endpoint, "mx__descriptor", opened ? MX_SUCCESS : MX_NO_RESOURCES);
}

static void set_timer(const struct mxw_endpoint *endpoint, int64_t due)
{
    struct itimerspec limit = {0};
    if (mxw_threadless)
        limit.it_value.tv_nsec = due < 0 || due > LONGEST_NS ? LONGEST_NS : due;
    timerfd_settime(endpoint->timer, 0, &limit, NULL);
}

EXPORTED mx_return_t mx__arm(mx_endpoint_t handle, uint32_t *idle)
{
    struct mxw_endpoint *endpoint = mxw_endpoint(handle);
    if (!endpoint)
        return mxw_fail_handle("mx__arm");
    if (!endpoint->descriptor)
        return mxw_fail(endpoint, "mx__arm", MX_BAD_BAD_BAD);
    mxw_beat();
    pthread_mutex_lock(&mxw_lock);
    mxw_clear_event(endpoint->event);
    mxw_armed += !endpoint->armed;
    endpoint->armed = 1;
    pthread_mutex_unlock(&mxw_lock);
    if (mxw_attention())
        mxw_progress();
    int64_t due = mxw_engine.pause();
    pthread_mutex_lock(&mxw_lock);
    *idle = due && !endpoint->first && !has_unexpected(endpoint) && endpoint->armed;
    if (*idle)
        set_timer(endpoint, due);
    /* The descriptors of a host that has ended are always readable. */
    for (int place = 0; mxw_shared.ended && place < MXW_LINKS + 1; place++)
        epoll_ctl(endpoint->descriptor, EPOLL_CTL_DEL, (int)mxw_shared.descriptor[place], NULL);
    pthread_mutex_unlock(&mxw_lock);
    return MX_SUCCESS;
}
