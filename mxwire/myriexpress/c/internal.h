/* Parts of libmyriexpress.so: tables of handles (tables.c), the engine (engine.c), waits (progress.c), errors and texts
 * (errors.c), descriptors for poll (descriptors.c), and the calls of programs (calls.c, information.c, boards.c).
 *
 * Theory of operation
 * -------------------
 * The protocol is the engine of mxwire, in Python. It is loaded by mx_init (engine.c), never earlier, so that a program
 * that only has this library preloaded pays for nothing. Here is what must be in C:
 *
 *   - Handles. A request or endpoint of a program is a number, a place in a table and the number of times that the place
 *     was used, never a pointer to memory. A wrong handle is therefore detected in a few nanoseconds, and never
 *     followed.
 *   - Completions. The engine writes a record per ended request into shared memory (interface.h). Each call that comes
 *     back from Python drains these records into the requests and the lists of completed requests. Testing, peeking and
 *     waiting read only these.
 *   - "Nothing new". While no record, no frame (the status word in the ring of the kernel, which C reads directly) and
 *     no timer is due, a call that polls returns without Python.
 *   - Waits. One of the waiting threads sleeps on the descriptors of the links; the others sleep on a condition
 *     variable until requests end. A waiting thread polls for some microseconds before it sleeps. A thread that runs an
 *     unexpected handler hands over to another one: only the handler's endpoint makes no progress.
 *   - Consumers. The engine calls them in its pass, with the interpreter, so they cost little, and may not call it.
 *   - Progression. A thread sleeps on the descriptors while the program computes, and works only when the program has
 *     made no call for some milliseconds. It holds nothing of Python while it sleeps.
 *
 * The lock protects tables and lists, is held for a few instructions, and never while Python or the program is called. */

#ifndef MXW_INTERNAL_H
#define MXW_INTERNAL_H

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include "interface.h"
#include "mx_extensions.h"
#include "mx_internals/mx__driver_interface.h"
#include "myriexpress.h"
#include "entries.h"
#include "direct.h"

#define EXPORTED __attribute__((visibility("default")))

/* Tables. */

enum mxw_kind { MXW_SEND, MXW_RECEIVE, MXW_CONNECT };

struct mxw_request {
    uint64_t handle; /* 0 while the place is free */
    int done;        /* set last, so that it may be read without the lock */
    int forgotten;
    int unlisted; /* not in the list of completed requests: that of a call of mx_connect */
    int buffered; /* of a send: the program may reuse its memory */
    enum mxw_kind kind;
    uint64_t uses;
    struct mxw_endpoint *endpoint;
    uint32_t status; /* number of mxwire's Status */
    uint32_t partner;
    uint32_t length, transferred;
    uint64_t match_info;
    void *context;
    struct mxw_request *previous, *next; /* neighbours in the list of completed requests, or the next free place */
};

struct mxw_endpoint {
    uint64_t handle; /* 0 while the place is free */
    uint64_t uses;
    uint32_t place;
    uint32_t board, number, own; /* own: its partner that stands for itself */
    uint32_t session;
    unsigned woken; /* number of calls of mx_wakeup */
    struct mxw_request *first, *last;
    mx_error_handler_t error_handler;
    mx_unexp_handler_t unexpected;
    void *unexpected_context;
    uint64_t unexpected_identity; /* of the message for which the handler is being called */
    mx_unexp_handler_t consumer;
    void *consumer_context;
    int descriptor, event, timer; /* 0 until the program asks for the descriptor */
    int armed;                    /* its program may sleep */
};

struct mxw_partner {
    uint64_t nic_id;
    uint32_t number, session, endpoint;
    uint32_t uses; /* number of endpoints that have used the place: an address of a closed endpoint is not valid */
    int live;
    void *context;
};

struct mxw_endpoint *mxw_endpoint(mx_endpoint_t handle);
struct mxw_endpoint *mxw_new_endpoint(void);
void mxw_free_endpoint(struct mxw_endpoint *endpoint);
struct mxw_endpoint *mxw_next_endpoint(struct mxw_endpoint *previous);
struct mxw_request *mxw_request(mx_request_t handle);
struct mxw_request *mxw_new_request(struct mxw_endpoint *endpoint, enum mxw_kind kind, void *context);
void mxw_free_request(struct mxw_request *request);
struct mxw_partner *mxw_partner(mx_endpoint_addr_t address, uint32_t *place);
mx_endpoint_addr_t mxw_address(uint32_t place);
void mxw_clear_context(uint32_t place);
void mxw_drain(void);
void mxw_drain_locked(void);
void mxw_complete(struct mxw_request *request);
void mxw_unlink(struct mxw_request *request);
void mxw_free_everything(void);
extern const struct mxw_callbacks mxw_callbacks;
extern pthread_mutex_t mxw_lock;

/* The engine. */

