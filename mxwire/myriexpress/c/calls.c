/* The calls of programs on endpoints and requests. */

#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define MILLISECOND 1000000ull
/* mx_set_request_timeout(MX_INFINITE): as long as a number of ms can be, 49 days. */
#define LONGEST_TIMEOUT 0xffffffffu

static uint64_t deadline_of(uint32_t timeout)
{
    return timeout ? mxw_now() + timeout * MILLISECOND : 0;
}

static void set_result(uint32_t *result, uint32_t value)
{
    if (result)
        *result = value;
}

/* Run the engine if it has anything to do, and return whether it had. */
static int poll_once(void)
{
    if (mxw_attention()) {
        mxw_progress();
        return 1;
    }
    mxw_idle();
    return 0;
}

/* Endpoints. */

static mx_return_t read_parameters(const mx_param_t *params, uint32_t count, mx_error_handler_t *error_handler,
                                   uint32_t *bits, uint32_t *shift)
{
    if (count && !params)
        return MX_BAD_PARAM_LIST;
    for (uint32_t place = 0; place < count; place++) {
        switch (params[place].key) {
        case MX_PARAM_ERROR_HANDLER:
            *error_handler = params[place].val.error_handler;
            break;
        case MX_PARAM_UNEXP_QUEUE_MAX:
            /* The engine limits the queue by itself, and a partner that finds it full retransmits. */
            break;
        case MX_PARAM_CONTEXT_ID:
            *bits = params[place].val.context_id.bits;
            *shift = params[place].val.context_id.shift;
            if (*bits > MX_CONTEXT_ID_BITS_MAX || *bits + *shift > 64)
                return MX_BAD_PARAM_VAL;
            break;
        default:
            return MX_BAD_PARAM_NAME;
        }
    }
    return MX_SUCCESS;
}

EXPORTED mx_return_t mx_open_endpoint(uint32_t board, uint32_t number, uint32_t key, mx_param_t *params,
                                      uint32_t params_count, mx_endpoint_t *result)
{
    static const char call[] = "mx_open_endpoint";
    mx_error_handler_t error_handler = NULL;
    uint32_t bits = 0, shift = 0, own;
    if (!mxw_alive)
        return mxw_fail(NULL, call, MX_NOT_INITIALIZED);
    mx_return_t code = read_parameters(params, params_count, &error_handler, &bits, &shift);
    if (code != MX_SUCCESS || !result)
        return mxw_fail(NULL, call, code == MX_SUCCESS ? MX_BAD_ENDPOINT : code);
    struct mxw_endpoint *endpoint = mxw_new_endpoint();
    if (!endpoint)
        return mxw_fail(NULL, call, MX_NO_RESOURCES);
    endpoint->error_handler = error_handler;
    endpoint->board = board == MX_ANY_NIC ? 0 : board;
    code = mxw_code(mxw_engine.open_endpoint(endpoint->place, endpoint->board, &number, key, bits, shift, &own));
    if (code != MX_SUCCESS) {
        mxw_free_endpoint(endpoint);
        if (error_handler)
            return error_handler((char *)mx_strerror(code), code);
        return mxw_fail(NULL, call, code);
    }
    endpoint->number = number;
    endpoint->own = own;
    *result = (mx_endpoint_t)(uintptr_t)endpoint->handle;
    return MX_SUCCESS;
}

EXPORTED mx_return_t mx_wakeup(mx_endpoint_t handle)
{
    struct mxw_endpoint *endpoint = mxw_endpoint(handle);
    if (!endpoint)
        return mxw_fail_handle("mx_wakeup");
    pthread_mutex_lock(&mxw_lock);
    __atomic_store_n(&endpoint->woken, endpoint->woken + 1, __ATOMIC_RELEASE);
    mxw_notify_locked(endpoint);
    mxw_changed_locked();
    pthread_mutex_unlock(&mxw_lock);
    return MX_SUCCESS;
}

static mx_return_t suspend(const char *call, mx_endpoint_t handle, int suspended)
{
    struct mxw_endpoint *endpoint = mxw_endpoint(handle);
    if (!endpoint)
        return mxw_fail_handle(call);
    mxw_beat();
    mx_return_t code = mxw_code(mxw_engine.suspend(endpoint->place, suspended));
    mxw_drain();
    return mxw_fail(endpoint, call, code);
}

EXPORTED mx_return_t mx_disable_progression(mx_endpoint_t endpoint)
{
    return suspend("mx_disable_progression", endpoint, 1);
}

