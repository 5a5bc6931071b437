/* Reads and writes of remote memory: the initiator's side. regions.c is the target's.
 *
 * Theory of operation
 * -------------------
 * Both are sends (sends.c) with a number and match information of their own. Their completion means that the data is in
 * the memory of the target, or of the initiator, whichever completion level the program asks for: the target replies to
 * each write, and thus reports a wrong key or range, too.
 *
 *   - A write whose payload fits the message has it behind its header. Otherwise the header is an envelope, which the
 *     target grants as a receiver does; the bulk goes from one memory to the other.
 *   - A read chooses the number of a bulk, and posts a receive with it before its request leaves. The target sends the
 *     bulk, or a reply with an error, which cancels the receive. */

#include "provider.h"

static void read_ended(struct mxf_work *work, const mx_status_t *status)
{
    struct mxf_send *send = OWNER(work, mxf_send, bulk);
    send->pending--;
    send->receiving = 0;
    send->answered = 1;
    if (!mxf_whole(status, send->length, &send->connection->address) && !send->error)
        send->error = status->code == MX_STATUS_SUCCESS ? FI_EIO : mxf_error(status->code);
    mxf_end_if_done(send);
}

int mxf_start_read(struct mxf_send *send)
{
    send->bulk.ended = read_ended;
    mx_return_t code = mx_irecv(send->endpoint->mx, send->segment + 1, send->segments - 1, MATCH_BULK | send->bulk_number,
                                MX_MATCH_MASK_NONE, &send->bulk, &send->receive);
    if (code != MX_SUCCESS)
        return mxf_code(code);
    send->receiving = 1;
    send->pending++;
    return 0;
}

void mxf_cancel_read(struct mxf_send *send)
{
    uint32_t cancelled = 0;
    if (!send->receiving || mx_cancel(send->endpoint->mx, &send->receive, &cancelled) != MX_SUCCESS || !cancelled)
        return;
    send->receiving = 0;
    send->pending--;
}

void mxf_replied(struct mxf_endpoint *endpoint, const struct mxf_address *source, const void *bytes, size_t length)
{
    const char *values = (const char *)bytes + sizeof(struct mxf_reply);
    struct mxf_reply reply;
    memcpy(&reply, bytes, sizeof reply);
    struct mxf_send *send = mxf_numbered(endpoint, reply.header.data, source);
    if (!send || send->event == MXF_SEND || (send->event == MXF_READ && !send->atomic && !reply.error) ||
        length != sizeof reply + (send->event == MXF_READ && send->atomic && !reply.error ? send->length : 0)) {
        WARN("an endpoint replies to an access that was not sent to it");
        return;
    }
    if (reply.error && !send->error)
        send->error = reply.error < 4096 ? (int)reply.error : FI_EIO;
    for (uint32_t place = 1; send->atomic && !reply.error && place < send->segments; place++) {
        memcpy(send->segment[place].segment_ptr, values, send->segment[place].segment_length);
        values += send->segment[place].segment_length;
    }
    send->answered = 1;
    mxf_end_if_done(send);
}

static ssize_t start(struct mxf_endpoint *endpoint, const struct mxf_operation *operation, uint64_t address, uint64_t key,
                     enum mxf_event event)
{
    struct mxf_send *send;
    int data = event == MXF_WRITE && operation->flags & FI_REMOTE_CQ_DATA;
    struct mxf_access access = {.key = key, .address = address};
    if (operation->flags & FI_FENCE)
        return -FI_EOPNOTSUPP;
    ssize_t error = mxf_new_send(endpoint, operation, event, sizeof access, &send);
    if (error)
        return error;
    error = mxf_number(send);
    if (!error && event == MXF_READ && (send->bulk_number = mxf_take_bulk(endpoint)) == NO_BULK)
        error = -FI_EAGAIN;
    if (error) {
        mxf_free_send(send);
        return error;
    }
    send->match = MATCH_ACCESS;
    if (event == MXF_READ || send->length > EAGER_WRITE)
        send->first = 1;
    access.header.flags = event == MXF_READ ? HEADER_READ : HEADER_WRITE | (data ? HEADER_DATA : 0);
    access.header.data = event == MXF_READ ? send->bulk_number : data ? operation->data : 0;
    access.length = send->length;
    access.number = send->number;
    memcpy(send->segment[0].segment_ptr, &access, sizeof access);
    return mxf_submit(send);
}

/* With the operands as the data of an injected message. */
static ssize_t start_atomic(struct mxf_endpoint *endpoint, const struct mxf_access *content, const struct mxf_operation *operation,
                            const struct iovec *results, size_t count)
{
    struct mxf_access access = *content;
    struct mxf_send *send;
    ssize_t error = mxf_new_send(endpoint, operation, MXF_WRITE, sizeof access, &send);
    if (error)
        return error;
    if ((error = mxf_number(send))) {
        mxf_free_send(send);
        return error;
    }
    send->atomic = 1;
    send->event = count ? MXF_READ : MXF_WRITE;
    send->match = MATCH_ACCESS;
    send->length = access.length;
    access.number = send->number;
    memcpy(send->segment[0].segment_ptr, &access, sizeof access);
    for (size_t place = 0; place < count; place++)
        send->segment[send->segments++] = (mx_segment_t){results[place].iov_base, (uint32_t)results[place].iov_len};
    return mxf_submit(send);
}

