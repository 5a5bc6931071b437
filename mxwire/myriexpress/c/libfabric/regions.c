/* Memory regions, and the accesses of other endpoints to them: the target's side of remote_access.c.
 *
 * Theory of operation
 * -------------------
 * Nothing is registered with MX: a region is a range of memory with a key, in a table of its domain. Each access comes
 * from the network, so its key, its right, its offset and its length are compared with the region before anything is
 * touched; the reply has the reason of a refusal.
 *
 * An access is served in the unexpected handler, thus also while the program makes no call. A short write is copied and
 * replied to there, if MX has the message as a whole; else the message is first received into a buffer. A long write is
 * granted, and received into the region. A read sends from the region, with the number that the initiator has chosen.
 * An atomic operation is performed in the handler, and replies with the values that it has read.
 * The end of these requests is urgent (progress.c): it sends the reply, and frees what the access needs. While too many
 * are in progress, others are postponed: they stay in the queue of MX.
 *
 * A region that is closed while accesses use it cancels the receives that have not begun, and waits for the others. */

#include "provider.h"

/* Accesses, grants and replies in progress, beyond which accesses are postponed. */
#ifndef VISITS
#define VISITS 2048
#endif

struct mxf_region {
    struct fid_mr fid;
    struct mxf_domain *domain;
    struct mxf_region *next; /* in the list of the domain */
    uint64_t rights;
    size_t length, segments;
    struct iovec segment[SEGMENTS];
    struct mxf_counter *counter[MXF_EVENTS];
    unsigned uses; /* accesses that MX performs */
};

struct mxf_visit {
    struct mxf_work work; /* the request that receives the message or the bulk, or sends the bulk */
    struct mxf_visit *previous, *next;
    struct mxf_endpoint *endpoint;
    struct mxf_region *region;
    mx_endpoint_addr_t partner;
    struct mxf_address source;
    struct mxf_access access;
    struct mxf_answer *grant;
    struct mxf_waiter waiter;
    mx_request_t request;
    uint64_t bulk;
    int late;      /* it has not ended since earlier probes */
    unsigned resumed; /* it was postponed, and is being received */
    int receiving; /* MX has the receive of the bulk */
    uint64_t identity; /* of the message in the queue of MX */
    uint32_t size, segments;
    mx_segment_t segment[SEGMENTS];
    char *data; /* the message, if MX had it in parts */
    char values[ATOMIC_BYTES]; /* of an atomic operation, before it */
};

/* Regions. */

static struct mxf_region **list_of(struct mxf_domain *domain, uint64_t key)
{
    return &domain->regions[key % REGION_LISTS];
}

static struct mxf_region *find(struct mxf_domain *domain, uint64_t key)
{
    struct mxf_region *region = *list_of(domain, key);
    while (region && region->fid.key != key)
        region = region->next;
    return region;
}

static void forget(struct mxf_region *region)
{
    struct mxf_region **place = list_of(region->domain, region->fid.key);
    while (*place != region)
        place = &(*place)->next;
    *place = region->next;
}

/* The segments of a range of a region; return their number, or -1 if the range is not inside. */
static int slice(const struct mxf_region *region, uint64_t address, uint64_t length, mx_segment_t *segments)
{
    uint64_t skipped = address;
    int count = 0;
    if (region->domain->virtual)
        skipped -= region->segments ? (uintptr_t)region->segment[0].iov_base : 0;
    if (skipped > region->length || length > region->length - skipped)
        return -1;
    for (size_t place = 0; place < region->segments && length; place++) {
        struct iovec each = region->segment[place];
        if (skipped >= each.iov_len) {
            skipped -= each.iov_len;
            continue;
        }
        uint64_t part = each.iov_len - skipped < length ? each.iov_len - skipped : length;
        segments[count++] = (mx_segment_t){(char *)each.iov_base + skipped, (uint32_t)part};
        length -= part;
        skipped = 0;
    }
    return count;
}

static int cancel_visit(struct mxf_visit *visit, int error);

/* Let no access use a region; return 0 if MX still does. */
static int vacate(struct mxf_region *region)
{
    struct mxf_domain *domain = region->domain;
    for (size_t place = 0; place < domain->endpoints.count; place++) {
        struct mxf_endpoint *endpoint = domain->endpoints.list[place];
        struct mxf_visit *visit = endpoint->visits.first;
        /* The end of one can let others begin, or end. */
        while (visit)
            visit = visit->region == region && cancel_visit(visit, FI_EACCES) ? endpoint->visits.first : visit->next;
        mxf_progress(endpoint);
    }
    return !region->uses;
}

