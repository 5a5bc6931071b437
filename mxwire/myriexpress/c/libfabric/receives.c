/* Receives: matching in the unexpected handler, unexpected messages, and the bulk of long messages.
 *
 * Theory of operation
 * -------------------
 * A message is matched when it arrives, or when a receive is posted; all fields that are matched or reported are known then.
 * Most messages arrive as a whole and need no answer. They are matched in the consumer of MX, which is called in the middle
 * of its work, and costs less than the unexpected handler. The handler matches the others, and every message that arrives
 * while another thread holds the lock.
 *
 * Until a message is received, its payload is in one of four places: held in memory; in the queue of MX; arriving, while MX
 * receives it; or at the sender, for an envelope.
 *
 * Each message that a receive has taken knows its share of the receive's memory (target), so that one receive can take
 * several (FI_MULTI_RECV); the receive is freed when it takes no more (retired) and none is pending.
 *
 * The bulk of a long message has a number. An endpoint has a limited stock of them; a message that finds none waits. The
 * receive is posted to MX before the grant leaves, and cancelled if the sender has gone (probes.c). Length and source of a
 * bulk are checked, since any endpoint can send with its match information. */

#include "provider.h"

/* Memory of an endpoint for unexpected messages; further ones stay in the queue of MX. */
#ifndef HELD_MAXIMUM
#define HELD_MAXIMUM (64u << 20)
#endif

static void granted(struct mxf_message *message);

static int matches(const struct mxf_receive *receive, const struct mxf_message *message)
{
    return !((receive->tag ^ message->tag) & ~receive->ignore) &&
           (receive->source.nic_id == GONE || (receive->source.nic_id == message->source.nic_id &&
                                               receive->source.number == message->source.number));
}

static uint64_t kind(int tagged)
{
    return FI_RECV | (tagged ? FI_TAGGED : FI_MSG);
}

static struct mxf_completion describe(const struct mxf_message *message, void *context)
{
    return (struct mxf_completion){.context = context,
                                   .flags = kind(message->tagged) | (message->with_data ? FI_REMOTE_CQ_DATA : 0),
                                   .data = message->data,
                                   .tag = message->tag,
                                   .length = message->length,
                                   .source = mxf_find(message->endpoint->av, &message->source)};
}

static void free_message(struct mxf_message *message)
{
    struct mxf_endpoint *endpoint = message->endpoint;
    endpoint->held -= message->counted;
    mxf_free(endpoint, message->held);
    mxf_free(endpoint, message);
}

/* No further message is received into the memory of a receive. */
static void retire(struct mxf_endpoint *endpoint, struct mxf_receive *receive, int tagged)
{
    if (receive->listed)
        REMOVE(&endpoint->posted[tagged], receive);
    receive->listed = 0;
    receive->retired = 1;
}

/* Reserve the memory of a receive for a message. */
static void take(struct mxf_message *message, struct mxf_receive *receive)
{
    struct mxf_endpoint *endpoint = message->endpoint;
    size_t skipped = receive->offset, left = message->length;
    message->receive = receive;
    message->targets = 0;
    for (size_t place = 0; place < receive->segments && left; place++) {
        struct iovec segment = receive->segment[place];
        if (skipped >= segment.iov_len) {
            skipped -= segment.iov_len;
            continue;
        }
        size_t part = segment.iov_len - skipped < left ? segment.iov_len - skipped : left;
        message->target[message->targets++] = (struct iovec){(char *)segment.iov_base + skipped, part};
        left -= part;
        skipped = 0;
    }
    message->taken = message->length - left;
    message->buffer = (char *)receive->segment[0].iov_base + receive->offset;
    receive->pending++;
    receive->offset += message->taken;
    if (!(receive->flags & FI_MULTI_RECV) || receive->length - receive->offset < endpoint->min_multi_receive ||
        receive->length == receive->offset)
        retire(endpoint, receive, message->tagged);
}

/* Report that a message was received, or not. */
static void finish(struct mxf_message *message, int error)
{
    struct mxf_receive *receive = message->receive;
    struct mxf_completion completion = describe(message, receive->context);
    completion.length = message->taken;
    completion.rest = message->length - message->taken;
    completion.buffer = message->buffer;
    completion.error = error ? error : completion.rest ? FI_ETRUNC : 0;
    completion.flags |= receive->flags & FI_COMPLETION;
    receive->pending--;
    int last = receive->retired && !receive->pending;
    if (last && receive->flags & FI_MULTI_RECV)
        completion.flags |= FI_MULTI_RECV;
    mxf_complete(message->endpoint, MXF_RECEIVE, &completion);
    if (last)
        mxf_free(message->endpoint, receive);
}