EXPORTED mx_return_t mx_reenable_progression(mx_endpoint_t endpoint)
{
    return suspend("mx_reenable_progression", endpoint, 0);
}

EXPORTED mx_return_t mx_progress(mx_endpoint_t handle)
{
    if (!mxw_endpoint(handle))
        return mxw_fail_handle("mx_progress");
    mxw_beat();
    poll_once();
    return MX_SUCCESS;
}

/* Register a function for unexpected messages in its place in the endpoint. */
static mx_return_t register_function(const char *call, struct mxw_endpoint *endpoint, mx_unexp_handler_t *place,
                                     void **place_of_context, mx_unexp_handler_t function, void *context)
{
    pthread_mutex_lock(&mxw_lock);
    *place_of_context = context;
    *place = function;
    int handled = (endpoint->unexpected ? 1 : 0) | (endpoint->consumer ? 2 : 0);
    pthread_mutex_unlock(&mxw_lock);
    return mxw_fail(endpoint, call, mxw_code(mxw_engine.handle(endpoint->place, handled)));
}

EXPORTED mx_return_t mx_register_unexp_handler(mx_endpoint_t handle, mx_unexp_handler_t handler, void *context)
{
    static const char call[] = "mx_register_unexp_handler";
    struct mxw_endpoint *endpoint = mxw_endpoint(handle);
    return endpoint ? register_function(call, endpoint, &endpoint->unexpected, &endpoint->unexpected_context, handler, context)
                    : mxw_fail_handle(call);
}

EXPORTED mx_return_t mx__register_consumer(mx_endpoint_t handle, mx_unexp_handler_t consumer, void *context)
{
    static const char call[] = "mx__register_consumer";
    struct mxw_endpoint *endpoint = mxw_endpoint(handle);
    return endpoint ? register_function(call, endpoint, &endpoint->consumer, &endpoint->consumer_context, consumer, context)
                    : mxw_fail_handle(call);
}

/* Posting. */

static mx_return_t check_segments(const mx_segment_t *segments, uint32_t count, uint64_t *length)
{
    *length = 0;
    if (count > MX_MAX_SEGMENTS)
        return MX_BAD_SEG_CNT;
    if (count && !segments)
        return MX_BAD_SEG_LIST;
    for (uint32_t place = 0; place < count; place++) {
        if (segments[place].segment_length && !segments[place].segment_ptr)
            return MX_BAD_SEG_MEM;
        *length += segments[place].segment_length;
    }
    return *length > UINT32_MAX ? MX_BAD_SEG_MEM : MX_SUCCESS;
}

/* Hand a posted request to the program, or forget it if the program does not want it; or undo a failed post. */
static mx_return_t posted(const char *call, struct mxw_endpoint *endpoint, struct mxw_request *request, uint64_t handle,
                          mx_return_t code, mx_request_t *wanted)
{
    pthread_mutex_lock(&mxw_lock);
    mxw_drain_locked();
    if (code != MX_SUCCESS) {
        if (request->handle == handle)
            mxw_free_request(request);
    } else if (!wanted && request->handle == handle) {
        if (request->done) {
            mxw_unlink(request);
            mxw_free_request(request);
        } else {
            request->forgotten = 1;
        }
    }
    pthread_mutex_unlock(&mxw_lock);
    if (code == MX_SUCCESS && wanted)
        *wanted = (mx_request_t)(uintptr_t)handle;
    return mxw_fail(endpoint, call, code);
}

static mx_return_t send(const char *call, mx_endpoint_t handle, const mx_segment_t *segments, uint32_t count,
                        mx_endpoint_addr_t destination, uint64_t match_info, void *context, mx_request_t *result,
                        int synchronous)
{
    struct mxw_endpoint *endpoint = mxw_endpoint(handle);
    uint32_t place;
    uint64_t length;
    if (!endpoint)
        return mxw_fail_handle(call);
    mxw_beat();
    mx_return_t code = check_segments(segments, count, &length);
    struct mxw_partner *partner = mxw_partner(destination, &place);
    if (code == MX_SUCCESS && (!partner || partner->endpoint != endpoint->place))
        code = MX_BAD_ADDR_LIST;
    struct mxw_request *request = code == MX_SUCCESS ? mxw_new_request(endpoint, MXW_SEND, context) : NULL;
    if (!request)
        return mxw_fail(endpoint, call, code == MX_SUCCESS ? MX_NO_RESOURCES : code);
    request->partner = place;
    request->match_info = match_info;
    request->length = (uint32_t)length;
    uint64_t number = request->handle;
    int outcome = mxw_engine.send(endpoint->place, place, (const struct mxw_segment *)segments, count, match_info,
                                  synchronous, number);
    if (outcome != MXW_ENDED && outcome != MXW_COPIED)
        return posted(call, endpoint, request, number, mxw_code(outcome), result);
    pthread_mutex_lock(&mxw_lock);
    mxw_drain_locked();
    /* Another thread may have closed the endpoint. */
    if (request->handle == number) {
        request->buffered = !synchronous;
        if (outcome == MXW_ENDED) {
            request->transferred = request->length;
            mxw_complete(request);
        }
    }
    pthread_mutex_unlock(&mxw_lock);
    return posted(call, endpoint, request, number, MX_SUCCESS, result);
}

