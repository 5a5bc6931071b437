/* Completion queues and counters.
 *
 * A queue is a ring, which grows: nothing is lost when a program reads late. Reading it makes progress on the endpoints
 * that are bound to it. Blocking reads sleep in MX (mx_peek), from which mx_wakeup ends them when another thread, or the
 * handler, completes something. */

#include <stdio.h>

#include "provider.h"

/* Longest sleep of a blocking read in ms: a wake-up just before the sleep is lost. */
#define SLEEP_MS 10

int mxf_join(struct mxf_endpoints *endpoints, struct mxf_endpoint *endpoint)
{
    for (size_t place = 0; place < endpoints->count; place++)
        if (endpoints->list[place] == endpoint)
            return 0;
    struct mxf_endpoint **more = realloc(endpoints->list, (endpoints->count + 1) * sizeof *more);
    if (!more)
        return -FI_ENOMEM;
    more[endpoints->count++] = endpoint;
    endpoints->list = more;
    return 0;
}

void mxf_part(struct mxf_endpoints *endpoints, struct mxf_endpoint *endpoint)
{
    for (size_t place = 0; place < endpoints->count; place++)
        if (endpoints->list[place] == endpoint)
            endpoints->list[place--] = endpoints->list[--endpoints->count];
}

static int open_wait(struct mxf_endpoints *endpoints, enum fi_wait_obj kind, struct fid_wait *set, struct fid *fid)
{
    mxf_enter();
    int error = mxf_wait_open(&endpoints->wait, kind, set, fid);
    mxf_leave();
    return error;
}

struct mxf_endpoints *mxf_endpoints_of(struct fid *fid)
{
    if (fid->fclass == FI_CLASS_CQ)
        return &OWNER(fid, mxf_cq, fid.fid)->endpoints;
    return fid->fclass == FI_CLASS_CNTR ? &OWNER(fid, mxf_counter, fid.fid)->endpoints : NULL;
}

int mxf_ready(struct fid *fid)
{
    if (fid->fclass == FI_CLASS_CQ) {
        const struct mxf_cq *cq = OWNER(fid, mxf_cq, fid.fid);
        return cq->count || cq->signals;
    }
    if (fid->fclass == FI_CLASS_CNTR) {
        const struct mxf_counter *counter = OWNER(fid, mxf_counter, fid.fid);
        return counter->seen != counter->value + counter->errors;
    }
    return fid->fclass == FI_CLASS_EQ && mxf_eq_ready(fid);
}

static void progress(const struct mxf_endpoints *endpoints)
{
    for (size_t place = 0; place < endpoints->count; place++)
        mxf_progress(endpoints->list[place]);
}

static void wake(const struct mxf_endpoints *endpoints)
{
    mxf_wait_signal(endpoints->wait);
    for (size_t place = 0; endpoints->sleepers && place < endpoints->count; place++)
        if (endpoints->list[place]->enabled)
            mx_wakeup(endpoints->list[place]->mx);
}

/* Sleep until something may have happened on the endpoints; without the lock. */
static void sleep_for(struct mxf_endpoints *endpoints, uint64_t deadline)
{
    uint64_t now = mxf_now(), left = now < deadline ? deadline - now : 0;
    uint32_t longest = left < SLEEP_MS ? (uint32_t)left : SLEEP_MS, found;
    mx_endpoint_t mx = NULL;
    mx_request_t request;
    if (!longest)
        return;
    for (size_t place = 0; place < endpoints->count && !mx; place++)
        if (endpoints->list[place]->enabled)
            mx = endpoints->list[place]->mx;
    endpoints->sleepers++;
    mxf_leave();
    if (mx)
        /* With several endpoints, the others have to be asked, too. */
        mx_peek(mx, endpoints->count > 1 ? 1 : longest, &request, &found);
    else
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    mxf_enter();
    endpoints->sleepers--;
}

static int push(struct mxf_cq *cq, const struct mxf_completion *completion)
{
    if (cq->count == cq->room) {
        struct mxf_completion *more = malloc(2 * cq->room * sizeof *more);
        if (!more)
            return -FI_ENOMEM;
        for (size_t place = 0; place < cq->count; place++)
            more[place] = cq->ring[(cq->first + place) % cq->room];
        free(cq->ring);
        cq->ring = more;
        cq->first = 0;
        cq->room *= 2;
    }
    cq->ring[(cq->first + cq->count++) % cq->room] = *completion;
    return 0;
}