/* A multi-receive has no room for the next message. */
static void exhaust(struct mxf_endpoint *endpoint, struct mxf_receive *receive, int tagged)
{
    retire(endpoint, receive, tagged);
    if (receive->pending)
        return;
    struct mxf_completion completion = {.context = receive->context,
                                        .flags = kind(tagged) | FI_MULTI_RECV | FI_PEEK | FI_COMPLETION,
                                        .source = FI_ADDR_NOTAVAIL};
    mxf_complete(endpoint, MXF_RECEIVE, &completion);
    mxf_free(endpoint, receive);
}

static int fits(const struct mxf_receive *receive, const struct mxf_message *message)
{
    return !receive->offset || message->length <= receive->length - receive->offset;
}

/* The oldest posted receive for a message. */
static struct mxf_receive *find_posted(const struct mxf_message *message)
{
    struct mxf_endpoint *endpoint = message->endpoint;
    struct mxf_receive *next;
    for (struct mxf_receive *receive = endpoint->posted[message->tagged].first; receive; receive = next) {
        next = receive->next;
        if (!matches(receive, message))
            continue;
        if (fits(receive, message))
            return receive;
        exhaust(endpoint, receive, message->tagged);
    }
    return NULL;
}

static void scatter(const struct mxf_message *message, const char *payload)
{
    for (size_t place = 0; place < message->targets; place++) {
        memcpy(message->target[place].iov_base, payload, message->target[place].iov_len);
        payload += message->target[place].iov_len;
    }
}

/* Read an envelope, which MX always has as a whole. Return where its payload follows, or NULL if no provider of this
 * version has sent it. */
static const char *read_envelope(struct mxf_message *message, const char *data, size_t size)
{
    struct mxf_envelope envelope;
    if (!data || size < sizeof envelope)
        return NULL;
    memcpy(&envelope, data, sizeof envelope);
    int follows = !envelope.number;
    if (envelope.header.flags & ~(HEADER_DATA | HEADER_TAGGED) || envelope.length > (follows ? ENCLOSED : MESSAGE_MAXIMUM) ||
        size != sizeof envelope + (follows ? envelope.length : 0))
        return NULL;
    message->place = follows ? MXF_HELD : MXF_ENVELOPE;
    message->enveloped = 1;
    message->tagged = !!(envelope.header.flags & HEADER_TAGGED);
    message->with_data = envelope.header.flags & HEADER_DATA;
    message->tag = envelope.tag;
    message->data = envelope.header.data;
    message->length = envelope.length;
    message->number = envelope.number;
    return data + sizeof envelope;
}

static void received(struct mxf_work *work, const mx_status_t *status)
{
    struct mxf_message *message = OWNER(work, mxf_message, work);
    int failed = mxf_failed(status->code);
    if (message->number && !failed) {
        granted(message);
        return;
    }
    if (message->receive)
        finish(message, failed ? FI_EIO : 0);
    free_message(message);
}

/* List the memory for what the receive of a message takes; return how many segments follow. */
static uint32_t list_targets(const struct mxf_message *message, mx_segment_t *segments)
{
    for (size_t place = 0; place < message->targets; place++)
        segments[place] = (mx_segment_t){message->target[place].iov_base, (uint32_t)message->target[place].iov_len};
    return (uint32_t)message->targets;
}

/* Receive a message that is in the queue of MX, or about to enter it: into nothing, if it is dropped. Return 0 if MX
 * refuses that. */
static int receive_queued(struct mxf_message *message)
{
    static char envelope[sizeof(struct mxf_envelope)]; /* was read already */
    mx_segment_t segments[1 + SEGMENTS];
    mx_request_t request;
    uint32_t count = 0;
    if (message->enveloped)
        segments[count++] = (mx_segment_t){envelope, sizeof envelope};
    if (!message->number)
        count += list_targets(message, segments + count);
    message->place = MXF_ARRIVING;
    message->work.ended = received;
    if (mx__claim(message->endpoint->mx, message->identity, segments, count, &message->work, &request) == MX_SUCCESS)
        return 1;
    received(&message->work, &(mx_status_t){.code = MX_STATUS_ABORTED});
    return 0;
}