EXPORTED mx_return_t mx_isend(mx_endpoint_t endpoint, mx_segment_t *segments, uint32_t count,
                              mx_endpoint_addr_t destination, uint64_t match_info, void *context,
                              mx_request_t *request)
{
    return send("mx_isend", endpoint, segments, count, destination, match_info, context, request, 0);
}

EXPORTED mx_return_t mx_issend(mx_endpoint_t endpoint, mx_segment_t *segments, uint32_t count,
                               mx_endpoint_addr_t destination, uint64_t match_info, void *context,
                               mx_request_t *request)
{
    return send("mx_issend", endpoint, segments, count, destination, match_info, context, request, 1);
}

/* Post a receive: of a message that matches or, if claims is 1, of that with an identity. */
static mx_return_t receive(const char *call, mx_endpoint_t handle, mx_segment_t *segments, uint32_t count, int claims,
                           uint64_t wanted, uint64_t mask, void *context, mx_request_t *result)
{
    struct mxw_endpoint *endpoint = mxw_endpoint(handle);
    uint64_t length;
    if (!endpoint)
        return mxw_fail_handle(call);
    mxw_beat();
    mx_return_t code = wanted & ~mask ? MX_BAD_MATCH_MASK : check_segments(segments, count, &length);
    struct mxw_request *request = code == MX_SUCCESS ? mxw_new_request(endpoint, MXW_RECEIVE, context) : NULL;
    if (!request)
        return mxw_fail(endpoint, call, code == MX_SUCCESS ? MX_NO_RESOURCES : code);
    uint64_t number = request->handle;
    const struct mxw_segment *memory = (const struct mxw_segment *)segments;
    code = mxw_code(claims ? mxw_engine.claim(endpoint->place, memory, count, wanted, number)
                           : mxw_engine.receive(endpoint->place, memory, count, wanted, mask, number));
    return posted(call, endpoint, request, number, code, result);
}

EXPORTED mx_return_t mx_irecv(mx_endpoint_t handle, mx_segment_t *segments, uint32_t count, uint64_t match_info,
                              uint64_t match_mask, void *context, mx_request_t *result)
{
    return receive("mx_irecv", handle, segments, count, 0, match_info, match_mask, context, result);
}

EXPORTED mx_return_t mx__claim(mx_endpoint_t handle, uint64_t identity, mx_segment_t *segments, uint32_t count,
                               void *context, mx_request_t *result)
{
    return receive("mx__claim", handle, segments, count, 1, identity, MX_MATCH_MASK_NONE, context, result);
}

EXPORTED mx_return_t mx__identity(mx_endpoint_t handle, uint64_t *identity)
{
    struct mxw_endpoint *endpoint = mxw_endpoint(handle);
    if (!endpoint)
        return mxw_fail_handle("mx__identity");
    if (!mxw_in_handler)
        return mxw_fail(endpoint, "mx__identity", MX_BAD_REQUEST);
    *identity = endpoint->unexpected_identity;
    return MX_SUCCESS;
}

EXPORTED mx_return_t mx_iconnect(mx_endpoint_t handle, uint64_t nic_id, uint32_t number, uint32_t key,
                                 uint64_t match_info, void *context, mx_request_t *result)
{
    static const char call[] = "mx_iconnect";
    struct mxw_endpoint *endpoint = mxw_endpoint(handle);
    if (!endpoint)
        return mxw_fail_handle(call);
    mxw_beat();
    struct mxw_request *request = mxw_new_request(endpoint, MXW_CONNECT, context);
    if (!request)
        return mxw_fail(endpoint, call, MX_NO_RESOURCES);
    request->match_info = match_info;
    uint64_t place = request->handle;
    mx_return_t code = mxw_code(mxw_engine.connect(endpoint->place, nic_id, number, key, match_info, place));
    return posted(call, endpoint, request, place, code, result);
}

