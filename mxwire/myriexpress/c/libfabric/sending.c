/* Sends: connects, eager messages, envelopes and their bulk. */

#include "provider.h"

/* Header and payload up to this length are copied into one segment, which MX sends faster than two. */
#define COPIED 240

static struct mxf_send *long_send(struct mxf_endpoint *endpoint, uint64_t number)
{
    uint32_t place = (uint32_t)number;
    struct mxf_send *send = place < endpoint->long_room ? endpoint->long_sends[place] : NULL;
    return send && send->number == number ? send : NULL;
}

/* Enter a send whose grant has to be found; its number is never used again. */
static int enter_long(struct mxf_endpoint *endpoint, struct mxf_send *send)
{
    static uint32_t uses;
    size_t place = endpoint->long_next;
    while (place < endpoint->long_room && endpoint->long_sends[place])
        place++;
    if (place == endpoint->long_room) {
        for (place = 0; place < endpoint->long_next && endpoint->long_sends[place];)
            place++;
        if (place == endpoint->long_next) {
            size_t room = endpoint->long_room ? 2 * endpoint->long_room : 64;
            struct mxf_send **more = realloc(endpoint->long_sends, room * sizeof *more);
            if (!more)
                return -FI_ENOMEM;
            place = endpoint->long_room;
            memset(more + place, 0, (room - place) * sizeof *more);
            endpoint->long_sends = more;
            endpoint->long_room = room;
        }
    }
    endpoint->long_next = place + 1;
    endpoint->long_sends[place] = send;
    send->number = (uint64_t)++uses << 32 | place;
    return 0;
}

static void free_send(struct mxf_send *send)
{
    free(send->memory);
    free(send);
}

/* End a send if MX and the receiver have finished with it. */
static void end_if_done(struct mxf_send *send)
{
    struct mxf_endpoint *endpoint = send->endpoint;
    if (send->pending || (send->number && !send->granted && !send->error))
        return;
    if (send->number)
        endpoint->long_sends[(uint32_t)send->number] = NULL;
    endpoint->unsent--;
    struct mxf_completion completion = {.context = send->context,
                                        .flags = (send->flags & (QUIET | FI_COMPLETION)) | FI_SEND |
                                                 (send->match == MATCH_MESSAGE ? FI_MSG : FI_TAGGED),
                                        .length = send->length,
                                        .source = FI_ADDR_NOTAVAIL,
                                        .error = send->error};
    if (!endpoint->closing)
        mxf_complete(endpoint, MXF_SEND, &completion);
    free_send(send);
}

static void request_ended(struct mxf_send *send, const mx_status_t *status)
{
    send->pending--;
    /* Within a host, MX tells the sender, too, that the receive was too short. */
    if (status->code != MX_STATUS_SUCCESS && status->code != MX_STATUS_BUFFERED && status->code != MX_STATUS_TRUNCATED) {
        send->error = mxf_error(status->code);
        /* The partner may have been opened again: the next send connects again. */
        send->connection->state = MXF_UNCONNECTED;
    }
    end_if_done(send);
}

static void header_ended(struct mxf_work *work, const mx_status_t *status)
{
    request_ended(OWNER(work, mxf_send, header), status);
}

static void bulk_ended(struct mxf_work *work, const mx_status_t *status)
{
    request_ended(OWNER(work, mxf_send, bulk), status);
}

/* Hand a send to MX. */
static int transmit(struct mxf_send *send)
{
    struct mxf_endpoint *endpoint = send->endpoint;
    mx_request_t request;
    send->pending++;
    mx_return_t code = (send->flags & FI_DELIVERY_COMPLETE && !send->number ? mx_issend : mx_isend)(
        endpoint->mx, send->segment, send->number ? 1 : send->segments, send->connection->partner, send->match,
        &send->header, &request);
    if (code == MX_SUCCESS)
        return 0;
    send->pending--;
    if (code == MX_BAD_ADDR_LIST || code == MX_BAD_ENDPOINT)
        send->connection->state = MXF_UNCONNECTED;
    return mxf_code(code);
}

/* The receiver has matched an envelope: send the bulk. */
void mxf_granted(struct mxf_endpoint *endpoint, const struct mxf_address *source, const struct mxf_grant *grant)
{
    struct mxf_send *send = long_send(endpoint, grant->header.data);
    if (!send || send->granted || send->connection->address.nic_id != source->nic_id ||
        send->connection->address.number != source->number) {
        WARN("an endpoint grants a message that was not sent to it");
        return;
    }
    if (grant->bulk != NO_BULK && grant->bulk >= BULKS)
        return;
    send->granted = 1;
    if (grant->bulk != NO_BULK) {
        size_t left = grant->length < send->length ? grant->length : send->length;
        mx_segment_t segments[SEGMENTS];
        uint32_t count = 0;
        for (uint32_t place = 1; place < send->segments && left; place++) {
            segments[count] = send->segment[place];
            if (segments[count].segment_length > left)
                segments[count].segment_length = (uint32_t)left;
            left -= segments[count++].segment_length;
        }
        mx_request_t request;
        send->pending++;
        mx_return_t code = (send->flags & FI_DELIVERY_COMPLETE ? mx_issend : mx_isend)(
            endpoint->mx, segments, count, send->connection->partner, MATCH_BULK | grant->bulk, &send->bulk, &request);
        if (code != MX_SUCCESS) {
            send->pending--;
            send->error = -mxf_code(code);
        }
    }
    end_if_done(send);
}