/* Give a message to the receive that has taken it; without one, drop it. */
static void deliver(struct mxf_message *message)
{
    if (message->place == MXF_QUEUED) {
        receive_queued(message);
    } else if (message->place == MXF_HELD) {
        if (message->receive) {
            scatter(message, message->held);
            finish(message, 0);
        }
        free_message(message);
    } else {
        granted(message);
    }
}

/* Grants, replies and bulks. */

static void answer_ended(struct mxf_work *work, const mx_status_t *status)
{
    struct mxf_answer *answer = OWNER(work, mxf_answer, work);
    answer->endpoint->answers--;
    if (answer->urgent)
        answer->endpoint->urgent--;
    if (answer->place) {
        *answer->place = NULL;
        if (status->code != MX_STATUS_SUCCESS)
            answer->failed(answer->owner, status);
    }
    mxf_free(answer->endpoint, answer);
}

int mxf_answer(struct mxf_endpoint *endpoint, mx_endpoint_addr_t partner, uint64_t match, const void *content,
               size_t length, const struct mxf_answer *template)
{
    struct mxf_answer *answer = mxf_allocate(endpoint, sizeof *answer);
    mx_request_t request;
    if (!answer)
        return -FI_ENOMEM;
    *answer = *template;
    answer->work.ended = answer_ended;
    answer->endpoint = endpoint;
    memcpy(answer->content, content, length);
    mx_segment_t segment = {answer->content, (uint32_t)length};
    if (answer->place)
        *answer->place = answer;
    endpoint->answers++;
    if (answer->urgent)
        mxf_urge(endpoint);
    if (mx_isend(endpoint->mx, &segment, 1, partner, match, &answer->work, &request) == MX_SUCCESS)
        return 0;
    /* The result reports it. The owner is not notified, since that may free it while the caller uses it. */
    if (answer->place)
        *answer->place = NULL;
    answer->place = NULL;
    answer_ended(&answer->work, &(mx_status_t){.code = MX_STATUS_ENDPOINT_UNREACHABLE});
    return -FI_EHOSTUNREACH;
}

uint64_t mxf_take_bulk(struct mxf_endpoint *endpoint)
{
    return endpoint->free_count ? endpoint->free_bulks[--endpoint->free_count] : NO_BULK;
}

void mxf_free_bulk(struct mxf_endpoint *endpoint, uint64_t bulk)
{
    struct mxf_waiter *waiter;
    endpoint->free_bulks[endpoint->free_count++] = (uint32_t)bulk;
    /* If MX refuses the receive of a waiter, that frees its number at once: for the next turn, not for a deeper call. */
    if (endpoint->passing)
        return;
    endpoint->passing = 1;
    while (endpoint->free_count && (waiter = endpoint->waiting.first) && !endpoint->closing) {
        REMOVE(&endpoint->waiting, waiter);
        waiter->ready(waiter);
    }
    endpoint->passing = 0;
}

int mxf_whole(const mx_status_t *status, size_t length, const struct mxf_address *source)
{
    struct mxf_address actual = {GONE, 0, 0};
    if (status->code != MX_STATUS_SUCCESS || status->msg_length != length)
        return 0;
    mx_decompose_endpoint_addr(status->source, &actual.nic_id, &actual.number);
    return actual.nic_id == source->nic_id && actual.number == source->number;
}

static void bulk_ended(struct mxf_work *work, const mx_status_t *status)
{
    struct mxf_message *message = OWNER(work, mxf_message, work);
    struct mxf_endpoint *endpoint = message->endpoint;
    uint64_t bulk = message->bulk;
    int failed = mxf_failed(status->code);
    if (message->grant)
        message->grant->place = NULL;
    REMOVE(&endpoint->granted, message);
    finish(message, mxf_whole(status, message->taken, &message->source) ? 0
                    : failed                                            ? mxf_error(status->code)
                                                                        : FI_EIO);
    free_message(message);
    mxf_free_bulk(endpoint, bulk);
}

static void grant_failed(void *owner, const mx_status_t *status)
{
    struct mxf_message *message = owner;
    uint32_t cancelled = 0;
    if (mx_cancel(message->endpoint->mx, &message->request, &cancelled) == MX_SUCCESS && cancelled)
        bulk_ended(&message->work, status);
}

static void bulk_is_free(struct mxf_waiter *waiter)
{
    granted(OWNER(waiter, mxf_message, waiter));
}

