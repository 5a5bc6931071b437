/* Tables of endpoints, requests and partners: handles, the records of the engine, lists of completed requests. */

#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define CHUNK 1024
#define CHUNKS 1024
#define PLACE_BITS 20
#define PLACE_MASK ((1u << PLACE_BITS) - 1)
/* A handle is a place and the number of its uses; this bit is set in those of endpoints only. */
#define ENDPOINT_BIT ((uint64_t)1 << (sizeof(void *) * 8 - 1))
#define USES_MASK ((ENDPOINT_BIT >> PLACE_BITS) - 1)

pthread_mutex_t mxw_lock = PTHREAD_MUTEX_INITIALIZER;
struct mxw_shared mxw_shared;

static struct mxw_endpoint endpoints[MXW_ENDPOINTS];
/* Memory of chunks is never freed, so that a wrong or late handle can be looked up without the lock. */
static struct mxw_request *requests[CHUNKS];
static struct mxw_partner *partners[CHUNKS];
static struct mxw_request *free_requests;
static uint32_t request_chunks;

static uint64_t next_handle(uint64_t *uses, uint32_t place)
{
    *uses = (*uses + 1) & USES_MASK;
    if (!*uses)
        *uses = 1;
    return *uses << PLACE_BITS | place;
}

struct mxw_endpoint *mxw_endpoint(mx_endpoint_t handle)
{
    uint64_t value = (uintptr_t)handle;
    uint32_t place = value & PLACE_MASK;
    if (place >= MXW_ENDPOINTS || !value || endpoints[place].handle != value)
        return NULL;
    return &endpoints[place];
}

/* Reserve a place; the handle is not valid before it is set from uses by the caller, under the lock. */
struct mxw_endpoint *mxw_new_endpoint(void)
{
    struct mxw_endpoint *found = NULL;
    pthread_mutex_lock(&mxw_lock);
    for (uint32_t place = 0; place < MXW_ENDPOINTS && !found; place++) {
        if (endpoints[place].handle)
            continue;
        found = &endpoints[place];
        uint64_t uses = found->uses;
        unsigned woken = found->woken;
        memset(found, 0, sizeof *found);
        found->uses = uses;
        found->woken = woken;
        found->place = place;
        mxw_shared.unexpected[place] = 0;
        found->handle = next_handle(&found->uses, place) | ENDPOINT_BIT;
    }
    pthread_mutex_unlock(&mxw_lock);
    return found;
}

void mxw_free_endpoint(struct mxw_endpoint *endpoint)
{
    pthread_mutex_lock(&mxw_lock);
    mxw_drain_locked();
    endpoint->handle = 0;
    for (uint32_t chunk = 0; chunk < request_chunks; chunk++)
        for (uint32_t place = 0; place < CHUNK; place++) {
            struct mxw_request *request = &requests[chunk][place];
            if (request->handle && request->endpoint == endpoint)
                mxw_free_request(request);
        }
    for (uint32_t chunk = 0; chunk < CHUNKS && partners[chunk]; chunk++)
        for (uint32_t place = 0; place < CHUNK; place++)
            if (partners[chunk][place].endpoint == endpoint->place)
                partners[chunk][place].live = 0;
    endpoint->first = endpoint->last = NULL;
    mxw_close_descriptor(endpoint);
    mxw_changed_locked();
    pthread_mutex_unlock(&mxw_lock);
}

struct mxw_endpoint *mxw_next_endpoint(struct mxw_endpoint *previous)
{
    for (uint32_t place = previous ? previous->place + 1 : 0; place < MXW_ENDPOINTS; place++)
        if (endpoints[place].handle)
            return &endpoints[place];
    return NULL;
}

struct mxw_request *mxw_request(mx_request_t handle)
{
    uint64_t value = (uintptr_t)handle;
    uint32_t place = value & PLACE_MASK;
    struct mxw_request *chunk = __atomic_load_n(&requests[place / CHUNK], __ATOMIC_ACQUIRE);
    if (!value || !chunk || chunk[place % CHUNK].handle != value)
        return NULL;
    return &chunk[place % CHUNK];
}

