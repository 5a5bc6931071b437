/* Wait objects: descriptors of completion queues, counters and event queues (FI_WAIT_FD), wait sets and poll sets.
 *
 * Theory of operation
 * -------------------
 * A wait object is an epoll set of the descriptors that MX gives for the endpoints, and an event descriptor. It belongs to
 * one queue, or to a wait set, whose members share it.
 *
 * What MX does makes its descriptors readable; but the handler, another thread of the program and the thread of
 * progress.c also complete operations. Whatever they enter into a queue therefore sets the event, once per sleep. All of
 * this happens with the lock held, and fi_trywait lets a program sleep only if, with the lock held, it has first made the
 * event and the endpoints ready to wake it (mx__arm), and then found the queue empty: no wake-up is lost. While an
 * operation waits for a partner, a timer ends the sleep, too, since only polls probe partners (probes.c). */

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "provider.h"

#pragma weak mx__descriptor
#pragma weak mx__arm

struct members {
    struct fid **list;
    size_t count;
};

struct wait_set {
    struct fid_wait fid;
    struct mxf_wait wait;
    struct members members;
};

struct poll_set {
    struct fid_poll fid;
    struct mxf_domain *domain;
    struct members members;
};

static int add_member(struct members *members, struct fid *fid)
{
    struct fid **more = realloc(members->list, (members->count + 1) * sizeof *more);
    if (!more)
        return -FI_ENOMEM;
    more[members->count++] = fid;
    members->list = more;
    return 0;
}

static int remove_member(struct members *members, const struct fid *fid)
{
    for (size_t place = 0; place < members->count; place++)
        if (members->list[place] == fid) {
            members->list[place] = members->list[--members->count];
            return 0;
        }
    return -FI_EINVAL;
}

/* Wait objects. */

static int watch(const struct mxf_wait *wait, int descriptor)
{
    struct epoll_event readable = {.events = EPOLLIN};
    return epoll_ctl(wait->descriptor, EPOLL_CTL_ADD, descriptor, &readable);
}

static void close_wait(struct mxf_wait *wait)
{
    if (wait->descriptor >= 0)
        close(wait->descriptor);
    if (wait->event >= 0)
        close(wait->event);
    if (wait->timer >= 0)
        close(wait->timer);
}

static int open_wait(struct mxf_wait *wait)
{
    wait->descriptor = epoll_create1(EPOLL_CLOEXEC);
    wait->event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    wait->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    wait->armed = 1;
    if (wait->descriptor >= 0 && wait->event >= 0 && wait->timer >= 0 && !watch(wait, wait->event) &&
        !watch(wait, wait->timer))
        return 0;
    close_wait(wait);
    return -FI_EMFILE;
}

int mxf_wait_open(struct mxf_wait **wait, enum fi_wait_obj kind, struct fid_wait *set, struct fid *fid)
{
    *wait = NULL;
    if (kind == FI_WAIT_NONE || kind == FI_WAIT_UNSPEC || kind == FI_WAIT_YIELD)
        return 0;
    if ((kind != FI_WAIT_FD && kind != FI_WAIT_SET) || !mx__descriptor || !mx__arm)
        return -FI_ENOSYS;
    if (kind == FI_WAIT_SET) {
        if (!set)
            return -FI_EINVAL;
        *wait = &OWNER(set, wait_set, fid)->wait;
        return add_member(&OWNER(set, wait_set, fid)->members, fid);
    }
    struct mxf_wait *own = calloc(1, sizeof *own);
    int error = own ? open_wait(own) : -FI_ENOMEM;
    if (error)
        free(own);
    else
        *wait = own;
    return error;
}

void mxf_wait_close(struct mxf_wait *wait, struct fid *fid)
{
    if (!wait)
        return;
    if (wait->set) {
        remove_member(&OWNER(wait, wait_set, wait)->members, fid);
        return;
    }
    close_wait(wait);
    free(wait);
}

int mxf_wait_add(struct mxf_wait *wait, struct mxf_endpoint *endpoint)
{
    int descriptor;
    if (!wait)
        return 0;
    mx_return_t code = mx__descriptor(endpoint->mx, &descriptor);
    /* The queues of an endpoint may be in one wait set. MX closes the descriptor with the endpoint. */
    return code != MX_SUCCESS || (watch(wait, descriptor) && errno != EEXIST) ? -FI_EMFILE : 0;
}