/* Ending requests. */

/* The request of a program's variable, which belongs to the endpoint; NULL if it is not a live one. */
static struct mxw_request *request_of(struct mxw_endpoint *endpoint, const mx_request_t *variable)
{
    struct mxw_request *request = variable ? mxw_request(*variable) : NULL;
    return request && request->endpoint == endpoint && !request->forgotten ? request : NULL;
}

/* End a completed request: fill the status, and free the place. Return 0 if another thread has ended it. */
static int take(const char *call, struct mxw_endpoint *endpoint, struct mxw_request *request, uint64_t handle,
                mx_status_t *status)
{
    pthread_mutex_lock(&mxw_lock);
    int ended = request->handle == handle && request->done;
    struct mxw_request copy = *request;
    if (ended) {
        mxw_unlink(request);
        mxw_free_request(request);
    }
    pthread_mutex_unlock(&mxw_lock);
    if (!ended)
        return 0;
    /* After the list is consistent again, since a handler may make calls. */
    mx_status_code_t code = mxw_status(endpoint, call, copy.status);
    if (status) {
        status->code = code;
        status->source = mxw_address(copy.partner);
        status->match_info = copy.match_info;
        status->msg_length = copy.length;
        status->xfer_length = copy.transferred;
        status->context = copy.context;
    }
    return 1;
}

struct expected {
    struct mxw_request *request;
    uint64_t handle;
};

/* Return 1 also if another thread has ended the request, whose place may be another one's now. */
static int check_done(struct mxw_endpoint *endpoint, void *argument)
{
    const struct expected *expected = argument;
    const struct mxw_request *request = expected->request;
    (void)endpoint;
    return mxw_done(request) || __atomic_load_n(&request->handle, __ATOMIC_RELAXED) != expected->handle;
}

/* mx_test, and mx_wait with a deadline. */
static mx_return_t end(const char *call, mx_endpoint_t handle, mx_request_t *variable, int waits, uint32_t timeout,
                       mx_status_t *status, uint32_t *result)
{
    struct mxw_endpoint *endpoint = mxw_endpoint(handle);
    if (__builtin_expect(!endpoint, 0))
        return mxw_fail_handle(call);
    struct mxw_request *request = request_of(endpoint, variable);
    if (__builtin_expect(!request, 0))
        return mxw_fail(endpoint, call, MX_BAD_REQUEST);
    mxw_beat();
    if (!mxw_done(request)) {
        if (waits) {
            struct expected expected = {request, (uintptr_t)*variable};
            if (mxw_wait_for(endpoint, check_done, &expected, deadline_of(timeout), MXW_REQUEST) < 0)
                return mxw_fail(NULL, call, MX_BAD_ENDPOINT);
        } else {
            poll_once();
        }
        if (!mxw_done(request)) {
            set_result(result, 0);
            return MX_SUCCESS;
        }
    }
    int ended = take(call, endpoint, request, (uintptr_t)*variable, status);
    if (ended)
        *variable = NULL;
    set_result(result, (uint32_t)ended);
    return MX_SUCCESS;
}

EXPORTED mx_return_t mx_test(mx_endpoint_t endpoint, mx_request_t *request, mx_status_t *status, uint32_t *result)
{
    return end("mx_test", endpoint, request, 0, 0, status, result);
}

EXPORTED mx_return_t mx_wait(mx_endpoint_t endpoint, mx_request_t *request, uint32_t timeout, mx_status_t *status,
                             uint32_t *result)
{
    return end("mx_wait", endpoint, request, 1, timeout, status, result);
}

struct criteria {
    uint64_t match_info, mask;
    uint64_t found; /* handle of a completed request */
};

/* Look for the oldest completed request with some match information. */
static int check_completed(struct mxw_endpoint *endpoint, void *argument)
{
    struct criteria *criteria = argument;
    if (!__atomic_load_n(&endpoint->first, __ATOMIC_RELAXED))
        return 0;
    pthread_mutex_lock(&mxw_lock);
    struct mxw_request *request = endpoint->first;
    while (request && (request->match_info & criteria->mask) != criteria->match_info)
        request = request->next;
    criteria->found = request ? request->handle : 0;
    pthread_mutex_unlock(&mxw_lock);
    return request != NULL;
}

