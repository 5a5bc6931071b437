/* Sends: connections, messages with and without an envelope, and the bulk of long ones.
 *
 * Theory of operation
 * -------------------
 * A send is one or two requests of MX: its first message, and for a long one the bulk that the receiver's grant asks
 * for. It ends when neither is pending and the partner has answered, if it has to (granted an envelope; replied to an
 * access of remote_access.c, which are sends, too), or when one of them fails.
 *
 * A partner names a send in its answer by a number: the place in a table, and how many numbers were given before. Numbers
 * are not used again, and an answer counts only if it comes from the endpoint to which the send went: a late or forged
 * one finds nothing.
 *
 * The first send to an address starts a connect, and later ones queue behind it. A send that fails leaves its connection
 * unconnected, since the partner may have been opened again. If the partner has gone, it fails those that wait for its
 * answers, too; if no send shows that, probes do (probes.c). */

#include "provider.h"

struct mxf_send *mxf_numbered(struct mxf_endpoint *endpoint, uint64_t number, const struct mxf_address *partner)
{
    uint32_t place = (uint32_t)number;
    struct mxf_send *send = place < endpoint->numbered_room ? endpoint->numbered[place] : NULL;
    /* Numbers can be guessed before they are sent. */
    return send && send->number == number && send->transmitted && send->connection->address.nic_id == partner->nic_id &&
                   send->connection->address.number == partner->number
               ? send
               : NULL;
}

/* A free place in the table of sends with numbers. */
static int find_place(struct mxf_endpoint *endpoint, size_t *found)
{
    size_t room = endpoint->numbered_room;
    for (size_t tried = 0; tried < room; tried++) {
        *found = (endpoint->numbered_next + tried) % room;
        if (!endpoint->numbered[*found])
            return 0;
    }
    size_t larger = room ? 2 * room : 64;
    struct mxf_send **more = realloc(endpoint->numbered, larger * sizeof *more);
    if (!more)
        return -FI_EAGAIN;
    memset(more + room, 0, (larger - room) * sizeof *more);
    endpoint->numbered = more;
    endpoint->numbered_room = larger;
    *found = room;
    return 0;
}

int mxf_number(struct mxf_send *send)
{
    static uint32_t uses;
    struct mxf_endpoint *endpoint = send->endpoint;
    size_t place;
    int error = find_place(endpoint, &place);
    if (error)
        return error;
    endpoint->numbered_next = place + 1;
    endpoint->numbered[place] = send;
    /* 0 means no number. */
    uses += uses == UINT32_MAX ? 2 : 1;
    send->number = (uint64_t)uses << 32 | place;
    return 0;
}

void mxf_free_send(struct mxf_send *send)
{
    if (send->number)
        send->endpoint->numbered[(uint32_t)send->number] = NULL;
    if (send->bulk_number != NO_BULK)
        mxf_free_bulk(send->endpoint, send->bulk_number);
    send->endpoint->announced -= (size_t)send->announced;
    mxf_free(send->endpoint, send->memory);
    mxf_free(send->endpoint, send);
}

static uint64_t kind(const struct mxf_send *send)
{
    static const uint64_t accesses[] = {[MXF_READ] = FI_READ, [MXF_WRITE] = FI_WRITE};
    if (send->event != MXF_SEND)
        return accesses[send->event] | (send->atomic ? FI_ATOMIC : FI_RMA);
    return FI_SEND | (send->tagged ? FI_TAGGED : FI_MSG);
}

void mxf_end_if_done(struct mxf_send *send)
{
    struct mxf_endpoint *endpoint = send->endpoint;
    if (send->error)
        mxf_cancel_read(send);
    if (send->pending || (!send->answered && !send->error))
        return;
    endpoint->unsent--;
    send->connection->unsent--;
    struct mxf_completion completion = {.context = send->context,
                                        .flags = (send->flags & (QUIET | FI_COMPLETION)) | kind(send),
                                        .length = send->length,
                                        .source = FI_ADDR_NOTAVAIL,
                                        .error = send->error};
    if (!endpoint->closing)
        mxf_complete(endpoint, send->event, &completion);
    mxf_free_send(send);
}

void mxf_lose_sends(struct mxf_connection *connection, int error)
{
    struct mxf_endpoint *endpoint = connection->endpoint;
    for (size_t place = 0; place < endpoint->numbered_room; place++) {
        struct mxf_send *send = endpoint->numbered[place];
        if (!send || send->connection != connection || !send->transmitted || send->answered || send->error)
            continue;
        send->error = error;
        mxf_end_if_done(send);
    }
}

/* The partner may have been opened again: the next send connects again, unless an earlier one does already. */
static void disconnect(struct mxf_connection *connection)
{
    if (connection->state == MXF_CONNECTED)
        connection->state = MXF_UNCONNECTED;
}

static void request_ended(struct mxf_send *send, const mx_status_t *status)
{
    struct mxf_connection *connection = send->connection;
    send->pending--;
    /* Within a host, the sender, too, gets the status that the receive was too short. */
    int failed = mxf_failed(status->code);
    if (failed) {
        send->error = mxf_error(status->code);
        disconnect(connection);
    }
    mxf_end_if_done(send);
    if (failed && mxf_gone(status->code))
        mxf_lose_sends(connection, mxf_error(status->code));
}