void mxf_wait_signal(struct mxf_wait *wait)
{
    uint64_t one = 1;
    if (!wait || !wait->armed)
        return;
    wait->armed = 0;
    if (write(wait->event, &one, sizeof one) < 0) {
        /* It is full, so it is readable. */
    }
}

int mxf_wait_control(struct mxf_wait *wait, int command, void *argument)
{
    if (command == FI_GETWAITOBJ)
        *(enum fi_wait_obj *)argument = wait ? FI_WAIT_FD : FI_WAIT_NONE;
    else if (command == FI_GETWAIT && wait)
        *(int *)argument = wait->descriptor;
    else
        return command == FI_GETWAIT ? -FI_ENODATA : -FI_ENOSYS;
    return 0;
}

static void arm_wait(struct mxf_wait *wait)
{
    uint64_t count;
    if (read(wait->event, &count, sizeof count) < 0) {
        /* It was not set. */
    }
    wait->armed = 1;
}

/* Let the timer end the sleep if that is wanted; others may share it. */
static void set_timer(struct mxf_wait *wait, int wanted)
{
    static const struct itimerspec after = {.it_value.tv_sec = PROBE_MS / 1000};
    uint64_t expired;
    if (wait->timed && read(wait->timer, &expired, sizeof expired) > 0)
        wait->timed = 0;
    if (wanted && !wait->timed)
        wait->timed = !timerfd_settime(wait->timer, 0, &after, NULL);
}

/* Return 0 if a program may sleep until the descriptor of a queue is readable; with the lock held. */
static int try_wait(struct fid *fid)
{
    struct mxf_endpoints *endpoints = mxf_endpoints_of(fid);
    uint32_t idle = 1;
    int waits = 0;
    if (!endpoints && fid->fclass == FI_CLASS_EQ) {
        if (mxf_eq_wait(fid))
            arm_wait(mxf_eq_wait(fid));
        return mxf_ready(fid) ? -FI_EAGAIN : 0;
    }
    if (!endpoints)
        return -FI_EINVAL;
    if (!endpoints->wait)
        return -FI_EINVAL;
    arm_wait(endpoints->wait);
    for (size_t place = 0; place < endpoints->count && idle; place++) {
        struct mxf_endpoint *endpoint = endpoints->list[place];
        mxf_progress(endpoint);
        if (endpoint->enabled && mx__arm(endpoint->mx, &idle) != MX_SUCCESS)
            idle = 0;
        waits |= mxf_waits(endpoint);
    }
    set_timer(endpoints->wait, waits);
    return !idle || mxf_ready(fid) ? -FI_EAGAIN : 0;
}

static int try_all(const struct members *members)
{
    int error = 0;
    for (size_t place = 0; place < members->count && !error; place++)
        error = try_wait(members->list[place]);
    return error;
}

int mxf_trywait(struct fid_fabric *fabric, struct fid **fids, int count)
{
    int error = 0;
    (void)fabric;
    mxf_enter();
    for (int place = 0; place < count && !error; place++)
        error = fids[place]->fclass == FI_CLASS_WAIT ? try_all(&OWNER(fids[place], wait_set, fid.fid)->members)
                                                      : try_wait(fids[place]);
    mxf_leave();
    return error;
}

/* Wait sets. */

static int any_ready(const struct members *members)
{
    for (size_t place = 0; place < members->count; place++)
        if (mxf_ready(members->list[place]))
            return 1;
    return 0;
}

static int wait_(struct fid_wait *fid, int timeout)
{
    struct wait_set *set = OWNER(fid, wait_set, fid);
    uint64_t deadline = mxf_deadline(timeout);
    struct pollfd readable = {set->wait.descriptor, POLLIN, 0};
    for (;;) {
        mxf_enter();
        int error = try_all(&set->members), ready = any_ready(&set->members);
        mxf_leave();
        uint64_t now = mxf_now();
        if (ready || (error && error != -FI_EAGAIN))
            return ready ? 0 : error;
        if (now >= deadline)
            return -FI_ETIMEDOUT;
        if (!error)
            poll(&readable, 1, deadline == UINT64_MAX || deadline - now > INT32_MAX ? -1 : (int)(deadline - now));
    }
}