struct mxw_entries {
    __typeof__(&mxw_open) open;
    __typeof__(&mxw_close) close;
    __typeof__(&mxw_step) step;
    __typeof__(&mxw_pause) pause;
    __typeof__(&mxw_open_endpoint) open_endpoint;
    __typeof__(&mxw_close_endpoint) close_endpoint;
    __typeof__(&mxw_unacked) unacked;
    __typeof__(&mxw_send) send;
    __typeof__(&mxw_receive) receive;
    __typeof__(&mxw_claim) claim;
    __typeof__(&mxw_connect) connect;
    __typeof__(&mxw_cancel) cancel;
    __typeof__(&mxw_disconnect) disconnect;
    __typeof__(&mxw_probe) probe;
    __typeof__(&mxw_suspend) suspend;
    __typeof__(&mxw_handle) handle;
    __typeof__(&mxw_set_timeout) set_timeout;
    __typeof__(&mxw_find_host) find_host;
    __typeof__(&mxw_find_nic) find_nic;
    __typeof__(&mxw_board) board;
    __typeof__(&mxw_info) info;
};
extern struct mxw_entries mxw_engine;
extern struct mxw_shared mxw_shared;
extern int mxw_alive;
mx_return_t mxw_load_engine(void);
/* The return code in the result of an entry. */
mx_return_t mxw_code(int result);
double mxw_seconds(const char *variable, double otherwise);

/* Descriptors of endpoints. */

extern int mxw_armed; /* number of endpoints whose programs may sleep; with the lock held */
void mxw_notify_locked(struct mxw_endpoint *endpoint);
void mxw_notify_unexpected_locked(void);
void mxw_close_descriptor(struct mxw_endpoint *endpoint);

/* Waits and progression. */

void mxw_signal_event(int descriptor);
void mxw_clear_event(int descriptor);

extern uint64_t mxw_beats;
extern int mxw_tick;
extern int mxw_single; /* MX_MONOTHREAD: there is no progression thread, and waits do not sleep */
/* There is no progression thread: also if Python is the program's, which may hold the interpreter while it polls. */
extern int mxw_threadless;
extern int mxw_own_python;
extern __thread int mxw_in_handler;
/* The number of unexpected handlers that run now, on any thread. */
extern int mxw_handlers;
uint64_t mxw_now(void);
void mxw_progress(void);
void mxw_changed_locked(void);
/* Waits for the end of a request, of which each waiting thread is notified; and those for anything else in the engine,
 * such as an unexpected message, which must check again after each call of the engine. */
enum mxw_condition { MXW_REQUEST, MXW_STATE };
extern int mxw_watchers; /* number of waits for MXW_STATE */
/* Wait until check returns 1, until the deadline (0: none), or until mx_wakeup; return 1, 0, or -1 if the endpoint was
 * closed. */
int mxw_wait_for(struct mxw_endpoint *endpoint, int (*check)(struct mxw_endpoint *, void *), void *argument,
                 uint64_t deadline, enum mxw_condition condition);
void mxw_hand_over(void);
/* Return whether MX_MONOTHREAD is in effect. */
int mxw_monothreaded(void);
int mxw_start_progression(void);
void mxw_stop_progression(void);
void mxw_reset_waits(void);

/* Return whether Python has anything to do: a frame, a timer, or work that is queued. */
static inline int mxw_attention(void)
{
    const volatile struct mxw_shared *shared = &mxw_shared;
    if (shared->work || __atomic_load_n(&mxw_tick, __ATOMIC_RELAXED))
        return 1;
    for (uint64_t link = 0; link < shared->links; link++) {
        const volatile uint32_t *word = (const volatile uint32_t *)(uintptr_t)shared->word[link];
        if (!word || *word & 1)
            return 1;
    }
    for (uint64_t channel = 0; channel < shared->channels; channel++)
        if (*(const volatile uint64_t *)(uintptr_t)shared->produced[channel] != shared->consumed[channel])
            return 1;
    return 0;
}

void mxw_check_time(void);
/* A poll has found nothing: let other programs run now and then. */
void mxw_idle(void);

static inline void mxw_beat(void)
{
    __atomic_store_n(&mxw_beats, __atomic_load_n(&mxw_beats, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
    if (__builtin_expect(mxw_threadless, 0))
        mxw_check_time();
}

static inline int mxw_done(const struct mxw_request *request)
{
    return __atomic_load_n(&request->done, __ATOMIC_ACQUIRE);
}

/* Errors and texts. */

/* Pass an error of a call to the error handler, and return what it returns. endpoint may be NULL. */
mx_return_t mxw_fail(struct mxw_endpoint *endpoint, const char *call, mx_return_t code);
mx_return_t mxw_fail_handle(const char *call);
mx_status_code_t mxw_status(struct mxw_endpoint *endpoint, const char *call, uint32_t status);
void mxw_reset_errors(void);

#endif