static int close_region(struct fid *fid)
{
    struct mxf_region *region = OWNER(fid, mxf_region, fid.fid);
    uint64_t deadline = mxf_now() + CLOSE_MS;
    mxf_enter();
    region->rights = 0;
    while (!vacate(region) && mxf_now() < deadline) {
        mxf_leave();
        nanosleep(&(struct timespec){0, 1000000}, NULL);
        mxf_enter();
    }
    int busy = region->uses;
    if (!busy) {
        forget(region);
        for (int event = 0; event < MXF_EVENTS; event++)
            if (region->counter[event])
                region->counter[event]->users--;
        region->domain->users--;
        free(region);
    }
    mxf_leave();
    return busy ? -FI_EBUSY : 0;
}

static int bind_region(struct fid *fid, struct fid *other, uint64_t flags)
{
    static const uint64_t kinds[MXF_EVENTS] = {[MXF_REMOTE_READ] = FI_REMOTE_READ, [MXF_REMOTE_WRITE] = FI_REMOTE_WRITE};
    struct mxf_region *region = OWNER(fid, mxf_region, fid.fid);
    if (other->fclass == FI_CLASS_EP)
        return 0;
    if (other->fclass != FI_CLASS_CNTR || !flags || flags & ~(uint64_t)(FI_REMOTE_READ | FI_REMOTE_WRITE))
        return -FI_EINVAL;
    mxf_enter();
    for (int event = 0; event < MXF_EVENTS; event++)
        if (flags & kinds[event] && !region->counter[event]) {
            region->counter[event] = OWNER(other, mxf_counter, fid.fid);
            region->counter[event]->users++;
        }
    mxf_leave();
    return 0;
}

/* A region is enabled from the beginning. */
static int control_region(struct fid *fid, int command, void *argument)
{
    (void)fid, (void)argument;
    return command == FI_ENABLE || command == FI_REFRESH ? 0 : -FI_ENOSYS;
}

static struct fi_ops region_ops = {sizeof region_ops, close_region, bind_region, control_region,
                                   UNSUPPORTED,       UNSUPPORTED,  UNSUPPORTED};

static int enter_region(struct mxf_domain *domain, struct mxf_region *region, uint64_t key)
{
    if (domain->chosen)
        key = ++domain->last_key;
    if (find(domain, key))
        return -FI_ENOKEY;
    region->fid.key = key;
    region->domain = domain;
    region->next = *list_of(domain, key);
    *list_of(domain, key) = region;
    domain->users++;
    return 0;
}

static int regattr(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags, struct fid_mr **result)
{
    if (flags & ~(uint64_t)FI_RMA_EVENT)
        return -FI_EBADFLAGS;
    if (attr->iov_count > SEGMENTS || attr->offset)
        return -FI_EINVAL;
    struct mxf_region *region = calloc(1, sizeof *region);
    if (!region)
        return -FI_ENOMEM;
    int error = 0;
    for (size_t place = 0; place < attr->iov_count; place++) {
        region->segment[region->segments++] = attr->mr_iov[place];
        if (__builtin_add_overflow(region->length, attr->mr_iov[place].iov_len, &region->length))
            error = -FI_EINVAL;
    }
    region->rights = attr->access;
    region->fid.fid = (struct fid){FI_CLASS_MR, attr->context, &region_ops};
    mxf_enter();
    if (!error)
        error = enter_region(OWNER(fid, mxf_domain, fid), region, attr->requested_key);
    mxf_leave();
    if (error)
        free(region);
    else
        *result = &region->fid;
    return error;
}

static int regv(struct fid *fid, const struct iovec *segments, size_t count, uint64_t access, uint64_t offset,
                uint64_t key, uint64_t flags, struct fid_mr **result, void *context)
{
    struct fi_mr_attr attr = {.mr_iov = segments, .iov_count = count, .access = access,
                              .offset = offset,   .requested_key = key, .context = context};
    return regattr(fid, &attr, flags, result);
}