/* Post the receive of the bulk of a message; return 0 if MX refuses it. */
static int receive_bulk(struct mxf_message *message)
{
    mx_segment_t segments[SEGMENTS];
    uint32_t count = list_targets(message, segments);
    message->place = MXF_ARRIVING;
    message->work.ended = bulk_ended;
    APPEND(&message->endpoint->granted, message);
    return mx_irecv(message->endpoint->mx, segments, count, MATCH_BULK | message->bulk, MX_MATCH_MASK_NONE, &message->work,
                    &message->request) == MX_SUCCESS;
}

void mxf_probe_messages(struct mxf_endpoint *endpoint)
{
    for (struct mxf_message *message = endpoint->granted.first; message; message = message->next) {
        if (message->late)
            mxf_probe_partner(endpoint, &message->source);
        message->late = 1;
    }
}

void mxf_lose_messages(struct mxf_endpoint *endpoint, const struct mxf_loss *loss)
{
    struct mxf_message *message = endpoint->granted.first, *last = endpoint->granted.last, *next;
    /* The end of one frees a number, with which another is granted, behind the last one. */
    for (; message; message = message == last ? NULL : next) {
        next = message->next;
        if (mxf_is_lost(loss, message->partner))
            grant_failed(message, &loss->status);
    }
}

/* Let the sender of an envelope send the bulk, or forget it if no receive has taken the message, which is then freed. */
static void granted(struct mxf_message *message)
{
    struct mxf_endpoint *endpoint = message->endpoint;
    struct mxf_grant grant = {{0, message->number}, message->taken, NO_BULK};
    struct mxf_answer how = {0};
    if (message->receive) {
        message->bulk = mxf_take_bulk(endpoint);
        if (message->bulk == NO_BULK) {
            message->waiter.ready = bulk_is_free;
            APPEND(&endpoint->waiting, &message->waiter);
            return;
        }
        if (!receive_bulk(message)) {
            bulk_ended(&message->work, &(mx_status_t){.code = MX_STATUS_ABORTED});
            return;
        }
        grant.bulk = message->bulk;
        how = (struct mxf_answer){.place = &message->grant, .owner = message, .failed = grant_failed};
    }
    int failed = mxf_answer(endpoint, message->partner, MATCH_GRANT, &grant, sizeof grant, &how);
    if (!message->receive)
        free_message(message);
    else if (failed)
        grant_failed(message, &(mx_status_t){.code = MX_STATUS_NO_RESOURCES});
}

/* The unexpected handler. */

/* The message on the heap, with a copy of the payload if there is any. */
static struct mxf_message *keep(const struct mxf_message *message, const char *payload)
{
    struct mxf_endpoint *endpoint = message->endpoint;
    struct mxf_message *kept = mxf_allocate(endpoint, sizeof *kept);
    char *held = payload ? mxf_allocate(endpoint, message->length) : NULL;
    if (!kept || (payload && !held)) {
        WARN("no memory: dropped a message");
        mxf_free(endpoint, kept);
        mxf_free(endpoint, held);
        return NULL;
    }
    *kept = *message;
    if (held)
        kept->held = memcpy(held, payload, message->length);
    return kept;
}

/* Return whether the memory for unexpected messages has room for another one. */
static int has_room(struct mxf_message *message)
{
    message->counted = sizeof *message + (message->place == MXF_HELD ? message->length : 0);
    return message->endpoint->held + message->counted <= HELD_MAXIMUM;
}

static int expected(struct mxf_message *message, const char *payload)
{
    if (message->place == MXF_HELD) {
        scatter(message, payload);
        finish(message, 0);
        return 1;
    }
    struct mxf_message *kept = keep(message, NULL);
    if (!kept) {
        finish(message, FI_ENOMEM);
        return 1;
    }
    if (kept->place == MXF_QUEUED)
        return !receive_queued(kept);
    granted(kept);
    return 1;
}

static int unexpected(struct mxf_message *message, const char *payload)
{
    struct mxf_endpoint *endpoint = message->endpoint;
    if (message->place != MXF_QUEUED && !has_room(message)) {
        WARN("unexpected messages fill their memory of %u bytes: others stay in the queue of MX", HELD_MAXIMUM);
        endpoint->stayed++;
        message->place = MXF_QUEUED;
    }
    if (message->place == MXF_QUEUED)
        message->counted = 0;
    struct mxf_message *kept = keep(message, message->place == MXF_HELD ? payload : NULL);
    if (!kept)
        return 1;
    endpoint->held += kept->counted;
    APPEND(&endpoint->unexpected[kept->tagged], kept);
    return kept->place != MXF_QUEUED;
}