static void fail_queue(struct mxf_connection *connection, int error)
{
    struct mxf_send *send;
    connection->state = MXF_UNCONNECTED;
    while ((send = connection->first)) {
        connection->first = send->next;
        send->error = error;
        end_if_done(send);
    }
    connection->last = NULL;
}

static void connected(struct mxf_work *work, const mx_status_t *status)
{
    struct mxf_connection *connection = OWNER(work, mxf_connection, work);
    struct mxf_send *send;
    if (status->code != MX_STATUS_SUCCESS) {
        fail_queue(connection, mxf_error(status->code));
        return;
    }
    connection->partner = status->source;
    connection->state = MXF_CONNECTED;
    while ((send = connection->first)) {
        connection->first = send->next;
        if (!connection->first)
            connection->last = NULL;
        int error = transmit(send);
        if (error) {
            send->error = -error;
            end_if_done(send);
        }
    }
}

static int start_connect(struct mxf_connection *connection)
{
    mx_request_t request;
    connection->state = MXF_CONNECTING;
    mx_return_t code = mx_iconnect(connection->endpoint->mx, connection->address.nic_id, connection->address.number,
                                   KEY, 0, &connection->work, &request);
    if (code != MX_SUCCESS)
        connection->state = MXF_UNCONNECTED;
    return mxf_code(code);
}

/* The connection to an address; NULL if the address is unknown. */
static struct mxf_connection *connection_to(struct mxf_endpoint *endpoint, fi_addr_t address)
{
    const struct mxf_av *av = endpoint->av;
    if (!av || address >= av->count || av->entries[address].nic_id == GONE)
        return NULL;
    if (address >= endpoint->connection_room) {
        struct mxf_connection **more = realloc(endpoint->connections, av->room * sizeof *more);
        if (!more)
            return NULL;
        memset(more + endpoint->connection_room, 0, (av->room - endpoint->connection_room) * sizeof *more);
        endpoint->connections = more;
        endpoint->connection_room = av->room;
    }
    struct mxf_connection **place = &endpoint->connections[address];
    if (!*place && (*place = calloc(1, sizeof **place))) {
        (*place)->work.ended = connected;
        (*place)->endpoint = endpoint;
        (*place)->address = av->entries[address];
    }
    return *place;
}

static ssize_t post(struct mxf_endpoint *endpoint, const struct iovec *segments, size_t count, fi_addr_t destination,
                    uint64_t match, uint64_t data, uint64_t flags, void *context)
{
    size_t length = 0;
    if (count > SEGMENTS)
        return -FI_EINVAL;
    for (size_t place = 0; place < count; place++)
        length += segments[place].iov_len;
    if (length > MESSAGE_MAXIMUM || (flags & FI_INJECT && length > INJECT_MAXIMUM))
        return -FI_EMSGSIZE;
    if (!endpoint->enabled)
        return -FI_EOPBADSTATE;
    struct mxf_connection *connection = connection_to(endpoint, destination);
    if (!connection)
        return -FI_EINVAL;
    struct mxf_send *send = malloc(sizeof *send);
    if (!send)
        return -FI_EAGAIN;
    memset(send, 0, offsetof(struct mxf_send, space));
    send->header.ended = header_ended;
    send->bulk.ended = bulk_ended;
    send->endpoint = endpoint;
    send->connection = connection;
    send->context = context;
    send->flags = flags;
    send->match = match;
    send->length = length;
    int copied = length <= COPIED || flags & FI_INJECT;
    char *header = send->space;
    if (copied && HEADER + length > sizeof send->space && !(header = send->memory = malloc(HEADER + length))) {
        free_send(send);
        return -FI_EAGAIN;
    }
    struct mxf_header value = {flags & FI_REMOTE_CQ_DATA ? HEADER_DATA : 0, flags & FI_REMOTE_CQ_DATA ? data : 0};
    send->segment[0] = (mx_segment_t){header, HEADER};
    send->segments = 1;
    for (size_t place = 0; place < count; place++) {
        size_t part = segments[place].iov_len;
        if (!part)
            continue;
        if (copied) {
            memcpy(header + send->segment[0].segment_length, segments[place].iov_base, part);
            send->segment[0].segment_length += (uint32_t)part;
        } else {
            send->segment[send->segments++] = (mx_segment_t){segments[place].iov_base, (uint32_t)part};
        }
    }
    if (length > EAGER) {
        if (enter_long(endpoint, send)) {
            free_send(send);
            return -FI_EAGAIN;
        }
        struct mxf_envelope envelope = {{value.flags | HEADER_ENVELOPE, value.data}, length, send->number};
        memcpy(header, &envelope, sizeof envelope);
        send->segment[0].segment_length = sizeof envelope;
    } else {
        memcpy(header, &value, sizeof value);
    }
    endpoint->unsent++;
    int error = 0;
    if (connection->state == MXF_UNCONNECTED)
        error = start_connect(connection);
    if (!error && (connection->state == MXF_CONNECTING || connection->first)) {
        if (connection->last)
            connection->last->next = send;
        else
            connection->first = send;
        connection->last = send;
    } else if (!error) {
        error = transmit(send);
    }
    if (error) {
        endpoint->unsent--;
        if (send->number)
            endpoint->long_sends[(uint32_t)send->number] = NULL;
        free_send(send);
    }
    return error;
}