static int reg(struct fid *fid, const void *buffer, size_t length, uint64_t access, uint64_t offset, uint64_t key,
               uint64_t flags, struct fid_mr **result, void *context)
{
    return regv(fid, &(struct iovec){(void *)buffer, length}, 1, access, offset, key, flags, result, context);
}

struct fi_ops_mr mxf_mr_ops = {sizeof mxf_mr_ops, reg, regv, regattr};

/* Accesses. */

static void free_visit(struct mxf_visit *visit)
{
    if (visit->region)
        visit->region->uses--;
    if (visit->grant)
        visit->grant->place = NULL;
    if (visit->bulk != NO_BULK)
        mxf_free_bulk(visit->endpoint, visit->bulk);
    visit->endpoint->resumed -= visit->resumed;
    REMOVE(&visit->endpoint->visits, visit);
    visit->endpoint->visiting--;
    mxf_free(visit->endpoint, visit->data);
    mxf_free(visit->endpoint, visit);
}

/* Reply to an access that has ended, and count it. */
static void end_visit(struct mxf_visit *visit, int error)
{
    struct mxf_endpoint *endpoint = visit->endpoint;
    uint64_t flags = visit->access.header.flags, atomic = flags & HEADER_ATOMIC;
    int writes = !(flags & HEADER_READ);
    if (writes || atomic || error) {
        struct {
            struct mxf_reply reply;
            char values[ATOMIC_BYTES];
        } content = {{{0, visit->access.number}, (uint64_t)error}, {0}};
        size_t values = !writes && !error ? visit->access.length : 0;
        memcpy(content.values, visit->values, values);
        mxf_answer(endpoint, visit->partner, MATCH_REPLY, &content, sizeof content.reply + values,
                   &(struct mxf_answer){.urgent = 1});
    }
    if (!error) {
        enum mxf_event event = writes ? MXF_REMOTE_WRITE : MXF_REMOTE_READ;
        struct mxf_completion completion = {
            .flags = (atomic ? FI_ATOMIC : FI_RMA) | (writes ? FI_REMOTE_WRITE : FI_REMOTE_READ) |
                     (flags & HEADER_DATA ? FI_REMOTE_CQ_DATA | FI_COMPLETION : QUIET),
            .data = visit->access.header.data,
            .length = visit->access.length,
            .source = mxf_find(endpoint->av, &visit->source)};
        if (visit->region->counter[event])
            mxf_count(visit->region->counter[event], 0);
        mxf_complete(endpoint, event, &completion);
    }
    free_visit(visit);
}

static void performed(struct mxf_work *work, const mx_status_t *status)
{
    struct mxf_visit *visit = OWNER(work, mxf_visit, work);
    int writes = visit->receiving;
    visit->endpoint->urgent--;
    visit->receiving = 0;
    if (writes)
        end_visit(visit, mxf_whole(status, visit->access.length, &visit->source) ? 0 : FI_EIO);
    else if (status->code == MX_STATUS_SUCCESS)
        end_visit(visit, 0);
    else
        free_visit(visit);
}

/* End an access whose bulk has not begun to arrive; return 0 if it has. */
static int cancel_visit(struct mxf_visit *visit, int error)
{
    uint32_t cancelled = 0;
    if (visit->waiter.ready) {
        REMOVE(&visit->endpoint->waiting, &visit->waiter);
    } else if (visit->receiving &&
               mx_cancel(visit->endpoint->mx, &visit->request, &cancelled) == MX_SUCCESS && cancelled) {
        visit->endpoint->urgent--;
    } else {
        return 0;
    }
    end_visit(visit, error);
    return 1;
}

static void grant_failed(void *owner, const mx_status_t *status)
{
    cancel_visit(owner, mxf_error(status->code));
}

void mxf_probe_visits(struct mxf_endpoint *endpoint)
{
    for (struct mxf_visit *visit = endpoint->visits.first; visit; visit = visit->next) {
        if (visit->late)
            mxf_probe_partner(endpoint, &visit->source);
        visit->late = 1;
    }
}

void mxf_lose_visits(struct mxf_endpoint *endpoint, const struct mxf_loss *loss)
{
    struct mxf_visit *visit = endpoint->visits.first;
    /* The end of one can let others begin, or end. */
    while (visit)
        visit = mxf_is_lost(loss, visit->partner) && cancel_visit(visit, mxf_error(loss->status.code))
                    ? endpoint->visits.first
                    : visit->next;
}

