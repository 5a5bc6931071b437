/* The calls of fi_endpoint.h and fi_tagged.h: each is a send (sends.c) or a receive (receives.c) with some arguments.
 *
 * Calls without flags use those of the endpoint (its attributes, or fi_control), calls with a structure only those that
 * they are given. Injects have no completion, whatever the queue's options: they are QUIET. */

#include "provider.h"

static ssize_t post_locked(struct fid_ep *fid, int tagged, const struct iovec *segments, size_t count, fi_addr_t to,
                           uint64_t tag, uint64_t data, uint64_t flags, void *context)
{
    mxf_enter();
    ssize_t result = mxf_send(OWNER(fid, mxf_endpoint, fid),
                              &(struct mxf_operation){segments, count, to, tagged, tag, data, flags, context});
    mxf_leave();
    return result;
}

static uint64_t defaults(struct fid_ep *fid)
{
    return OWNER(fid, mxf_endpoint, fid)->default_flags[MXF_SEND];
}

static ssize_t send_(struct fid_ep *fid, const void *buffer, size_t length, void *desc, fi_addr_t to, void *context)
{
    struct iovec segment = {(void *)buffer, length};
    (void)desc;
    return post_locked(fid, 0, &segment, 1, to, 0, 0, defaults(fid), context);
}

static ssize_t sendv(struct fid_ep *fid, const struct iovec *segments, void **desc, size_t count, fi_addr_t to,
                     void *context)
{
    (void)desc;
    return post_locked(fid, 0, segments, count, to, 0, 0, defaults(fid), context);
}

static ssize_t sendmsg_(struct fid_ep *fid, const struct fi_msg *message, uint64_t flags)
{
    return post_locked(fid, 0, message->msg_iov, message->iov_count, message->addr, 0, message->data,
                       flags & ~QUIET, message->context);
}

static ssize_t inject(struct fid_ep *fid, const void *buffer, size_t length, fi_addr_t to)
{
    struct iovec segment = {(void *)buffer, length};
    return post_locked(fid, 0, &segment, 1, to, 0, 0, FI_INJECT | QUIET, NULL);
}

static ssize_t senddata(struct fid_ep *fid, const void *buffer, size_t length, void *desc, uint64_t data, fi_addr_t to,
                        void *context)
{
    struct iovec segment = {(void *)buffer, length};
    (void)desc;
    return post_locked(fid, 0, &segment, 1, to, 0, data, defaults(fid) | FI_REMOTE_CQ_DATA, context);
}

static ssize_t injectdata(struct fid_ep *fid, const void *buffer, size_t length, uint64_t data, fi_addr_t to)
{
    struct iovec segment = {(void *)buffer, length};
    return post_locked(fid, 0, &segment, 1, to, 0, data, FI_INJECT | FI_REMOTE_CQ_DATA | QUIET, NULL);
}

static ssize_t tsend(struct fid_ep *fid, const void *buffer, size_t length, void *desc, fi_addr_t to, uint64_t tag,
                     void *context)
{
    struct iovec segment = {(void *)buffer, length};
    (void)desc;
    return post_locked(fid, 1, &segment, 1, to, tag, 0, defaults(fid), context);
}

static ssize_t tsendv(struct fid_ep *fid, const struct iovec *segments, void **desc, size_t count, fi_addr_t to,
                      uint64_t tag, void *context)
{
    (void)desc;
    return post_locked(fid, 1, segments, count, to, tag, 0, defaults(fid), context);
}

static ssize_t tsendmsg(struct fid_ep *fid, const struct fi_msg_tagged *message, uint64_t flags)
{
    return post_locked(fid, 1, message->msg_iov, message->iov_count, message->addr, message->tag,
                                               message->data, flags & ~QUIET, message->context);
}

static ssize_t tinject(struct fid_ep *fid, const void *buffer, size_t length, fi_addr_t to, uint64_t tag)
{
    struct iovec segment = {(void *)buffer, length};
    return post_locked(fid, 1, &segment, 1, to, tag, 0, FI_INJECT | QUIET, NULL);
}

static ssize_t tsenddata(struct fid_ep *fid, const void *buffer, size_t length, void *desc, uint64_t data, fi_addr_t to,
                         uint64_t tag, void *context)
{
    struct iovec segment = {(void *)buffer, length};
    (void)desc;
    return post_locked(fid, 1, &segment, 1, to, tag, data, defaults(fid) | FI_REMOTE_CQ_DATA, context);
}

static ssize_t tinjectdata(struct fid_ep *fid, const void *buffer, size_t length, uint64_t data, fi_addr_t to,
                           uint64_t tag)
{
    struct iovec segment = {(void *)buffer, length};
    return post_locked(fid, 1, &segment, 1, to, tag, data, FI_INJECT | FI_REMOTE_CQ_DATA | QUIET, NULL);
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