static ssize_t post_locked(struct fid_ep *fid, const struct iovec *segments, size_t count, fi_addr_t destination,
                           uint64_t match, uint64_t data, uint64_t flags, void *context)
{
    mxf_enter();
    ssize_t result =
        post(OWNER(fid, mxf_endpoint, fid), segments, count, destination, match, data, flags, context);
    mxf_leave();
    return result;
}

static uint64_t defaults(struct fid_ep *fid)
{
    return OWNER(fid, mxf_endpoint, fid)->default_flags[MXF_SEND];
}

static int bad_tag(uint64_t tag)
{
    return tag >= MATCH_RESERVED;
}

/* Functions of fi_endpoint.h and fi_tagged.h. */

static ssize_t send_(struct fid_ep *fid, const void *buffer, size_t length, void *desc, fi_addr_t to, void *context)
{
    struct iovec segment = {(void *)buffer, length};
    (void)desc;
    return post_locked(fid, &segment, 1, to, MATCH_MESSAGE, 0, defaults(fid), context);
}

static ssize_t sendv(struct fid_ep *fid, const struct iovec *segments, void **desc, size_t count, fi_addr_t to,
                     void *context)
{
    (void)desc;
    return post_locked(fid, segments, count, to, MATCH_MESSAGE, 0, defaults(fid), context);
}

static ssize_t sendmsg_(struct fid_ep *fid, const struct fi_msg *message, uint64_t flags)
{
    return post_locked(fid, message->msg_iov, message->iov_count, message->addr, MATCH_MESSAGE, message->data,
                       flags & ~QUIET, message->context);
}

static ssize_t inject(struct fid_ep *fid, const void *buffer, size_t length, fi_addr_t to)
{
    struct iovec segment = {(void *)buffer, length};
    return post_locked(fid, &segment, 1, to, MATCH_MESSAGE, 0, FI_INJECT | QUIET, NULL);
}

static ssize_t senddata(struct fid_ep *fid, const void *buffer, size_t length, void *desc, uint64_t data, fi_addr_t to,
                        void *context)
{
    struct iovec segment = {(void *)buffer, length};
    (void)desc;
    return post_locked(fid, &segment, 1, to, MATCH_MESSAGE, data, defaults(fid) | FI_REMOTE_CQ_DATA, context);
}

static ssize_t injectdata(struct fid_ep *fid, const void *buffer, size_t length, uint64_t data, fi_addr_t to)
{
    struct iovec segment = {(void *)buffer, length};
    return post_locked(fid, &segment, 1, to, MATCH_MESSAGE, data, FI_INJECT | FI_REMOTE_CQ_DATA | QUIET, NULL);
}

static ssize_t tsend(struct fid_ep *fid, const void *buffer, size_t length, void *desc, fi_addr_t to, uint64_t tag,
                     void *context)
{
    struct iovec segment = {(void *)buffer, length};
    (void)desc;
    return bad_tag(tag) ? -FI_EINVAL : post_locked(fid, &segment, 1, to, tag, 0, defaults(fid), context);
}

static ssize_t tsendv(struct fid_ep *fid, const struct iovec *segments, void **desc, size_t count, fi_addr_t to,
                      uint64_t tag, void *context)
{
    (void)desc;
    return bad_tag(tag) ? -FI_EINVAL : post_locked(fid, segments, count, to, tag, 0, defaults(fid), context);
}

static ssize_t tsendmsg(struct fid_ep *fid, const struct fi_msg_tagged *message, uint64_t flags)
{
    return bad_tag(message->tag) ? -FI_EINVAL
                                 : post_locked(fid, message->msg_iov, message->iov_count, message->addr, message->tag,
                                               message->data, flags & ~QUIET, message->context);
}

