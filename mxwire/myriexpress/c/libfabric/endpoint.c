/* Endpoints: their options, what is bound to them, and their end.
 *
 * An endpoint of MX is opened when it is enabled. Closing waits for sends that were reported as sent, ends the endpoint's
 * thread, then closes the endpoint of MX, after which no handler and no end of a request is called, and frees what was
 * left (memory.c). */

#include "provider.h"

/* Let the queues and counters of an endpoint that has been opened wake their programs. */
static int watch(struct mxf_endpoint *endpoint)
{
    int error = 0;
    for (int event = 0; event < MXF_EVENTS && !error; event++) {
        if (event < MXF_QUEUES && endpoint->cq[event])
            error = mxf_wait_add(endpoint->cq[event]->endpoints.wait, endpoint);
        if (endpoint->counter[event] && !error)
            error = mxf_wait_add(endpoint->counter[event]->endpoints.wait, endpoint);
    }
    return error;
}

static int enable(struct mxf_endpoint *endpoint)
{
    mx_param_t returns = {.key = MX_PARAM_ERROR_HANDLER, .val.error_handler = MX_ERRORS_RETURN};
    mx_endpoint_addr_t own;
    if (endpoint->enabled)
        return 0;
    if ((endpoint->caps & FI_SEND && !endpoint->cq[MXF_SEND] && !endpoint->counter[MXF_SEND]) ||
        (endpoint->caps & FI_RECV && !endpoint->cq[MXF_RECEIVE] && !endpoint->counter[MXF_RECEIVE]))
        return -FI_ENOCQ;
    if (!endpoint->av)
        return -FI_EOPBADSTATE;
    mx_return_t code =
        mx_open_endpoint(endpoint->domain->board, endpoint->wanted.number, KEY, &returns, 1, &endpoint->mx);
    if (code != MX_SUCCESS)
        return mxf_code(code);
    endpoint->enabled = 1;
    /* At once: a message that finds neither would stay in the queue of MX. */
    code = mx_register_unexp_handler(endpoint->mx, mxf_arrived, endpoint);
    if (code == MX_SUCCESS)
        code = mx__register_consumer(endpoint->mx, mxf_consume, endpoint);
    mx_get_endpoint_addr(endpoint->mx, &own);
    mx_decompose_endpoint_addr(own, &endpoint->own.nic_id, &endpoint->own.number);
    endpoint->own.key = KEY;
    int error = code == MX_SUCCESS ? mxf_join(&endpoint->domain->endpoints, endpoint) : mxf_code(code);
    if (!error)
        error = watch(endpoint);
    if (!error && endpoint->domain->automatic)
        mxf_start_thread(endpoint);
    return error;
}

static int control(struct fid *fid, int command, void *argument)
{
    struct mxf_endpoint *endpoint = OWNER(fid, mxf_endpoint, fid.fid);
    int result = -FI_ENOSYS;
    mxf_enter();
    if (command == FI_ENABLE) {
        result = enable(endpoint);
    } else if (command == FI_SETOPSFLAG || command == FI_GETOPSFLAG) {
        uint64_t *flags = argument;
        enum mxf_event event = *flags & FI_RECV ? MXF_RECEIVE : MXF_SEND;
        result = 0;
        if (command == FI_GETOPSFLAG)
            *flags = endpoint->default_flags[event];
        else if (*flags & ~(OPERATION_FLAGS | FI_TRANSMIT | FI_RECV))
            result = -FI_EINVAL;
        else
            endpoint->default_flags[event] = *flags & OPERATION_FLAGS;
    }
    mxf_leave();
    return result;
}

static int bind_queue(struct mxf_endpoint *endpoint, struct mxf_cq *cq, uint64_t flags)
{
    static const uint64_t kinds[] = {[MXF_SEND] = FI_TRANSMIT, [MXF_RECEIVE] = FI_RECV};
    if (!(flags & (FI_TRANSMIT | FI_RECV)) || flags & ~(FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION))
        return -FI_EBADFLAGS;
    for (int event = 0; event < MXF_QUEUES; event++) {
        if (!(flags & kinds[event]))
            continue;
        if (endpoint->cq[event])
            return -FI_EINVAL;
        endpoint->cq[event] = cq;
        endpoint->selective[event] = !!(flags & FI_SELECTIVE_COMPLETION);
        cq->users++;
    }
    return mxf_join(&cq->endpoints, endpoint);
}