/* Read what match information and envelope say about a message; return 0 if no provider of this version has sent it. */
static int read_message(struct mxf_message *message, uint64_t match, uint32_t length, const char **data)
{
    message->place = *data ? MXF_HELD : MXF_QUEUED;
    if (match == MATCH_ENVELOPE)
        return !!(*data = read_envelope(message, *data, length));
    return length <= MESSAGE_MAXIMUM && mxf_unpack(match, message);
}

/* Give a message to the receive that it matches, or keep it; return whether MX is done with it. */
static int match_posted(struct mxf_message *message, const char *data)
{
    struct mxf_receive *receive = find_posted(message);
    if (!receive)
        return unexpected(message, data);
    take(message, receive);
    return expected(message, data);
}

/* Return whether a message was a grant or a reply, which MX always has as a whole. */
static int answered(struct mxf_endpoint *endpoint, const struct mxf_address *source, uint64_t match, uint32_t length,
                    const void *data)
{
    struct mxf_grant grant;
    if (match == MATCH_GRANT && data && length == sizeof grant) {
        memcpy(&grant, data, length);
        mxf_granted(endpoint, source, &grant);
        return 1;
    }
    if (match == MATCH_REPLY && data && length >= sizeof(struct mxf_reply)) {
        mxf_replied(endpoint, source, data, length);
        return 1;
    }
    return 0;
}

/* Return whether a message is finished. */
static int arrived(struct mxf_endpoint *endpoint, mx_endpoint_addr_t source, uint64_t match, uint32_t length,
                   const char *data)
{
    struct mxf_message message = {.endpoint = endpoint, .partner = source, .length = length};
    if (endpoint->closing ||
        mx_decompose_endpoint_addr(source, &message.source.nic_id, &message.source.number) != MX_SUCCESS)
        return 1;
    if (match == MATCH_ACCESS)
        return mxf_accessed(endpoint, source, &message.source, length, data) == MX_RECV_FINISHED;
    if (answered(endpoint, &message.source, match, length, data))
        return 1;
    if (!read_message(&message, match, length, &data)) {
        WARN("dropped a message that another version, or a plain MX program, has sent");
        return 1;
    }
    mx__identity(endpoint->mx, &message.identity);
    return match_posted(&message, data);
}

/* Return whether a message is finished, for which MX need not be called. */
static int consumed(struct mxf_endpoint *endpoint, mx_endpoint_addr_t source, uint64_t match, uint32_t length,
                    const char *data)
{
    struct mxf_message message = {.endpoint = endpoint, .partner = source, .length = length};
    return !endpoint->closing && read_message(&message, match, length, &data) && message.place == MXF_HELD &&
           has_room(&message) &&
           mx_decompose_endpoint_addr(source, &message.source.nic_id, &message.source.number) == MX_SUCCESS &&
           match_posted(&message, data);
}

mx_unexp_handler_action_t mxf_consume(void *context, mx_endpoint_addr_t source, uint64_t match, uint32_t length,
                                      void *data)
{
    /* A thread that has the lock may wait for MX, which calls this in the middle of its work. */
    if (pthread_mutex_trylock(&mxf_lock))
        return MX_RECV_CONTINUE;
    int finished = consumed(context, source, match, length, data);
    mxf_leave();
    return finished ? MX_RECV_FINISHED : MX_RECV_CONTINUE;
}

mx_unexp_handler_action_t mxf_arrived(void *context, mx_endpoint_addr_t source, uint64_t match, uint32_t length,
                                      void *data)
{
    mxf_enter();
    int finished = arrived(context, source, match, length, data);
    mxf_leave();
    return finished ? MX_RECV_FINISHED : MX_RECV_CONTINUE;
}

/* Posting. */

/* Report what was found, for a peek or a discard. */
static void report(const struct mxf_message *message, void *context)
{
    struct mxf_completion completion = describe(message, context);
    completion.flags |= FI_PEEK | FI_COMPLETION;
    mxf_complete(message->endpoint, MXF_RECEIVE, &completion);
}

static ssize_t claim(struct mxf_endpoint *endpoint, struct mxf_receive *receive)
{
    struct mxf_message *message = endpoint->claimed.first;
    while (message && message->claim != receive->context)
        message = message->next;
    if (!message)
        return -FI_EINVAL;
    REMOVE(&endpoint->claimed, message);
    if (receive->flags & FI_DISCARD) {
        report(message, receive->context);
        mxf_free(endpoint, receive);
    } else {
        receive->retired = 1;
        receive->flags &= ~FI_MULTI_RECV;
        take(message, receive);
    }
    deliver(message);
    return 0;
}