/* Wait for a completed request, or look for one; return 1, 0, or -1 if the endpoint was closed. */
static int find(struct mxw_endpoint *endpoint, int (*check)(struct mxw_endpoint *, void *), void *argument, int waits,
                uint64_t deadline, enum mxw_condition condition)
{
    mxw_beat();
    if (check(endpoint, argument))
        return 1;
    if (waits)
        return mxw_wait_for(endpoint, check, argument, deadline, condition);
    return poll_once() ? check(endpoint, argument) : 0;
}

static mx_return_t end_any(const char *call, mx_endpoint_t handle, int waits, uint32_t timeout, uint64_t match_info,
                           uint64_t mask, mx_status_t *status, uint32_t *result)
{
    struct mxw_endpoint *endpoint = mxw_endpoint(handle);
    if (!endpoint)
        return mxw_fail_handle(call);
    if (match_info & ~mask)
        return mxw_fail(endpoint, call, MX_BAD_MATCH_MASK);
    struct criteria criteria = {match_info, mask, 0};
    uint64_t deadline = waits ? deadline_of(timeout) : 0;
    for (;;) {
        int found = find(endpoint, check_completed, &criteria, waits, deadline, MXW_REQUEST);
        if (found < 0)
            return mxw_fail(NULL, call, MX_BAD_ENDPOINT);
        struct mxw_request *request = found ? mxw_request((mx_request_t)(uintptr_t)criteria.found) : NULL;
        int ended = request && take(call, endpoint, request, criteria.found, status);
        if (ended || !found) {
            set_result(result, (uint32_t)ended);
            return MX_SUCCESS;
        }
        /* Another thread has ended it. */
    }
}

EXPORTED mx_return_t mx_test_any(mx_endpoint_t endpoint, uint64_t match_info, uint64_t match_mask, mx_status_t *status,
                                 uint32_t *result)
{
    return end_any("mx_test_any", endpoint, 0, 0, match_info, match_mask, status, result);
}

EXPORTED mx_return_t mx_wait_any(mx_endpoint_t endpoint, uint32_t timeout, uint64_t match_info, uint64_t match_mask,
                                 mx_status_t *status, uint32_t *result)
{
    return end_any("mx_wait_any", endpoint, 1, timeout, match_info, match_mask, status, result);
}

static mx_return_t peek(const char *call, mx_endpoint_t handle, int waits, uint32_t timeout, mx_request_t *request,
                        uint32_t *result)
{
    struct mxw_endpoint *endpoint = mxw_endpoint(handle);
    if (!endpoint)
        return mxw_fail_handle(call);
    if (!request)
        return mxw_fail(endpoint, call, MX_BAD_REQUEST);
    struct criteria criteria = {0, 0, 0};
    int found = find(endpoint, check_completed, &criteria, waits, waits ? deadline_of(timeout) : 0, MXW_REQUEST);
    if (found < 0)
        return mxw_fail(NULL, call, MX_BAD_ENDPOINT);
    if (found)
        *request = (mx_request_t)(uintptr_t)criteria.found;
    set_result(result, (uint32_t)found);
    return MX_SUCCESS;
}

EXPORTED mx_return_t mx_ipeek(mx_endpoint_t endpoint, mx_request_t *request, uint32_t *result)
{
    return peek("mx_ipeek", endpoint, 0, 0, request, result);
}

EXPORTED mx_return_t mx_peek(mx_endpoint_t endpoint, uint32_t timeout, mx_request_t *request, uint32_t *result)
{
    return peek("mx_peek", endpoint, 1, timeout, request, result);
}

EXPORTED int mx__is_idle(mx_endpoint_t handle)
{
    struct mxw_endpoint *endpoint = mxw_endpoint(handle);
    mxw_beat();
    return endpoint && !mxw_attention() && !__atomic_load_n(&endpoint->first, __ATOMIC_RELAXED);
}

struct probe {
    uint64_t match_info, mask;
    struct mxw_record found;
};

/* Look for an unexpected message; the number of them is known without Python. */
static int check_unexpected(struct mxw_endpoint *endpoint, void *argument)
{
    struct probe *probe = argument;
    const volatile uint64_t *count = &mxw_shared.unexpected[endpoint->place];
    return *count && mxw_engine.probe(endpoint->place, probe->match_info, probe->mask, &probe->found) == MXW_OK + 1;
}