static int bind_counter(struct mxf_endpoint *endpoint, struct mxf_counter *counter, uint64_t flags)
{
    static const uint64_t kinds[] = {[MXF_SEND] = FI_SEND,
                                     [MXF_RECEIVE] = FI_RECV,
                                     [MXF_READ] = FI_READ,
                                     [MXF_WRITE] = FI_WRITE,
                                     [MXF_REMOTE_READ] = FI_REMOTE_READ,
                                     [MXF_REMOTE_WRITE] = FI_REMOTE_WRITE};
    for (int event = 0; event < MXF_EVENTS; event++) {
        if (!(flags & kinds[event]))
            continue;
        if (endpoint->counter[event])
            return -FI_EINVAL;
        endpoint->counter[event] = counter;
        counter->users++;
    }
    return mxf_join(&counter->endpoints, endpoint);
}

static int bind_av(struct mxf_endpoint *endpoint, struct mxf_av *av)
{
    if (endpoint->av)
        return -FI_EINVAL;
    endpoint->av = av;
    av->users++;
    return 0;
}

static int bind_to(struct fid *fid, struct fid *other, uint64_t flags)
{
    struct mxf_endpoint *endpoint = OWNER(fid, mxf_endpoint, fid.fid);
    int result = 0;
    mxf_enter();
    switch (other->fclass) {
    case FI_CLASS_CQ:
        result = bind_queue(endpoint, OWNER(other, mxf_cq, fid.fid), flags);
        break;
    case FI_CLASS_CNTR:
        result = bind_counter(endpoint, OWNER(other, mxf_counter, fid.fid), flags);
        break;
    case FI_CLASS_AV:
        result = bind_av(endpoint, OWNER(other, mxf_av, fid.fid));
        break;
    case FI_CLASS_EQ:
        break;
    default:
        result = -FI_ENOSYS;
    }
    mxf_leave();
    return result;
}

static int close_endpoint(struct fid *fid)
{
    struct mxf_endpoint *endpoint = OWNER(fid, mxf_endpoint, fid.fid);
    uint64_t deadline = mxf_now() + CLOSE_MS;
    mx_request_t request;
    uint32_t found;
    mxf_enter();
    for (mxf_progress(endpoint); endpoint->unsent && mxf_now() < deadline; mxf_progress(endpoint)) {
        mxf_leave();
        mx_return_t code = mx_peek(endpoint->mx, 10, &request, &found);
        mxf_enter();
        if (code != MX_SUCCESS)
            break;
    }
    endpoint->closing = 1;
    mxf_leave();
    mxf_stop_thread(endpoint);
    if (endpoint->enabled)
        mx_close_endpoint(endpoint->mx);
    mxf_enter();
    mxf_part(&endpoint->domain->endpoints, endpoint);
    for (int event = 0; event < MXF_EVENTS; event++) {
        struct mxf_cq *cq = event < MXF_QUEUES ? endpoint->cq[event] : NULL;
        struct mxf_counter *counter = endpoint->counter[event];
        if (cq) {
            mxf_part(&cq->endpoints, endpoint);
            cq->users--;
        }
        if (counter) {
            mxf_part(&counter->endpoints, endpoint);
            counter->users--;
        }
    }
    if (endpoint->av)
        endpoint->av->users--;
    endpoint->domain->users--;
    mxf_leave_regions(endpoint);
    if (endpoint->stayed)
        mxf_warn(&(int){0}, "%llu messages and accesses had to stay in the queue of MX for a while",
                 (unsigned long long)endpoint->stayed);
    mxf_free_blocks(endpoint);
    free(endpoint->connections);
    free(endpoint->numbered);
    free(endpoint->free_bulks);
    free(endpoint);
    mxf_leave();
    return 0;
}

static int getopt_(fid_t fid, int level, int option, void *value, size_t *length)
{
    struct mxf_endpoint *endpoint = OWNER(fid, mxf_endpoint, fid.fid);
    if (level != FI_OPT_ENDPOINT || option != FI_OPT_MIN_MULTI_RECV)
        return -FI_ENOPROTOOPT;
    if (*length < sizeof(size_t))
        return -FI_ETOOSMALL;
    memcpy(value, &endpoint->min_multi_receive, sizeof(size_t));
    *length = sizeof(size_t);
    return 0;
}