struct mxw_request *mxw_new_request(struct mxw_endpoint *endpoint, enum mxw_kind kind, void *context)
{
    pthread_mutex_lock(&mxw_lock);
    if (!free_requests && request_chunks < CHUNKS) {
        struct mxw_request *chunk = calloc(CHUNK, sizeof *chunk);
        if (chunk) {
            for (uint32_t place = CHUNK; place-- > 0;) {
                chunk[place].next = free_requests;
                chunk[place].partner = request_chunks * CHUNK + place; /* the place, until the first use */
                free_requests = &chunk[place];
            }
            __atomic_store_n(&requests[request_chunks++], chunk, __ATOMIC_RELEASE);
        }
    }
    struct mxw_request *request = free_requests;
    if (request) {
        free_requests = request->next;
        uint32_t place = request->partner;
        request->done = request->forgotten = request->unlisted = request->buffered = 0;
        request->kind = kind;
        request->endpoint = endpoint;
        request->context = context;
        request->status = request->length = request->transferred = 0;
        request->match_info = 0;
        request->partner = MXW_NO_PARTNER;
        request->previous = request->next = NULL;
        request->handle = next_handle(&request->uses, place);
    }
    pthread_mutex_unlock(&mxw_lock);
    return request;
}

/* With the lock held. */
void mxw_free_request(struct mxw_request *request)
{
    request->partner = request->handle & PLACE_MASK;
    request->handle = 0;
    request->next = free_requests;
    free_requests = request;
}

void mxw_unlink(struct mxw_request *request)
{
    struct mxw_endpoint *endpoint = request->endpoint;
    if (request->unlisted)
        return;
    if (request->previous)
        request->previous->next = request->next;
    else
        endpoint->first = request->next;
    if (request->next)
        request->next->previous = request->previous;
    else
        endpoint->last = request->previous;
}

/* Append a request to the list of completed ones; with the lock held. */
void mxw_complete(struct mxw_request *request)
{
    struct mxw_endpoint *endpoint = request->endpoint;
    if (!request->unlisted) {
        request->next = NULL;
        request->previous = endpoint->last;
        if (endpoint->last)
            endpoint->last->next = request;
        else
            endpoint->first = request;
        endpoint->last = request;
    }
    __atomic_store_n(&request->done, 1, __ATOMIC_RELEASE);
    mxw_notify_locked(endpoint);
    mxw_changed_locked();
}

/* Enter the records of the engine; with the lock held. */
void mxw_drain_locked(void)
{
    uint64_t written = __atomic_load_n(&mxw_shared.written, __ATOMIC_ACQUIRE), taken = mxw_shared.taken;
    if (mxw_watchers)
        mxw_changed_locked();
    if (mxw_armed)
        mxw_notify_unexpected_locked();
    if (written == taken)
        return;
    for (; taken != written; taken++) {
        const struct mxw_record *record = &mxw_shared.records[taken % MXW_RECORDS];
        struct mxw_request *request = mxw_request((mx_request_t)(uintptr_t)record->request);
        if (!request || request->done)
            continue;
        if (request->forgotten) {
            mxw_free_request(request);
            continue;
        }
        request->status = record->status;
        if (request->kind != MXW_CONNECT)
            request->match_info = record->match_info;
        request->length = record->length;
        request->transferred = record->transferred;
        if (record->partner != MXW_NO_PARTNER)
            request->partner = record->partner;
        mxw_complete(request);
    }
    __atomic_store_n(&mxw_shared.taken, taken, __ATOMIC_RELEASE);
}

void mxw_drain(void)
{
    if (!__atomic_load_n(&mxw_watchers, __ATOMIC_RELAXED) && !__atomic_load_n(&mxw_armed, __ATOMIC_RELAXED) &&
        __atomic_load_n(&mxw_shared.written, __ATOMIC_ACQUIRE) == __atomic_load_n(&mxw_shared.taken, __ATOMIC_ACQUIRE))
        return;
    pthread_mutex_lock(&mxw_lock);
    mxw_drain_locked();
    pthread_mutex_unlock(&mxw_lock);
}

/* Partners. An address is the place of a partner plus 1, the number of uses of the place, and the partner's session. */