static mx_return_t probe(const char *call, mx_endpoint_t handle, int waits, uint32_t timeout, uint64_t match_info,
                         uint64_t mask, mx_status_t *status, uint32_t *result)
{
    struct mxw_endpoint *endpoint = mxw_endpoint(handle);
    if (!endpoint)
        return mxw_fail_handle(call);
    if (match_info & ~mask)
        return mxw_fail(endpoint, call, MX_BAD_MATCH_MASK);
    struct probe wanted = {match_info, mask, {0}};
    int found = find(endpoint, check_unexpected, &wanted, waits, waits ? deadline_of(timeout) : 0, MXW_STATE);
    if (found < 0)
        return mxw_fail(NULL, call, MX_BAD_ENDPOINT);
    if (found && status) {
        memset(status, 0, sizeof *status);
        status->source = mxw_address(wanted.found.partner);
        status->match_info = wanted.found.match_info;
        /* MPICH reads the length of the transfer. */
        status->msg_length = status->xfer_length = wanted.found.length;
    }
    set_result(result, (uint32_t)found);
    return MX_SUCCESS;
}

EXPORTED mx_return_t mx_iprobe(mx_endpoint_t endpoint, uint64_t match_info, uint64_t match_mask, mx_status_t *status,
                               uint32_t *result)
{
    return probe("mx_iprobe", endpoint, 0, 0, match_info, match_mask, status, result);
}

EXPORTED mx_return_t mx_probe(mx_endpoint_t endpoint, uint32_t timeout, uint64_t match_info, uint64_t match_mask,
                              mx_status_t *status, uint32_t *result)
{
    return probe("mx_probe", endpoint, 1, timeout, match_info, match_mask, status, result);
}

/* Cancel a request that has not ended; return MX_NOT_COMPLETED if it is too late. */
static mx_return_t cancel(struct mxw_endpoint *endpoint, struct mxw_request *request)
{
    uint64_t handle = request->handle;
    mx_return_t code = mxw_done(request) ? MX_NOT_COMPLETED : mxw_code(mxw_engine.cancel(endpoint->place, handle));
    pthread_mutex_lock(&mxw_lock);
    mxw_drain_locked();
    if (code == MX_SUCCESS && request->handle == handle) {
        mxw_free_request(request);
        /* Another thread may wait for it. */
        mxw_changed_locked();
    }
    pthread_mutex_unlock(&mxw_lock);
    return code;
}

EXPORTED mx_return_t mx_cancel(mx_endpoint_t handle, mx_request_t *variable, uint32_t *result)
{
    static const char call[] = "mx_cancel";
    struct mxw_endpoint *endpoint = mxw_endpoint(handle);
    if (!endpoint)
        return mxw_fail_handle(call);
    struct mxw_request *request = request_of(endpoint, variable);
    if (!request || request->kind == MXW_SEND)
        return mxw_fail(endpoint, call, MX_BAD_REQUEST);
    mxw_beat();
    mx_return_t code = cancel(endpoint, request);
    set_result(result, code == MX_SUCCESS);
    if (code == MX_SUCCESS)
        *variable = NULL;
    return code == MX_NOT_COMPLETED ? MX_SUCCESS : mxw_fail(endpoint, call, code);
}

EXPORTED mx_return_t mx_forget(mx_endpoint_t handle, mx_request_t *variable)
{
    static const char call[] = "mx_forget";
    struct mxw_endpoint *endpoint = mxw_endpoint(handle);
    if (!endpoint)
        return mxw_fail_handle(call);
    struct mxw_request *request = request_of(endpoint, variable);
    if (!request)
        return mxw_fail(endpoint, call, MX_BAD_REQUEST);
    posted(call, endpoint, request, request->handle, MX_SUCCESS, NULL);
    *variable = NULL;
    return MX_SUCCESS;
}

EXPORTED mx_return_t mx_ibuffered(mx_endpoint_t handle, mx_request_t *variable, uint32_t *result)
{
    static const char call[] = "mx_ibuffered";
    struct mxw_endpoint *endpoint = mxw_endpoint(handle);
    if (!endpoint)
        return mxw_fail_handle(call);
    struct mxw_request *request = request_of(endpoint, variable);
    if (!request || request->kind != MXW_SEND)
        return mxw_fail(endpoint, call, MX_BAD_REQUEST);
    set_result(result, (uint32_t)request->buffered);
    return MX_SUCCESS;
}