static int setopt_(fid_t fid, int level, int option, const void *value, size_t length)
{
    struct mxf_endpoint *endpoint = OWNER(fid, mxf_endpoint, fid.fid);
    if (level != FI_OPT_ENDPOINT || option != FI_OPT_MIN_MULTI_RECV)
        return -FI_ENOPROTOOPT;
    if (length != sizeof(size_t))
        return -FI_EINVAL;
    mxf_enter();
    memcpy(&endpoint->min_multi_receive, value, sizeof(size_t));
    mxf_leave();
    return 0;
}

static int getname(fid_t fid, void *address, size_t *length)
{
    struct mxf_endpoint *endpoint = OWNER(fid, mxf_endpoint, fid.fid);
    size_t room = *length;
    if (!endpoint->enabled)
        return -FI_EOPBADSTATE;
    *length = sizeof endpoint->own;
    memcpy(address, &endpoint->own, room < sizeof endpoint->own ? room : sizeof endpoint->own);
    return room < sizeof endpoint->own ? -FI_ETOOSMALL : 0;
}

static struct fi_ops fid_ops = {sizeof fid_ops, close_endpoint, bind_to,     control,
                                UNSUPPORTED,    UNSUPPORTED,    UNSUPPORTED};
static struct fi_ops_ep ep_ops = {sizeof ep_ops, mxf_cancel,  getopt_,     setopt_,
                                  UNSUPPORTED,   UNSUPPORTED, UNSUPPORTED, UNSUPPORTED};
static struct fi_ops_cm cm_ops = {sizeof cm_ops, UNSUPPORTED, getname,     UNSUPPORTED, UNSUPPORTED,
                                  UNSUPPORTED,   UNSUPPORTED, UNSUPPORTED, UNSUPPORTED, UNSUPPORTED};

int mxf_endpoint_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **result, void *context)
{
    if (!info || (info->ep_attr && info->ep_attr->type != FI_EP_RDM && info->ep_attr->type != FI_EP_UNSPEC))
        return -FI_EINVAL;
    struct mxf_endpoint *endpoint = calloc(1, sizeof *endpoint);
    if (!endpoint || !(endpoint->free_bulks = malloc(BULKS * sizeof *endpoint->free_bulks))) {
        free(endpoint);
        return -FI_ENOMEM;
    }
    while (endpoint->free_count < BULKS) {
        endpoint->free_bulks[endpoint->free_count] = BULKS - 1 - endpoint->free_count;
        endpoint->free_count++;
    }
    endpoint->domain = OWNER(domain, mxf_domain, fid);
    endpoint->caps = info->caps ? info->caps : CAPABILITIES;
    if (!(endpoint->caps & (FI_SEND | FI_RECV)))
        endpoint->caps |= FI_SEND | FI_RECV;
    endpoint->wanted.number = MX_ANY_ENDPOINT;
    if (info->src_addr && info->src_addrlen >= sizeof endpoint->wanted)
        memcpy(&endpoint->wanted, info->src_addr, sizeof endpoint->wanted);
    if (info->tx_attr)
        endpoint->default_flags[MXF_SEND] = info->tx_attr->op_flags & OPERATION_FLAGS;
    if (info->rx_attr)
        endpoint->default_flags[MXF_RECEIVE] = info->rx_attr->op_flags & OPERATION_FLAGS;
    endpoint->min_multi_receive = 64;
    endpoint->fid.fid = (struct fid){FI_CLASS_EP, context, &fid_ops};
    endpoint->fid.ops = &ep_ops;
    endpoint->fid.cm = &cm_ops;
    endpoint->fid.msg = &mxf_msg_ops;
    endpoint->fid.tagged = &mxf_tagged_ops;
    endpoint->fid.rma = &mxf_rma_ops;
    endpoint->fid.atomic = &mxf_atomic_ops;
    mxf_enter();
    endpoint->domain->users++;
    mxf_leave();
    *result = &endpoint->fid;
    return 0;
}
