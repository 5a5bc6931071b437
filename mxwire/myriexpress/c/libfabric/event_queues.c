/* Event queues. The provider has no events: address vectors and regions are made at once, and endpoints do not connect.
 * They have those that the program writes. */

#include <stdio.h>

#include "provider.h"

#define EVENTS 256

struct event {
    struct event *previous, *next;
    uint32_t kind;
    size_t length;
    char content[];
};

struct event_queue {
    struct fid_eq fid;
    struct mxf_wait *wait;
    int writable;
    pthread_cond_t written;
    size_t room, count;
    LIST(event) events;
};

struct mxf_wait *mxf_eq_wait(struct fid *fid)
{
    return OWNER(fid, event_queue, fid.fid)->wait;
}

int mxf_eq_ready(const struct fid *fid)
{
    return OWNER(fid, event_queue, fid.fid)->count != 0;
}

static ssize_t read_locked(struct event_queue *eq, uint32_t *kind, void *buffer, size_t length, uint64_t flags)
{
    struct event *event = eq->events.first;
    if (!event || event->length > length)
        return event ? -FI_ETOOSMALL : -FI_EAGAIN;
    *kind = event->kind;
    ssize_t read = (ssize_t)event->length;
    memcpy(buffer, event->content, event->length);
    if (!(flags & FI_PEEK)) {
        REMOVE(&eq->events, event);
        eq->count--;
        free(event);
    }
    return read;
}

static ssize_t eq_read(struct fid_eq *fid, uint32_t *kind, void *buffer, size_t length, uint64_t flags)
{
    mxf_enter();
    ssize_t result = read_locked(OWNER(fid, event_queue, fid), kind, buffer, length, flags);
    mxf_leave();
    return result;
}

static ssize_t eq_readerr(struct fid_eq *fid, struct fi_eq_err_entry *entry, uint64_t flags)
{
    (void)fid, (void)entry, (void)flags;
    return -FI_EAGAIN;
}

static ssize_t write_locked(struct event_queue *eq, uint32_t kind, const void *buffer, size_t length)
{
    struct event *event = eq->count < eq->room ? malloc(sizeof *event + length) : NULL;
    if (!event)
        return -FI_EAGAIN;
    event->kind = kind;
    event->length = length;
    if (length)
        memcpy(event->content, buffer, length);
    APPEND(&eq->events, event);
    eq->count++;
    mxf_wait_signal(eq->wait);
    pthread_cond_broadcast(&eq->written);
    return (ssize_t)length;
}

static ssize_t eq_write(struct fid_eq *fid, uint32_t kind, const void *buffer, size_t length, uint64_t flags)
{
    struct event_queue *eq = OWNER(fid, event_queue, fid);
    if (!eq->writable || flags)
        return -FI_EINVAL;
    mxf_enter();
    ssize_t result = write_locked(eq, kind, buffer, length);
    mxf_leave();
    return result;
}

static ssize_t eq_sread(struct fid_eq *fid, uint32_t *kind, void *buffer, size_t length, int timeout, uint64_t flags)
{
    struct event_queue *eq = OWNER(fid, event_queue, fid);
    uint64_t deadline = mxf_deadline(timeout);
    ssize_t result;
    mxf_enter();
    while ((result = read_locked(eq, kind, buffer, length, flags)) == -FI_EAGAIN && mxf_now() < deadline)
        mxf_await(&eq->written, deadline);
    mxf_leave();
    return result;
}

static const char *eq_strerror(struct fid_eq *fid, int error, const void *data, char *buffer, size_t length)
{
    (void)fid, (void)data;
    if (buffer && length)
        snprintf(buffer, length, "%s", strerror(error));
    return strerror(error);
}

static int eq_close(struct fid *fid)
{
    struct event_queue *eq = OWNER(fid, event_queue, fid.fid);
    struct event *event;
    mxf_enter();
    mxf_wait_close(eq->wait, fid);
    mxf_leave();
    while ((event = eq->events.first)) {
        REMOVE(&eq->events, event);
        free(event);
    }
    pthread_cond_destroy(&eq->written);
    free(eq);
    return 0;
}

static int eq_control(struct fid *fid, int command, void *argument)
{
    return mxf_wait_control(mxf_eq_wait(fid), command, argument);
}

static struct fi_ops eq_fid_ops = {sizeof eq_fid_ops, eq_close,    UNSUPPORTED, eq_control,
                                   UNSUPPORTED,       UNSUPPORTED, UNSUPPORTED};
static struct fi_ops_eq eq_ops = {sizeof eq_ops, eq_read, eq_readerr, eq_write, eq_sread, eq_strerror};

int mxf_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **result, void *context)
{
    (void)fabric;
    struct event_queue *eq = calloc(1, sizeof *eq);
    if (!eq)
        return -FI_ENOMEM;
    mxf_enter();
    int error = attr ? mxf_wait_open(&eq->wait, attr->wait_obj, attr->wait_set, &eq->fid.fid) : 0;
    mxf_leave();
    if (error) {
        free(eq);
        return error;
    }
    mxf_prepare_condition(&eq->written);
    eq->room = attr && attr->size ? attr->size : EVENTS;
    eq->writable = attr && attr->flags & FI_WRITE;
    eq->fid.fid = (struct fid){FI_CLASS_EQ, context, &eq_fid_ops};
    eq->fid.ops = &eq_ops;
    *result = &eq->fid;
    return 0;
}