static void write_bulk(struct mxf_visit *visit);

static void bulk_is_free(struct mxf_waiter *waiter)
{
    struct mxf_visit *visit = OWNER(waiter, mxf_visit, waiter);
    waiter->ready = NULL;
    write_bulk(visit);
}

/* Receive the bulk of a long write into the region. */
static void write_bulk(struct mxf_visit *visit)
{
    struct mxf_endpoint *endpoint = visit->endpoint;
    visit->bulk = mxf_take_bulk(endpoint);
    if (visit->bulk == NO_BULK) {
        visit->waiter.ready = bulk_is_free;
        APPEND(&endpoint->waiting, &visit->waiter);
        return;
    }
    if (mx_irecv(endpoint->mx, visit->segment, visit->segments, MATCH_BULK | visit->bulk, MX_MATCH_MASK_NONE, &visit->work,
                 &visit->request) != MX_SUCCESS) {
        end_visit(visit, FI_EIO);
        return;
    }
    visit->receiving = 1;
    mxf_urge(endpoint);
    struct mxf_grant grant = {{0, visit->access.number}, visit->access.length, visit->bulk};
    struct mxf_answer how = {.place = &visit->grant, .owner = visit, .failed = grant_failed, .urgent = 1};
    if (mxf_answer(endpoint, visit->partner, MATCH_GRANT, &grant, sizeof grant, &how))
        cancel_visit(visit, FI_ENOMEM);
}

static void read_bulk(struct mxf_visit *visit)
{
    struct mxf_endpoint *endpoint = visit->endpoint;
    if (mx_isend(endpoint->mx, visit->segment, visit->segments, visit->partner,
                 MATCH_BULK | visit->access.header.data, &visit->work, &visit->request) == MX_SUCCESS)
        mxf_urge(endpoint);
    else
        end_visit(visit, FI_EIO);
}

/* Return whether a provider of this version sends such an access. */
static int known(const struct mxf_access *access, size_t payload)
{
    uint64_t flags = access->header.flags;
    if (access->length > MESSAGE_MAXIMUM)
        return 0;
    if (flags & HEADER_ATOMIC) {
        size_t size = mxf_atomic_size(access->operation, access->type), operands = mxf_operands(access->operation);
        return !(flags & ~(HEADER_ATOMIC | HEADER_READ | HEADER_DATA)) && size && access->length <= ATOMIC_BYTES &&
               access->length % size == 0 && payload == operands * access->length;
    }
    if (flags == HEADER_READ)
        return !payload && access->header.data < BULKS;
    return (flags & ~HEADER_DATA) == HEADER_WRITE &&
           (access->length <= EAGER_WRITE ? payload == access->length : !payload);
}

/* Find the range of an access; return an error of libfabric. */
static int find_range(struct mxf_visit *visit)
{
    const struct mxf_access *access = &visit->access;
    uint64_t flags = access->header.flags, right = flags & HEADER_READ ? FI_REMOTE_READ : FI_REMOTE_WRITE;
    struct mxf_region *region = find(visit->endpoint->domain, access->key);
    if (flags & HEADER_ATOMIC && mxf_operands(access->operation))
        right |= FI_REMOTE_WRITE;
    if (!region || right & ~(region->rights & visit->endpoint->caps))
        return FI_EACCES;
    int count = slice(region, access->address, access->length, visit->segment);
    if (count < 0)
        return FI_EACCES;
    visit->segments = (uint32_t)count;
    visit->region = region;
    region->uses++;
    return 0;
}

static void perform_atomic(struct mxf_visit *visit, const char *operands)
{
    const struct mxf_access *access = &visit->access;
    char results[ATOMIC_BYTES], *each = visit->values;
    for (uint32_t place = 0; place < visit->segments; each += visit->segment[place++].segment_length)
        memcpy(each, visit->segment[place].segment_ptr, visit->segment[place].segment_length);
    memcpy(results, visit->values, access->length);
    mxf_compute(access->operation, access->type, access->length, results, operands);
    each = results;
    for (uint32_t place = 0; mxf_operands(access->operation) && place < visit->segments;
         each += visit->segment[place++].segment_length)
        memcpy(visit->segment[place].segment_ptr, each, visit->segment[place].segment_length);
    end_visit(visit, 0);
}