static ssize_t tinject(struct fid_ep *fid, const void *buffer, size_t length, fi_addr_t to, uint64_t tag)
{
    struct iovec segment = {(void *)buffer, length};
    return bad_tag(tag) ? -FI_EINVAL : post_locked(fid, &segment, 1, to, tag, 0, FI_INJECT | QUIET, NULL);
}

static ssize_t tsenddata(struct fid_ep *fid, const void *buffer, size_t length, void *desc, uint64_t data, fi_addr_t to,
                         uint64_t tag, void *context)
{
    struct iovec segment = {(void *)buffer, length};
    (void)desc;
    return bad_tag(tag) ? -FI_EINVAL
                        : post_locked(fid, &segment, 1, to, tag, data, defaults(fid) | FI_REMOTE_CQ_DATA, context);
}

static ssize_t tinjectdata(struct fid_ep *fid, const void *buffer, size_t length, uint64_t data, fi_addr_t to,
                           uint64_t tag)
{
    struct iovec segment = {(void *)buffer, length};
    return bad_tag(tag)
               ? -FI_EINVAL
               : post_locked(fid, &segment, 1, to, tag, data, FI_INJECT | FI_REMOTE_CQ_DATA | QUIET, NULL);
}

static ssize_t receive_locked(struct fid_ep *fid, int tagged, const struct iovec *segments, size_t count,
                              fi_addr_t source, uint64_t tag, uint64_t ignore, uint64_t flags, void *context)
{
    mxf_enter();
    ssize_t result = mxf_post(OWNER(fid, mxf_endpoint, fid), tagged, segments, count, source, tag, ignore, flags, context);
    mxf_leave();
    return result;
}

static uint64_t receive_defaults(struct fid_ep *fid)
{
    return OWNER(fid, mxf_endpoint, fid)->default_flags[MXF_RECEIVE];
}

static ssize_t recv_(struct fid_ep *fid, void *buffer, size_t length, void *desc, fi_addr_t from, void *context)
{
    struct iovec segment = {buffer, length};
    (void)desc;
    return receive_locked(fid, 0, &segment, 1, from, 0, 0, receive_defaults(fid), context);
}

static ssize_t recvv(struct fid_ep *fid, const struct iovec *segments, void **desc, size_t count, fi_addr_t from,
                     void *context)
{
    (void)desc;
    return receive_locked(fid, 0, segments, count, from, 0, 0, receive_defaults(fid), context);
}

static ssize_t recvmsg_(struct fid_ep *fid, const struct fi_msg *message, uint64_t flags)
{
    return receive_locked(fid, 0, message->msg_iov, message->iov_count, message->addr, 0, 0, flags, message->context);
}

static ssize_t trecv(struct fid_ep *fid, void *buffer, size_t length, void *desc, fi_addr_t from, uint64_t tag,
                     uint64_t ignore, void *context)
{
    struct iovec segment = {buffer, length};
    (void)desc;
    return receive_locked(fid, 1, &segment, 1, from, tag, ignore, receive_defaults(fid) & ~FI_MULTI_RECV, context);
}

static ssize_t trecvv(struct fid_ep *fid, const struct iovec *segments, void **desc, size_t count, fi_addr_t from,
                      uint64_t tag, uint64_t ignore, void *context)
{
    (void)desc;
    return receive_locked(fid, 1, segments, count, from, tag, ignore, receive_defaults(fid) & ~FI_MULTI_RECV, context);
}

static ssize_t trecvmsg(struct fid_ep *fid, const struct fi_msg_tagged *message, uint64_t flags)
{
    return receive_locked(fid, 1, message->msg_iov, message->iov_count, message->addr, message->tag, message->ignore,
                          flags & ~FI_MULTI_RECV, message->context);
}

struct fi_ops_msg mxf_msg_ops = {sizeof mxf_msg_ops, recv_,  recvv,    recvmsg_,  send_,
                                 sendv,              sendmsg_, inject, senddata, injectdata};
struct fi_ops_tagged mxf_tagged_ops = {sizeof mxf_tagged_ops, trecv,    trecvv,  trecvmsg,  tsend,
                                       tsendv,                tsendmsg, tinject, tsenddata, tinjectdata};

/* Forget all sends of an endpoint that is closed. */
void mxf_free_sends(struct mxf_endpoint *endpoint)
{
    for (size_t place = 0; place < endpoint->connection_room; place++)
        if (endpoint->connections[place]) {
            fail_queue(endpoint->connections[place], FI_ECANCELED);
            free(endpoint->connections[place]);
        }
    for (size_t place = 0; place < endpoint->long_room; place++)
        if (endpoint->long_sends[place])
            free_send(endpoint->long_sends[place]);
    free(endpoint->connections);
    free(endpoint->long_sends);
}