void mxf_count(struct mxf_counter *counter, int error)
{
    if (error)
        counter->errors++;
    else
        counter->value++;
    wake(&counter->endpoints);
}

void mxf_complete(struct mxf_endpoint *endpoint, enum mxf_event event, const struct mxf_completion *completion)
{
    static const enum mxf_event queues[] = {[MXF_SEND] = MXF_SEND,          [MXF_RECEIVE] = MXF_RECEIVE,
                                            [MXF_READ] = MXF_SEND,          [MXF_WRITE] = MXF_SEND,
                                            [MXF_REMOTE_READ] = MXF_RECEIVE, [MXF_REMOTE_WRITE] = MXF_RECEIVE};
    struct mxf_counter *counter = endpoint->counter[event];
    struct mxf_cq *cq = endpoint->cq[queues[event]];
    if (counter && !(completion->flags & FI_PEEK))
        mxf_count(counter, completion->error);
    int wanted = completion->error || (!(completion->flags & QUIET) &&
                                       (!endpoint->selective[queues[event]] ||
                                        completion->flags & (FI_COMPLETION | FI_MULTI_RECV)));
    if (!cq || !wanted)
        return;
    struct mxf_completion entry = *completion;
    entry.flags &= ~(QUIET | FI_COMPLETION | FI_PEEK);
    if (push(cq, &entry))
        WARN("no memory for a completion");
    wake(&cq->endpoints);
}

static const size_t sizes[] = {
    [FI_CQ_FORMAT_UNSPEC] = 0,
    [FI_CQ_FORMAT_CONTEXT] = sizeof(struct fi_cq_entry),
    [FI_CQ_FORMAT_MSG] = sizeof(struct fi_cq_msg_entry),
    [FI_CQ_FORMAT_DATA] = sizeof(struct fi_cq_data_entry),
    [FI_CQ_FORMAT_TAGGED] = sizeof(struct fi_cq_tagged_entry),
};

static ssize_t take(struct mxf_cq *cq, char *buffer, size_t count, fi_addr_t *sources)
{
    size_t taken = 0, size = sizes[cq->format];
    while (taken < count && cq->count && !cq->ring[cq->first].error) {
        const struct mxf_completion *each = &cq->ring[cq->first];
        /* The other formats are beginnings of this one. */
        struct fi_cq_tagged_entry entry = {each->context, each->flags, each->length, each->buffer, each->data, each->tag};
        memcpy(buffer + taken * size, &entry, size);
        if (sources)
            sources[taken] = each->source;
        cq->first = (cq->first + 1) % cq->room;
        cq->count--;
        taken++;
    }
    return taken ? (ssize_t)taken : cq->count && count ? -FI_EAVAIL : -FI_EAGAIN;
}

static ssize_t read_locked(struct mxf_cq *cq, void *buffer, size_t count, fi_addr_t *sources)
{
    if (!cq->count || !count)
        progress(&cq->endpoints);
    return take(cq, buffer, count, sources);
}

static ssize_t cq_readfrom(struct fid_cq *fid, void *buffer, size_t count, fi_addr_t *sources)
{
    mxf_enter();
    ssize_t result = read_locked(OWNER(fid, mxf_cq, fid), buffer, count, sources);
    if (result == -FI_EAGAIN)
        mxf_leave_idle();
    else
        mxf_leave();
    return result;
}

static ssize_t cq_read(struct fid_cq *fid, void *buffer, size_t count)
{
    return cq_readfrom(fid, buffer, count, NULL);
}

static ssize_t cq_readerr(struct fid_cq *fid, struct fi_cq_err_entry *entry, uint64_t flags)
{
    struct mxf_cq *cq = OWNER(fid, mxf_cq, fid);
    ssize_t result = -FI_EAGAIN;
    (void)flags;
    mxf_enter();
    if (cq->count && cq->ring[cq->first].error) {
        const struct mxf_completion *each = &cq->ring[cq->first];
        entry->op_context = each->context;
        entry->flags = each->flags;
        entry->len = each->length;
        entry->buf = each->buffer;
        entry->data = each->data;
        entry->tag = each->tag;
        entry->olen = each->rest;
        entry->err = each->error;
        entry->prov_errno = each->error;
        /* Programs may offer memory for details, of which there are none. */
        entry->err_data_size = 0;
        cq->first = (cq->first + 1) % cq->room;
        cq->count--;
        result = 1;
    }
    mxf_leave();
    return result;
}