/* Perform the access of a whole message. */
static void perform(struct mxf_visit *visit, const char *bytes)
{
    const char *payload = bytes + sizeof visit->access;
    memcpy(&visit->access, bytes, sizeof visit->access);
    visit->work.ended = performed;
    if (!known(&visit->access, visit->size - sizeof visit->access)) {
        WARN("dropped an access that another version, or a plain MX program, has sent");
        free_visit(visit);
        return;
    }
    int error = find_range(visit);
    if (error) {
        end_visit(visit, error);
    } else if (visit->access.header.flags & HEADER_ATOMIC) {
        perform_atomic(visit, payload);
    } else if (visit->access.header.flags & HEADER_READ) {
        read_bulk(visit);
    } else if (visit->access.length > EAGER_WRITE) {
        write_bulk(visit);
    } else {
        for (uint32_t place = 0; place < visit->segments; place++) {
            memcpy(visit->segment[place].segment_ptr, payload, visit->segment[place].segment_length);
            payload += visit->segment[place].segment_length;
        }
        end_visit(visit, 0);
    }
}

static void fetched(struct mxf_work *work, const mx_status_t *status)
{
    struct mxf_visit *visit = OWNER(work, mxf_visit, work);
    visit->endpoint->urgent--;
    visit->endpoint->resumed -= visit->resumed;
    visit->resumed = 0;
    if (status->code == MX_STATUS_SUCCESS && status->xfer_length == visit->size)
        perform(visit, visit->data);
    else
        free_visit(visit);
}

/* Receive a message that MX has in parts, or that was postponed; return 0 if MX refuses that. */
static int fetch(struct mxf_visit *visit)
{
    struct mxf_endpoint *endpoint = visit->endpoint;
    mx_segment_t segment = {visit->data = mxf_allocate(endpoint, visit->size), visit->size};
    visit->work.ended = fetched;
    if (mx__claim(endpoint->mx, visit->identity, &segment, visit->data ? 1 : 0, &visit->work, &visit->request) !=
        MX_SUCCESS) {
        free_visit(visit);
        return 0;
    }
    mxf_urge(endpoint);
    return 1;
}

static int crowded(const struct mxf_endpoint *endpoint)
{
    return endpoint->visiting + endpoint->answers >= VISITS;
}

static void begin(struct mxf_visit *visit)
{
    APPEND(&visit->endpoint->visits, visit);
    visit->endpoint->visiting++;
}

void mxf_resume_visits(struct mxf_endpoint *endpoint)
{
    struct mxf_visit *visit;
    while ((visit = endpoint->postponed.first) && !crowded(endpoint)) {
        REMOVE(&endpoint->postponed, visit);
        begin(visit);
        endpoint->resumed += visit->resumed = 1;
        fetch(visit);
    }
}

mx_unexp_handler_action_t mxf_accessed(struct mxf_endpoint *endpoint, mx_endpoint_addr_t partner,
                                       const struct mxf_address *source, uint32_t length, const void *data)
{
    struct mxf_visit *visit;
    if (length < sizeof visit->access || length > sizeof visit->access + EAGER_WRITE ||
        !(visit = mxf_allocate(endpoint, sizeof *visit))) {
        WARN("dropped an access");
        return MX_RECV_FINISHED;
    }
    *visit = (struct mxf_visit){
        .endpoint = endpoint, .partner = partner, .source = *source, .size = length, .bulk = NO_BULK};
    mx__identity(endpoint->mx, &visit->identity);
    int full = crowded(endpoint);
    /* Later ones do not overtake those that were postponed: atomic operations are performed in order. */
    if (full || endpoint->postponed.first || endpoint->resumed) {
        if (full)
            WARN("%d accesses to regions are in progress: others stay in the queue of MX", VISITS);
        endpoint->stayed++;
        APPEND(&endpoint->postponed, visit);
        return MX_RECV_CONTINUE;
    }
    begin(visit);
    if (!data)
        return fetch(visit) ? MX_RECV_CONTINUE : MX_RECV_FINISHED;
    perform(visit, data);
    return MX_RECV_FINISHED;
}

/* Of an endpoint that is closed. */
void mxf_leave_regions(struct mxf_endpoint *endpoint)
{
    for (struct mxf_visit *visit = endpoint->visits.first; visit; visit = visit->next)
        if (visit->region)
            visit->region->uses--;
}