static struct mxf_message *find_unexpected(const struct mxf_endpoint *endpoint, int tagged,
                                           const struct mxf_receive *receive)
{
    struct mxf_message *message = endpoint->unexpected[tagged].first;
    while (message && !matches(receive, message))
        message = message->next;
    return message;
}

static void peek(struct mxf_endpoint *endpoint, int tagged, const struct mxf_receive *receive)
{
    struct mxf_message *message = find_unexpected(endpoint, tagged, receive);
    if (!message) {
        struct mxf_completion completion = {.context = receive->context,
                                            .flags = kind(tagged) | FI_PEEK,
                                            .tag = receive->tag,
                                            .source = FI_ADDR_NOTAVAIL,
                                            .error = FI_ENOMSG};
        mxf_complete(endpoint, MXF_RECEIVE, &completion);
        return;
    }
    report(message, receive->context);
    if (receive->flags & (FI_CLAIM | FI_DISCARD))
        REMOVE(&endpoint->unexpected[tagged], message);
    if (receive->flags & FI_DISCARD) {
        deliver(message);
    } else if (receive->flags & FI_CLAIM) {
        message->claim = receive->context;
        APPEND(&endpoint->claimed, message);
    }
}

ssize_t mxf_post(struct mxf_endpoint *endpoint, int tagged, const struct iovec *segments, size_t count,
                 fi_addr_t source, uint64_t tag, uint64_t ignore, uint64_t flags, void *context)
{
    if (count > SEGMENTS)
        return -FI_EINVAL;
    if (!endpoint->enabled)
        return -FI_EOPBADSTATE;
    struct mxf_receive *receive = mxf_allocate(endpoint, sizeof *receive);
    if (!receive)
        return -FI_EAGAIN;
    *receive = (struct mxf_receive){.context = context,
                                    .flags = flags,
                                    .tag = tag,
                                    .ignore = ignore,
                                    .source.nic_id = GONE,
                                    .segments = count};
    for (size_t place = 0; place < count; place++) {
        receive->segment[place] = segments[place];
        receive->length += segments[place].iov_len;
    }
    int bad = 0;
    if (endpoint->caps & FI_DIRECTED_RECV && source != FI_ADDR_UNSPEC) {
        bad = !mxf_known(endpoint->av, source);
        if (!bad)
            receive->source = endpoint->av->entries[source].address;
    }
    ssize_t result = bad ? -FI_EINVAL : 0;
    if (!result && flags & FI_PEEK) {
        mxf_progress(endpoint);
        peek(endpoint, tagged, receive);
        mxf_free(endpoint, receive);
        return 0;
    }
    if (!result && flags & FI_CLAIM)
        result = claim(endpoint, receive);
    if (result)
        mxf_free(endpoint, receive);
    if (result || flags & FI_CLAIM)
        return result;
    struct mxf_message *message;
    /* Several messages for a multi-receive. It is not posted before the end, since newer ones may arrive in calls of MX. */
    while ((message = find_unexpected(endpoint, tagged, receive))) {
        if (!fits(receive, message)) {
            exhaust(endpoint, receive, tagged);
            return 0;
        }
        REMOVE(&endpoint->unexpected[tagged], message);
        take(message, receive);
        int last = receive->retired;
        deliver(message);
        if (last)
            return 0;
    }
    APPEND(&endpoint->posted[tagged], receive);
    receive->listed = 1;
    return 0;
}

ssize_t mxf_cancel(fid_t fid, void *context)
{
    struct mxf_endpoint *endpoint = OWNER(fid, mxf_endpoint, fid.fid);
    mxf_enter();
    struct mxf_receive *receive = NULL;
    int tagged;
    for (tagged = 1; tagged >= 0 && !receive; tagged -= !receive)
        for (receive = endpoint->posted[tagged].first; receive && receive->context != context;)
            receive = receive->next;
    if (receive) {
        struct mxf_completion completion = {.context = context,
                                            .flags = kind(tagged) | FI_COMPLETION,
                                            .tag = receive->tag,
                                            .source = FI_ADDR_NOTAVAIL,
                                            .error = FI_ECANCELED};
        retire(endpoint, receive, tagged);
        mxf_complete(endpoint, MXF_RECEIVE, &completion);
        if (!receive->pending)
            mxf_free(endpoint, receive);
    }
    mxf_leave();
    return receive ? 0 : -FI_ENOENT;
}