static void header_ended(struct mxf_work *work, const mx_status_t *status)
{
    request_ended(OWNER(work, mxf_send, header), status);
}

static void bulk_ended(struct mxf_work *work, const mx_status_t *status)
{
    request_ended(OWNER(work, mxf_send, bulk), status);
}

/* Hand segments to MX; they are received synchronously if the program asks for delivery, and no answer shows it. */
static int transmit_segments(struct mxf_send *send, mx_segment_t *segments, uint32_t count, uint64_t match,
                             struct mxf_work *work)
{
    int delivered = send->event == MXF_SEND && send->flags & FI_DELIVERY_COMPLETE && send->answered;
    mx_request_t request;
    send->pending++;
    mx_return_t code = (delivered ? mx_issend : mx_isend)(send->endpoint->mx, segments, count,
                                                          send->connection->partner, match, work, &request);
    if (code == MX_SUCCESS)
        return 0;
    send->pending--;
    if (code == MX_BAD_ADDR_LIST || code == MX_BAD_ENDPOINT)
        disconnect(send->connection);
    return mxf_code(code);
}

/* Hand the first message of a send to MX. */
static int transmit(struct mxf_send *send)
{
    int error = send->event == MXF_READ && !send->atomic ? mxf_start_read(send) : 0;
    send->transmitted = 1;
    return error ? error : transmit_segments(send, send->segment, send->first, send->match, &send->header);
}

/* Send the bulk: what the receiver takes of the payload. */
static int transmit_bulk(struct mxf_send *send, const struct mxf_grant *grant)
{
    size_t left = grant->length < send->length ? grant->length : send->length;
    mx_segment_t segments[SEGMENTS];
    uint32_t count = 0;
    for (uint32_t place = 1; place < send->segments && left; place++) {
        segments[count] = send->segment[place];
        if (segments[count].segment_length > left)
            segments[count].segment_length = (uint32_t)left;
        left -= segments[count++].segment_length;
    }
    return transmit_segments(send, segments, count, MATCH_BULK | grant->bulk, &send->bulk);
}

void mxf_granted(struct mxf_endpoint *endpoint, const struct mxf_address *source, const struct mxf_grant *grant)
{
    struct mxf_send *send = mxf_numbered(endpoint, grant->header.data, source);
    if (!send || send->granted || send->atomic || send->event == MXF_READ || send->first == send->segments) {
        WARN("an endpoint grants a message that was not sent to it");
        return;
    }
    if (grant->bulk != NO_BULK && grant->bulk >= BULKS)
        return;
    send->granted = 1;
    send->answered |= send->event == MXF_SEND;
    int error = grant->bulk == NO_BULK ? 0 : transmit_bulk(send, grant);
    if (error)
        send->error = -error;
    mxf_end_if_done(send);
}

static void fail_queue(struct mxf_connection *connection, int error)
{
    struct mxf_send *send;
    connection->state = MXF_UNCONNECTED;
    while ((send = connection->first)) {
        connection->first = send->next;
        send->error = error;
        mxf_end_if_done(send);
    }
    connection->last = NULL;
}

static void connected(struct mxf_work *work, const mx_status_t *status)
{
    struct mxf_connection *connection = OWNER(work, mxf_connection, work);
    struct mxf_send *send;
    connection->endpoint->urgent--;
    if (status->code == MX_STATUS_BAD_KEY)
        WARN("an endpoint refuses messages: it is that of a plain MX program, or of another version");
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
            mxf_end_if_done(send);
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
    else
        mxf_urge(connection->endpoint);
    return mxf_code(code);
}

/* The connection to an address; NULL if the address is unknown. */
static struct mxf_connection *connection_to(struct mxf_endpoint *endpoint, fi_addr_t address)
{
    const struct mxf_av *av = endpoint->av;
    if (!mxf_known(av, address))
        return NULL;
    /* Open MPI inserts an address once per thread. Messages to it must not overtake each other, so there is one
     * connection. */
    size_t first = av->entries[address].first;
    if (first >= endpoint->connection_room) {
        struct mxf_connection **more = realloc(endpoint->connections, av->room * sizeof *more);
        if (!more)
            return NULL;
        memset(more + endpoint->connection_room, 0, (av->room - endpoint->connection_room) * sizeof *more);
        endpoint->connections = more;
        endpoint->connection_room = av->room;
    }
    struct mxf_connection **place = &endpoint->connections[first];
    if (!*place && (*place = mxf_allocate(endpoint, sizeof **place)))
        **place = (struct mxf_connection){
            .work.ended = connected, .endpoint = endpoint, .address = av->entries[first].address};
    return *place;
}

/* The length of the payload, or an error. */
static ssize_t measure(const struct mxf_operation *operation)
{
    size_t most = operation->flags & FI_INJECT ? INJECT_MAXIMUM : MESSAGE_MAXIMUM, length = 0;
    if (operation->count > SEGMENTS)
        return -FI_EINVAL;
    for (size_t place = 0; place < operation->count; place++) {
        if (operation->segments[place].iov_len > most - length)
            return -FI_EMSGSIZE;
        length += operation->segments[place].iov_len;
    }
    return (ssize_t)length;
}