static ssize_t cq_sreadfrom(struct fid_cq *fid, void *buffer, size_t count, fi_addr_t *sources, const void *condition,
                            int timeout)
{
    struct mxf_cq *cq = OWNER(fid, mxf_cq, fid);
    uint64_t deadline = mxf_deadline(timeout);
    ssize_t result;
    (void)condition;
    mxf_enter();
    while ((result = read_locked(cq, buffer, count, sources)) == -FI_EAGAIN && !cq->signals && mxf_now() < deadline)
        sleep_for(&cq->endpoints, deadline);
    if (result == -FI_EAGAIN && cq->signals)
        cq->signals--;
    mxf_leave();
    return result;
}

static ssize_t cq_sread(struct fid_cq *fid, void *buffer, size_t count, const void *condition, int timeout)
{
    return cq_sreadfrom(fid, buffer, count, NULL, condition, timeout);
}

static int cq_signal(struct fid_cq *fid)
{
    struct mxf_cq *cq = OWNER(fid, mxf_cq, fid);
    mxf_enter();
    cq->signals = 1;
    wake(&cq->endpoints);
    mxf_leave();
    return 0;
}

static const char *cq_strerror(struct fid_cq *fid, int error, const void *data, char *buffer, size_t length)
{
    (void)fid, (void)data;
    const char *text = strerror(error);
    if (buffer && length)
        snprintf(buffer, length, "%s", text);
    return text;
}

static int cq_close(struct fid *fid)
{
    struct mxf_cq *cq = OWNER(fid, mxf_cq, fid.fid);
    mxf_enter();
    int result = cq->users ? -FI_EBUSY : 0;
    if (!result) {
        cq->domain->users--;
        mxf_wait_close(cq->endpoints.wait, fid);
        free(cq->endpoints.list);
        free(cq->ring);
        free(cq);
    }
    mxf_leave();
    return result;
}

static int cq_control(struct fid *fid, int command, void *argument)
{
    return mxf_wait_control(OWNER(fid, mxf_cq, fid.fid)->endpoints.wait, command, argument);
}

static struct fi_ops cq_fid_ops = {sizeof cq_fid_ops, cq_close,    UNSUPPORTED, cq_control,
                                   UNSUPPORTED,       UNSUPPORTED, UNSUPPORTED};
static struct fi_ops_cq cq_ops = {sizeof cq_ops, cq_read,      cq_readfrom, cq_readerr,
                                  cq_sread,      cq_sreadfrom, cq_signal,   cq_strerror};

int mxf_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **result, void *context)
{
    enum fi_cq_format format = attr && attr->format != FI_CQ_FORMAT_UNSPEC ? attr->format : FI_CQ_FORMAT_CONTEXT;
    if (format > FI_CQ_FORMAT_TAGGED)
        return -FI_EINVAL;
    struct mxf_cq *cq = calloc(1, sizeof *cq);
    if (!cq)
        return -FI_ENOMEM;
    cq->room = attr && attr->size ? attr->size : 1024;
    cq->ring = calloc(cq->room, sizeof *cq->ring);
    int error = cq->ring ? open_wait(&cq->endpoints, attr ? attr->wait_obj : FI_WAIT_NONE, attr ? attr->wait_set : NULL,
                                     &cq->fid.fid)
                         : -FI_ENOMEM;
    if (error) {
        free(cq->ring);
        free(cq);
        return error;
    }
    cq->format = format;
    cq->domain = OWNER(domain, mxf_domain, fid);
    cq->fid.fid = (struct fid){FI_CLASS_CQ, context, &cq_fid_ops};
    cq->fid.ops = &cq_ops;
    mxf_enter();
    cq->domain->users++;
    mxf_leave();
    *result = &cq->fid;
    return 0;
}

/* Counters. */