EXPORTED mx_return_t mx_buffered(mx_endpoint_t endpoint, mx_request_t *request, uint32_t timeout, uint32_t *result)
{
    (void)timeout;
    return mx_ibuffered(endpoint, request, result);
}

EXPORTED mx_return_t mx_context(mx_request_t *variable, void **context)
{
    struct mxw_request *request = variable ? mxw_request(*variable) : NULL;
    if (!request || !context)
        return mxw_fail(NULL, "mx_context", mxw_alive ? MX_BAD_REQUEST : MX_NOT_INITIALIZED);
    *context = request->context;
    return MX_SUCCESS;
}

EXPORTED mx_return_t mx_set_request_timeout(mx_endpoint_t handle, mx_request_t variable, uint32_t milliseconds)
{
    static const char call[] = "mx_set_request_timeout";
    struct mxw_endpoint *endpoint = mxw_endpoint(handle);
    if (!endpoint)
        return mxw_fail_handle(call);
    struct mxw_request *request = variable ? request_of(endpoint, &variable) : NULL;
    if (variable && !request)
        return mxw_fail(endpoint, call, MX_BAD_REQUEST);
    if (milliseconds == MX_INFINITE)
        milliseconds = LONGEST_TIMEOUT;
    return mxw_fail(endpoint, call,
                    mxw_code(mxw_engine.set_timeout(endpoint->place, request ? request->handle : 0, milliseconds)));
}

/* Connecting, and addresses. */

/* Status of an ended connect as the return code of mx_connect. */
static mx_return_t connect_code(uint32_t status)
{
    switch (status) {
    case MX_SUCCESS:
    case MX_NO_RESOURCES:
    case MX_BAD_ENDPOINT_ID:
    case MX_CONNECTION_FAILED:
    case MX_BAD_CONNECTION_KEY:
    case MX_NIC_NOT_FOUND:
        return (mx_return_t)status;
    case 30:
    case 92:
        return MX_TIMEOUT;
    default:
        return MX_CONNECTION_FAILED;
    }
}

EXPORTED mx_return_t mx_connect(mx_endpoint_t handle, uint64_t nic_id, uint32_t number, uint32_t key, uint32_t timeout,
                                mx_endpoint_addr_t *address)
{
    static const char call[] = "mx_connect";
    struct mxw_endpoint *endpoint = mxw_endpoint(handle);
    if (!endpoint)
        return mxw_fail_handle(call);
    struct mxw_request *request = address ? mxw_new_request(endpoint, MXW_CONNECT, NULL) : NULL;
    if (!request)
        return mxw_fail(endpoint, call, address ? MX_NO_RESOURCES : MX_BAD_ADDR_LIST);
    /* Other threads neither peek at it nor end it. */
    request->unlisted = 1;
    uint64_t place = request->handle;
    mx_return_t code = mxw_code(mxw_engine.connect(endpoint->place, nic_id, number, key, 0, place));
    mx_request_t unused;
    if (code != MX_SUCCESS)
        return posted(call, endpoint, request, place, code, &unused);
    mxw_drain();
    struct expected expected = {request, place};
    int done = mxw_wait_for(endpoint, check_done, &expected, deadline_of(timeout), MXW_REQUEST);
    if (done < 0)
        return mxw_fail(NULL, call, MX_BAD_ENDPOINT);
    if (!done && cancel(endpoint, request) == MX_SUCCESS)
        return mxw_fail(endpoint, call, MX_TIMEOUT);
    pthread_mutex_lock(&mxw_lock);
    mxw_drain_locked();
    if (request->handle != place) {
        pthread_mutex_unlock(&mxw_lock);
        return mxw_fail(NULL, call, MX_BAD_ENDPOINT);
    }
    uint32_t status = request->done ? request->status : MX_TIMEOUT, partner = request->partner;
    if (request->done) {
        mxw_free_request(request);
    } else {
        request->forgotten = 1;
    }
    pthread_mutex_unlock(&mxw_lock);
    code = connect_code(status);
    if (code == MX_SUCCESS)
        *address = mxw_address(partner);
    return mxw_fail(endpoint, call, code);
}