/* Append the payload to the header, or list its segments. */
static void add_payload(struct mxf_send *send, const struct mxf_operation *operation, int copied)
{
    mx_segment_t *header = &send->segment[0];
    for (size_t place = 0; place < operation->count; place++) {
        struct iovec part = operation->segments[place];
        if (copied && part.iov_len) {
            memcpy((char *)header->segment_ptr + header->segment_length, part.iov_base, part.iov_len);
            header->segment_length += (uint32_t)part.iov_len;
        } else if (part.iov_len) {
            send->segment[send->segments++] = (mx_segment_t){part.iov_base, (uint32_t)part.iov_len};
        }
    }
    send->first = send->segments;
}

ssize_t mxf_new_send(struct mxf_endpoint *endpoint, const struct mxf_operation *operation, enum mxf_event event,
                     size_t header, struct mxf_send **result)
{
    ssize_t measured = measure(operation);
    if (measured < 0 || !endpoint->enabled)
        return measured < 0 ? measured : -FI_EOPBADSTATE;
    size_t length = (size_t)measured;
    struct mxf_connection *connection = connection_to(endpoint, operation->partner);
    if (!connection)
        return -FI_EINVAL;
    struct mxf_send *send = mxf_allocate(endpoint, sizeof *send);
    if (!send)
        return -FI_EAGAIN;
    memset(send, 0, offsetof(struct mxf_send, space));
    send->header.ended = header_ended;
    send->bulk.ended = bulk_ended;
    send->bulk_number = NO_BULK;
    send->endpoint = endpoint;
    send->connection = connection;
    send->event = event;
    send->context = operation->context;
    send->flags = operation->flags;
    send->tagged = operation->tagged;
    send->length = length;
    /* MX copies an injected message itself if it has it now. It sends one segment faster than two. A read has no payload, but
     * memory for it. Operands are copied. */
    int passed = !header && connection->state == MXF_CONNECTED && !connection->first &&
                 !(operation->flags & FI_DELIVERY_COMPLETE);
    int copied = event != MXF_READ && ((operation->flags & FI_INJECT && !passed) ||
                                       (header && header + length <= sizeof send->space));
    char *first = send->space;
    if (copied && header + length > sizeof send->space && !(first = send->memory = mxf_allocate(endpoint, header + length))) {
        mxf_free_send(send);
        return -FI_EAGAIN;
    }
    send->segment[0] = (mx_segment_t){first, (uint32_t)header};
    send->segments = header || copied ? 1 : 0;
    add_payload(send, operation, copied);
    *result = send;
    return 0;
}

ssize_t mxf_submit(struct mxf_send *send)
{
    struct mxf_connection *connection = send->connection;
    ssize_t error = 0;
    send->endpoint->unsent++;
    connection->unsent++;
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
        mxf_cancel_read(send);
        send->endpoint->unsent--;
        connection->unsent--;
        mxf_free_send(send);
    }
    return error;
}

static ssize_t send_in_envelope(struct mxf_send *send, const struct mxf_operation *operation)
{
    uint64_t data = operation->flags & FI_REMOTE_CQ_DATA ? HEADER_DATA : 0;
    uint64_t tagged = operation->tagged ? HEADER_TAGGED : 0;
    mx_segment_t *first = &send->segment[0];
    ssize_t error = send->answered ? 0 : mxf_number(send);
    if (error) {
        mxf_free_send(send);
        return error;
    }
    struct mxf_envelope envelope = {{data | tagged, data ? operation->data : 0}, operation->tag, send->length, send->number};
    memcpy(first->segment_ptr, &envelope, sizeof envelope);
    if (!send->answered && send->segments == 1)
        /* The payload was copied, but does not follow. */
        send->segment[send->segments++] = (mx_segment_t){(char *)first->segment_ptr + sizeof envelope, (uint32_t)send->length};
    if (!send->answered) {
        first->segment_length = sizeof envelope;
        send->first = 1;
    }
    return mxf_submit(send);
}

ssize_t mxf_send(struct mxf_endpoint *endpoint, const struct mxf_operation *operation)
{
    ssize_t length = measure(operation);
    struct mxf_send *send;
    uint64_t match;
    /* MX announces a message that is long or synchronous, and the receiver's MX keeps a region for it. */
    int delivered = !!(operation->flags & FI_DELIVERY_COMPLETE), announced = length > EAGER || delivered;
    int bare = (!announced || endpoint->announced < ANNOUNCED) && mxf_pack(operation, &match);
    ssize_t error = mxf_new_send(endpoint, operation, MXF_SEND, bare ? 0 : sizeof(struct mxf_envelope), &send);
    if (error)
        return error;
    send->announced = bare && announced;
    endpoint->announced += (size_t)send->announced;
    send->match = bare ? match : MATCH_ENVELOPE;
    send->answered = bare || (send->length <= ENCLOSED && !delivered);
    return bare ? mxf_submit(send) : send_in_envelope(send, operation);
}