static uint64_t read_counter(struct fid_cntr *fid, int errors)
{
    struct mxf_counter *counter = OWNER(fid, mxf_counter, fid);
    mxf_enter();
    progress(&counter->endpoints);
    uint64_t value = errors ? counter->errors : counter->value;
    counter->seen = counter->value + counter->errors;
    mxf_leave();
    return value;
}

static uint64_t counter_read(struct fid_cntr *fid)
{
    return read_counter(fid, 0);
}

static uint64_t counter_readerr(struct fid_cntr *fid)
{
    return read_counter(fid, 1);
}

/* Change a counter: its errors or its value, to a value or by one. */
static int change(struct fid_cntr *fid, int errors, int adds, uint64_t value)
{
    struct mxf_counter *counter = OWNER(fid, mxf_counter, fid);
    mxf_enter();
    uint64_t *changed = errors ? &counter->errors : &counter->value;
    *changed = adds ? *changed + value : value;
    wake(&counter->endpoints);
    mxf_leave();
    return 0;
}

static int counter_add(struct fid_cntr *fid, uint64_t value)
{
    return change(fid, 0, 1, value);
}

static int counter_set(struct fid_cntr *fid, uint64_t value)
{
    return change(fid, 0, 0, value);
}

static int counter_adderr(struct fid_cntr *fid, uint64_t value)
{
    return change(fid, 1, 1, value);
}

static int counter_seterr(struct fid_cntr *fid, uint64_t value)
{
    return change(fid, 1, 0, value);
}

static int counter_wait(struct fid_cntr *fid, uint64_t threshold, int timeout)
{
    struct mxf_counter *counter = OWNER(fid, mxf_counter, fid);
    uint64_t deadline = mxf_deadline(timeout);
    int result = 0;
    mxf_enter();
    uint64_t errors = counter->errors;
    for (;;) {
        progress(&counter->endpoints);
        counter->seen = counter->value + counter->errors;
        if (counter->value >= threshold)
            break;
        if (counter->errors != errors || mxf_now() >= deadline) {
            result = counter->errors != errors ? -FI_EAVAIL : -FI_ETIMEDOUT;
            break;
        }
        sleep_for(&counter->endpoints, deadline);
    }
    mxf_leave();
    return result;
}

static int counter_close(struct fid *fid)
{
    struct mxf_counter *counter = OWNER(fid, mxf_counter, fid.fid);
    mxf_enter();
    int result = counter->users ? -FI_EBUSY : 0;
    if (!result) {
        counter->domain->users--;
        mxf_wait_close(counter->endpoints.wait, fid);
        free(counter->endpoints.list);
        free(counter);
    }
    mxf_leave();
    return result;
}

static int counter_control(struct fid *fid, int command, void *argument)
{
    return mxf_wait_control(OWNER(fid, mxf_counter, fid.fid)->endpoints.wait, command, argument);
}

static struct fi_ops counter_fid_ops = {sizeof counter_fid_ops, counter_close, UNSUPPORTED, counter_control,
                                        UNSUPPORTED,            UNSUPPORTED,   UNSUPPORTED};
static struct fi_ops_cntr counter_ops = {sizeof counter_ops, counter_read, counter_readerr, counter_add,
                                         counter_set,        counter_wait, counter_adderr,  counter_seterr};

int mxf_counter_open(struct fid_domain *domain, struct fi_cntr_attr *attr, struct fid_cntr **result, void *context)
{
    if (attr && attr->events != FI_CNTR_EVENTS_COMP)
        return -FI_ENOSYS;
    struct mxf_counter *counter = calloc(1, sizeof *counter);
    if (!counter)
        return -FI_ENOMEM;
    int error = open_wait(&counter->endpoints, attr ? attr->wait_obj : FI_WAIT_NONE, attr ? attr->wait_set : NULL,
                          &counter->fid.fid);
    if (error) {
        free(counter);
        return error;
    }
    counter->domain = OWNER(domain, mxf_domain, fid);
    counter->fid.fid = (struct fid){FI_CLASS_CNTR, context, &counter_fid_ops};
    counter->fid.ops = &counter_ops;
    mxf_enter();
    counter->domain->users++;
    mxf_leave();
    *result = &counter->fid;
    return 0;
}