EXPORTED mx_return_t mx_disconnect(mx_endpoint_t handle, mx_endpoint_addr_t address)
{
    static const char call[] = "mx_disconnect";
    struct mxw_endpoint *endpoint = mxw_endpoint(handle);
    if (!endpoint)
        return mxw_fail_handle(call);
    uint32_t place;
    struct mxw_partner *partner = mxw_partner(address, &place);
    if (!partner || partner->endpoint != endpoint->place)
        return mxw_fail(endpoint, call, MX_BAD_ADDR_LIST);
    mx_return_t code = mxw_code(mxw_engine.disconnect(endpoint->place, place));
    mxw_drain();
    if (code == MX_SUCCESS)
        mxw_clear_context(place);
    return mxw_fail(endpoint, call, code);
}

EXPORTED mx_return_t mx_get_endpoint_addr(mx_endpoint_t handle, mx_endpoint_addr_t *address)
{
    static const char call[] = "mx_get_endpoint_addr";
    struct mxw_endpoint *endpoint = mxw_endpoint(handle);
    if (!endpoint)
        return mxw_fail_handle(call);
    if (!address)
        return mxw_fail(endpoint, call, MX_BAD_ADDR_LIST);
    *address = mxw_address(endpoint->own);
    return MX_SUCCESS;
}

static mx_return_t decompose(const char *call, mx_endpoint_addr_t address, uint64_t *nic_id, uint32_t *number,
                             uint32_t *session)
{
    struct mxw_partner *partner = mxw_partner(address, NULL);
    if (!partner)
        return mxw_fail(NULL, call, mxw_alive ? MX_BAD_ADDR_LIST : MX_NOT_INITIALIZED);
    if (nic_id)
        *nic_id = partner->nic_id;
    if (number)
        *number = partner->number;
    if (session)
        *session = (uint32_t)(address.stuff[1] >> 32);
    return MX_SUCCESS;
}

EXPORTED mx_return_t mx_decompose_endpoint_addr(mx_endpoint_addr_t address, uint64_t *nic_id, uint32_t *number)
{
    return decompose("mx_decompose_endpoint_addr", address, nic_id, number, NULL);
}

EXPORTED mx_return_t mx_decompose_endpoint_addr2(mx_endpoint_addr_t address, uint64_t *nic_id, uint32_t *number,
                                                 uint32_t *session)
{
    return decompose("mx_decompose_endpoint_addr2", address, nic_id, number, session);
}

EXPORTED mx_return_t mx_set_endpoint_addr_context(mx_endpoint_addr_t address, void *context)
{
    struct mxw_partner *partner = mxw_partner(address, NULL);
    if (!partner)
        return mxw_fail(NULL, "mx_set_endpoint_addr_context", mxw_alive ? MX_BAD_ADDR_LIST : MX_NOT_INITIALIZED);
    partner->context = context;
    return MX_SUCCESS;
}

EXPORTED mx_return_t mx_get_endpoint_addr_context(mx_endpoint_addr_t address, void **context)
{
    struct mxw_partner *partner = mxw_partner(address, NULL);
    if (!partner || !context)
        return mxw_fail(NULL, "mx_get_endpoint_addr_context", mxw_alive ? MX_BAD_ADDR_LIST : MX_NOT_INITIALIZED);
    *context = partner->context;
    return MX_SUCCESS;
}

/* Calls that no program is known to use, and that Open-MX does not offer either. */

EXPORTED mx_return_t mx_register_unexp_callback(mx_endpoint_t handle, mx_matching_callback_t callback, void *context)
{
    struct mxw_endpoint *endpoint = mxw_endpoint(handle);
    (void)callback, (void)context;
    return endpoint ? mxw_fail(endpoint, "mx_register_unexp_callback", MX_FAILURE)
                    : mxw_fail_handle("mx_register_unexp_callback");
}

static mx_return_t refuse_rdma(const char *call, mx_endpoint_t handle)
{
    struct mxw_endpoint *endpoint = mxw_endpoint(handle);
    return endpoint ? mxw_fail(endpoint, call, MX_FAILURE) : mxw_fail_handle(call);
}

EXPORTED mx_return_t mx_iput(mx_endpoint_t handle, void *local, uint32_t length, mx_endpoint_addr_t destination,
                             uint64_t remote, void *context, mx_request_t *request)
{
    (void)local, (void)length, (void)destination, (void)remote, (void)context, (void)request;
    return refuse_rdma("mx_iput", handle);
}

EXPORTED mx_return_t mx_iget(mx_endpoint_t handle, void *local, uint32_t length, mx_endpoint_addr_t destination,
                             uint64_t remote, void *context, mx_request_t *request)
{
    (void)local, (void)length, (void)destination, (void)remote, (void)context, (void)request;
    return refuse_rdma("mx_iget", handle);
}