static int close_wait_set(struct fid *fid)
{
    struct wait_set *set = OWNER(fid, wait_set, fid.fid);
    mxf_enter();
    int busy = set->members.count != 0;
    mxf_leave();
    if (busy)
        return -FI_EBUSY;
    close_wait(&set->wait);
    free(set->members.list);
    free(set);
    return 0;
}

static int control_wait_set(struct fid *fid, int command, void *argument)
{
    return mxf_wait_control(&OWNER(fid, wait_set, fid.fid)->wait, command, argument);
}

static struct fi_ops wait_fid_ops = {sizeof wait_fid_ops, close_wait_set, UNSUPPORTED, control_wait_set,
                                     UNSUPPORTED,         UNSUPPORTED,    UNSUPPORTED};
static struct fi_ops_wait wait_ops = {sizeof wait_ops, wait_};

int mxf_wait_set_open(struct fid_fabric *fabric, struct fi_wait_attr *attr, struct fid_wait **result)
{
    (void)fabric;
    if ((attr && attr->wait_obj != FI_WAIT_UNSPEC && attr->wait_obj != FI_WAIT_FD) || !mx__descriptor || !mx__arm)
        return -FI_ENOSYS;
    struct wait_set *set = calloc(1, sizeof *set);
    int error = set ? open_wait(&set->wait) : -FI_ENOMEM;
    if (error) {
        free(set);
        return error;
    }
    set->wait.set = 1;
    set->fid.fid = (struct fid){FI_CLASS_WAIT, NULL, &wait_fid_ops};
    set->fid.ops = &wait_ops;
    *result = &set->fid;
    return 0;
}

/* Poll sets. */

static int poll_(struct fid_poll *fid, void **contexts, int count)
{
    struct members *members = &OWNER(fid, poll_set, fid)->members;
    int found = 0;
    mxf_enter();
    for (size_t place = 0; place < members->count && found < count; place++) {
        struct mxf_endpoints *endpoints = mxf_endpoints_of(members->list[place]);
        for (size_t each = 0; each < endpoints->count; each++)
            mxf_progress(endpoints->list[each]);
        if (mxf_ready(members->list[place]))
            contexts[found++] = members->list[place]->context;
    }
    mxf_leave();
    return found;
}

static int poll_add(struct fid_poll *fid, struct fid *other, uint64_t flags)
{
    (void)flags;
    mxf_enter();
    int result = mxf_endpoints_of(other) ? add_member(&OWNER(fid, poll_set, fid)->members, other) : -FI_EINVAL;
    mxf_leave();
    return result;
}

static int poll_del(struct fid_poll *fid, struct fid *other, uint64_t flags)
{
    (void)flags;
    mxf_enter();
    int result = remove_member(&OWNER(fid, poll_set, fid)->members, other);
    mxf_leave();
    return result;
}

static int close_poll_set(struct fid *fid)
{
    struct poll_set *set = OWNER(fid, poll_set, fid.fid);
    mxf_enter();
    set->domain->users--;
    mxf_leave();
    free(set->members.list);
    free(set);
    return 0;
}

static struct fi_ops poll_fid_ops = {sizeof poll_fid_ops, close_poll_set, UNSUPPORTED, UNSUPPORTED,
                                     UNSUPPORTED,         UNSUPPORTED,    UNSUPPORTED};
static struct fi_ops_poll poll_ops = {sizeof poll_ops, poll_, poll_add, poll_del};

int mxf_poll_set_open(struct fid_domain *domain, struct fi_poll_attr *attr, struct fid_poll **result)
{
    struct poll_set *set = calloc(1, sizeof *set);
    (void)attr;
    if (!set)
        return -FI_ENOMEM;
    set->domain = OWNER(domain, mxf_domain, fid);
    set->fid.fid = (struct fid){FI_CLASS_POLL, NULL, &poll_fid_ops};
    set->fid.ops = &poll_ops;
    mxf_enter();
    set->domain->users++;
    mxf_leave();
    *result = &set->fid;
    return 0;
}