static struct mxw_partner *partner_at(uint32_t place)
{
    struct mxw_partner *chunk = place / CHUNK < CHUNKS ? __atomic_load_n(&partners[place / CHUNK], __ATOMIC_ACQUIRE) : NULL;
    return chunk ? &chunk[place % CHUNK] : NULL;
}

struct mxw_partner *mxw_partner(mx_endpoint_addr_t address, uint32_t *place)
{
    uint64_t value = address.stuff[0] - 1;
    struct mxw_partner *partner = value < CHUNK * CHUNKS ? partner_at((uint32_t)value) : NULL;
    if (!partner || !partner->live || partner->uses != (uint32_t)address.stuff[1])
        return NULL;
    if (place)
        *place = (uint32_t)value;
    return partner;
}

mx_endpoint_addr_t mxw_address(uint32_t place)
{
    struct mxw_partner *partner = partner_at(place);
    mx_endpoint_addr_t address = {{0, 0}};
    if (partner) {
        address.stuff[0] = (uint64_t)place + 1;
        address.stuff[1] = (uint64_t)partner->session << 32 | partner->uses;
    }
    return address;
}

void mxw_clear_context(uint32_t place)
{
    struct mxw_partner *partner = partner_at(place);
    if (partner)
        partner->context = NULL;
}

static void name_partner(uint32_t place, uint32_t endpoint, uint64_t nic_id, uint32_t number, uint32_t session)
{
    if (place / CHUNK >= CHUNKS)
        return;
    pthread_mutex_lock(&mxw_lock);
    if (!partners[place / CHUNK]) {
        struct mxw_partner *chunk = calloc(CHUNK, sizeof *chunk);
        __atomic_store_n(&partners[place / CHUNK], chunk, __ATOMIC_RELEASE);
    }
    struct mxw_partner *partner = partner_at(place);
    if (partner) {
        if (!partner->live || partner->endpoint != endpoint) {
            partner->context = NULL;
            partner->uses++;
        }
        partner->nic_id = nic_id;
        partner->number = number;
        partner->session = session;
        partner->endpoint = endpoint;
        partner->live = 1;
    }
    pthread_mutex_unlock(&mxw_lock);
}

int mxw_handlers;

/* Call the unexpected handler of a program; return 1 if it has consumed the message. */
static int unexpected(uint32_t place, uint32_t partner, uint64_t match_info, uint32_t length, void *data,
                      uint64_t identity)
{
    struct mxw_endpoint *endpoint = &endpoints[place];
    mx_unexp_handler_t handler = endpoint->unexpected;
    if (!handler)
        return 0;
    endpoint->unexpected_identity = identity;
    mxw_drain();
    mxw_hand_over();
    mxw_in_handler++;
    __atomic_add_fetch(&mxw_handlers, 1, __ATOMIC_ACQ_REL);
    int action = handler(endpoint->unexpected_context, mxw_address(partner), match_info, length, data);
    __atomic_sub_fetch(&mxw_handlers, 1, __ATOMIC_ACQ_REL);
    mxw_in_handler--;
    return action == MX_RECV_FINISHED;
}

/* Call the consumer of a program, within the section of the host; return 1 if it has consumed the message. */
static int consume(uint32_t place, uint32_t partner, uint64_t match_info, uint32_t length, void *data)
{
    const struct mxw_endpoint *endpoint = &endpoints[place];
    mx_unexp_handler_t consumer = endpoint->consumer;
    return consumer && consumer(endpoint->consumer_context, mxw_address(partner), match_info, length, data) ==
                           MX_RECV_FINISHED;
}

static void finalize(void)
{
    mx_finalize();
}

const struct mxw_callbacks mxw_callbacks = {mxw_drain, name_partner, unexpected, consume, finalize};

/* Forget everything, after mx_finalize and in the child of a fork. */
void mxw_free_everything(void)
{
    for (uint32_t place = 0; place < MXW_ENDPOINTS; place++)
        if (endpoints[place].handle)
            mxw_free_endpoint(&endpoints[place]);
    pthread_mutex_lock(&mxw_lock);
    mxw_shared.written = mxw_shared.taken = 0;
    pthread_mutex_unlock(&mxw_lock);
}