ssize_t mxf_start_atomic(struct fid_ep *fid, const struct mxf_access *access, const struct mxf_operation *operation,
                         const struct iovec *results, size_t count)
{
    mxf_enter();
    ssize_t error = start_atomic(OWNER(fid, mxf_endpoint, fid), access, operation, results, count);
    mxf_leave();
    return error;
}

static ssize_t start_locked(struct fid_ep *fid, enum mxf_event event, const struct mxf_operation *operation, uint64_t address,
                            uint64_t key)
{
    mxf_enter();
    ssize_t result = start(OWNER(fid, mxf_endpoint, fid), operation, address, key, event);
    mxf_leave();
    return result;
}

/* The calls of fi_rma.h. */

static uint64_t defaults(struct fid_ep *fid)
{
    return OWNER(fid, mxf_endpoint, fid)->default_flags[MXF_SEND];
}

static ssize_t readv_(struct fid_ep *fid, const struct iovec *segments, void **desc, size_t count, fi_addr_t from,
                      uint64_t address, uint64_t key, void *context)
{
    (void)desc;
    struct mxf_operation operation = {segments, count, from, 0, 0, 0, defaults(fid) & ~(uint64_t)FI_INJECT, context};
    return start_locked(fid, MXF_READ, &operation, address, key);
}

static ssize_t read_(struct fid_ep *fid, void *buffer, size_t length, void *desc, fi_addr_t from, uint64_t address,
                     uint64_t key, void *context)
{
    return readv_(fid, &(struct iovec){buffer, length}, &desc, 1, from, address, key, context);
}

static ssize_t message(struct fid_ep *fid, enum mxf_event event, const struct fi_msg_rma *message, uint64_t flags)
{
    size_t length = 0;
    for (size_t place = 0; place < message->iov_count && place < SEGMENTS; place++)
        length += message->msg_iov[place].iov_len;
    if (message->rma_iov_count != 1 || message->rma_iov->len != length)
        return -FI_EINVAL;
    struct mxf_operation operation = {message->msg_iov, message->iov_count, message->addr, 0, 0, message->data,
                                      flags & ~QUIET, message->context};
    return start_locked(fid, event, &operation, message->rma_iov->addr, message->rma_iov->key);
}

static ssize_t readmsg(struct fid_ep *fid, const struct fi_msg_rma *read, uint64_t flags)
{
    return message(fid, MXF_READ, read, flags & ~(uint64_t)FI_INJECT);
}

static ssize_t writev_(struct fid_ep *fid, const struct iovec *segments, void **desc, size_t count, fi_addr_t to,
                       uint64_t address, uint64_t key, void *context)
{
    (void)desc;
    struct mxf_operation operation = {segments, count, to, 0, 0, 0, defaults(fid), context};
    return start_locked(fid, MXF_WRITE, &operation, address, key);
}

static ssize_t write_flagged(struct fid_ep *fid, const void *buffer, size_t length, uint64_t data, fi_addr_t to,
                             uint64_t address, uint64_t key, uint64_t flags, void *context)
{
    struct iovec segment = {(void *)buffer, length};
    struct mxf_operation operation = {&segment, 1, to, 0, 0, data, flags, context};
    return start_locked(fid, MXF_WRITE, &operation, address, key);
}

static ssize_t write_(struct fid_ep *fid, const void *buffer, size_t length, void *desc, fi_addr_t to, uint64_t address,
                      uint64_t key, void *context)
{
    (void)desc;
    return write_flagged(fid, buffer, length, 0, to, address, key, defaults(fid), context);
}

static ssize_t writemsg(struct fid_ep *fid, const struct fi_msg_rma *write, uint64_t flags)
{
    return message(fid, MXF_WRITE, write, flags);
}

static ssize_t inject(struct fid_ep *fid, const void *buffer, size_t length, fi_addr_t to, uint64_t address, uint64_t key)
{
    return write_flagged(fid, buffer, length, 0, to, address, key, FI_INJECT | QUIET, NULL);
}

static ssize_t writedata(struct fid_ep *fid, const void *buffer, size_t length, void *desc, uint64_t data, fi_addr_t to,
                         uint64_t address, uint64_t key, void *context)
{
    (void)desc;
    return write_flagged(fid, buffer, length, data, to, address, key, defaults(fid) | FI_REMOTE_CQ_DATA, context);
}

static ssize_t injectdata(struct fid_ep *fid, const void *buffer, size_t length, uint64_t data, fi_addr_t to,
                          uint64_t address, uint64_t key)
{
    return write_flagged(fid, buffer, length, data, to, address, key, FI_INJECT | FI_REMOTE_CQ_DATA | QUIET, NULL);
}

struct fi_ops_rma mxf_rma_ops = {sizeof mxf_rma_ops, read_,    readv_, readmsg,   write_,
                                 writev_,            writemsg, inject, writedata, injectdata};
