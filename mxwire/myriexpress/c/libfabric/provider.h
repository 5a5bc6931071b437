/* Parts of libmx-fi.so, the libfabric provider "mx": fabric and domain (provider.c), capabilities (information.c),
 * addresses (addresses.c), completions (completions.c), event queues (event_queues.c), wait objects (wait_objects.c),
 * endpoints (endpoint.c), the calls of messages (messages.c), their match information (match_information.c), sends
 * (sends.c), receives with their matching (receives.c), remote memory access (remote_access.c, atomics.c), its regions at
 * the target (regions.c), the memory of endpoints (memory.c), probes of partners for which operations wait (probes.c), and
 * progress without calls of the program (progress.c). Each begins with its own theory.
 *
 * Theory of operation
 * -------------------
 * The provider uses the public interface of MX, and none of libfabric's functions: programs bring their own libfabric.
 *
 *   - Matching is done here, in the consumer and the unexpected handler of MX, because MX knows neither directed receives
 *     nor ignore masks. Receives are posted to MX only for a message that has arrived.
 *   - A message is one message of MX, whose match information says all about it, if it can: its tag and data. Otherwise it
 *     has an envelope. When a receive matches that, the receiver chooses a number, posts a receive to MX with it, and grants
 *     it to the sender, which then sends the payload; two senders never use the same match information. Either way, a long
 *     message stays at its sender until then: probing needs no memory.
 *   - Each long message without an envelope occupies one of the few regions that MX has for sends, until it is received.
 *     While some are under way (ANNOUNCED), others have an envelope, so that no message waits for a region for ever.
 *   - An unexpected eager message that MX has as a whole is copied, within a limit of memory (HELD_MAXIMUM). Others stay in
 *     the queue of MX until they are claimed by their identity, as do envelopes beyond the limit.
 *   - The first send to an address starts a connect; sends wait in the connection's queue until it ends.
 *   - Reads and writes of remote memory, and atomic operations on it, are messages, too, with match information of their
 *     own. The target answers them in the handler; what it has to do afterwards is done by a thread while the program
 *     makes no call.
 *
 * One recursive lock protects everything, since a call of MX may call the handler. It is held during calls of MX that do
 * not wait, and never during others. The consumer only tries to take it. */

#ifndef MXF_PROVIDER_H
#define MXF_PROVIDER_H

#include <pthread.h>
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <rdma/providers/fi_prov.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "mx_extensions.h"

#define SEGMENTS 4
/* Numbers of endpoints of a board. */
#define ENDPOINT_NUMBERS 256
/* MX copies such a message before mx_isend returns. */
#define INJECT_MAXIMUM 4096
/* Longest message that MX copies, and longest that it always has as a whole. */
#define EAGER 32768
#define ANNOUNCED 64
#define WHOLE 128
#define MESSAGE_MAXIMUM ((size_t)0x7fffffff)
/* Bytes of the values of an atomic operation: MX always has its message, with two operands, and its reply as a whole. */
#define ATOMIC_BYTES 32
#define ACCESSES (FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)
#define CAPABILITIES                                                                                                   \
    (FI_MSG | FI_TAGGED | FI_SEND | FI_RECV | FI_DIRECTED_RECV | FI_MULTI_RECV | FI_SOURCE | FI_RMA | ACCESSES |       \
     FI_ATOMIC | FI_RMA_EVENT | FI_LOCAL_COMM | FI_REMOTE_COMM)
#define OPERATION_FLAGS                                                                                                \
    (FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE | FI_MULTI_RECV)
/* No completion, whatever the queue's options: of fi_inject. */
#define QUIET (UINT64_C(1) << 63)

/* Time in ms for which closing an endpoint waits for sends that were reported as sent, or whose connect has not ended, and
 * that of a region for accesses that MX performs. */
#ifndef CLOSE_MS
#define CLOSE_MS 5000
#endif

/* Time in ms between probes of the partners for which operations wait. */
#define PROBE_MS 1000

/* Match information other than that of messages without an envelope (match_information.c). */
#define MATCH(kind) ((UINT64_C(0xff00) + (kind)) << 48)
#define MATCH_ENVELOPE MATCH(2)
#define MATCH_GRANT MATCH(3)
#define MATCH_ACCESS MATCH(4)
#define MATCH_REPLY MATCH(5)
#define MATCH_BULK MATCH(6)
#define BULKS 0x8000u

struct mxf_address {
    uint64_t nic_id;
    uint32_t number, key;
};
/* Of endpoints: changes with the wire format, so that MX refuses the connects of other versions. */
#define KEY 0x6d7bu

struct mxf_header {
    uint64_t flags, data; /* data: of a remote completion queue; of a grant, the sender's number */
};
#define HEADER_DATA UINT64_C(1)
#define HEADER_TAGGED UINT64_C(2)

/* Of a message whose match information cannot say all about it, or that has to wait for a region. Its payload follows if it
 * has no number, and fits (ENCLOSED). */
struct mxf_envelope {
    struct mxf_header header;
    uint64_t tag, length, number;
};
#define ENCLOSED (WHOLE - sizeof(struct mxf_envelope))

/* Answer to an envelope: the length that the receiver takes, and the number of its receive. */
struct mxf_grant {
    struct mxf_header header;
    uint64_t length, bulk;
};
#define NO_BULK UINT64_MAX

/* Read or write of a region, or an atomic operation on it. A write is followed by its payload, or without any is an
 * envelope; an atomic operation, which replies with the former values if it also reads, by its operands. */
struct mxf_access {
    struct mxf_header header; /* data: of a read, the number of the receive for the region's content */
    uint64_t key, address, length, number;
    uint16_t operation, type, unused[2]; /* of an atomic operation: the numbers of libfabric */
};
#define HEADER_READ UINT64_C(4)
#define HEADER_WRITE UINT64_C(8)
#define HEADER_ATOMIC UINT64_C(16)
/* Longest payload behind it. */
#define EAGER_WRITE (32768 - sizeof(struct mxf_access))

/* The end of an access, with an error of libfabric or 0. A successful read has none: its data is its reply. The values
 * that an atomic operation has read follow. */
struct mxf_reply {
    struct mxf_header header; /* data: the initiator's number */
    uint64_t error;
};

/* Context of each request of MX: called at its end. */
struct mxf_work {
    void (*ended)(struct mxf_work *work, const mx_status_t *status);
};
/* The structure of which a pointer names a member. */
#define OWNER(pointer, type, member) ((struct type *)((char *)(pointer)-offsetof(struct type, member)))

/* See wait_objects.c. */
struct mxf_wait {
    int descriptor, event, timer;
    int armed; /* a program may sleep */
    int timed; /* the timer may be running */
    int set;   /* it is that of a wait set */
};

/* The endpoints of a domain, or those whose progress a queue or counter makes. */
struct mxf_endpoints {
    struct mxf_endpoint **list;
    size_t count;
    unsigned sleepers;
    struct mxf_wait *wait; /* or NULL */
};

#define REGION_LISTS 1024

struct mxf_domain {
    struct fid_domain fid;
    uint32_t board;
    unsigned users;
    int automatic;       /* progress without calls of the program */
    int virtual, chosen; /* addresses of regions are those of memory; their keys are chosen here */
    uint64_t last_key;
    struct mxf_endpoints endpoints; /* that are enabled */
    struct mxf_region *regions[REGION_LISTS]; /* by the remainder of the key */
};

enum mxf_event { MXF_SEND, MXF_RECEIVE, MXF_READ, MXF_WRITE, MXF_REMOTE_READ, MXF_REMOTE_WRITE, MXF_EVENTS };
/* The events with completion queues; others use the queue of MXF_SEND or MXF_RECEIVE. */
#define MXF_QUEUES 2

/* See addresses.c. */
struct mxf_entry {
    struct mxf_address address;
    int removed;
    size_t first;          /* place where its address was inserted first */
    size_t present, count; /* of that place: the first place that has the address now, and how many have it */
};

struct mxf_av {
    struct fid_av fid;
    struct mxf_domain *domain;
    struct mxf_entry *entries;
    size_t count, room; /* the table has twice the room */
    size_t *table;
    unsigned users;
};
#define GONE UINT64_MAX /* nic_id of no address */

struct mxf_completion {
    void *context;
    uint64_t flags, data, tag;
    size_t length, rest;
    void *buffer;
    fi_addr_t source;
    int error;
};

struct mxf_cq {
    struct fid_cq fid;
    struct mxf_domain *domain;
    enum fi_cq_format format;
    struct mxf_completion *ring;
    size_t room, first, count;
    struct mxf_endpoints endpoints;
    unsigned signals, users;
};

struct mxf_counter {
    struct fid_cntr fid;
    struct mxf_domain *domain;
    uint64_t value, errors, seen; /* seen: their sum when the program last read them */
    struct mxf_endpoints endpoints;
    unsigned users;
};

/* The arguments of a call that sends, reads or writes. */
struct mxf_operation {
    const struct iovec *segments;
    size_t count;
    fi_addr_t partner;
    int tagged;
    uint64_t tag, data, flags;
    void *context;
};

/* A message, or an access to remote memory. */
struct mxf_send {
    struct mxf_work header, bulk;
    struct mxf_endpoint *endpoint;
    struct mxf_send *next; /* in the queue of a connection */
    struct mxf_connection *connection;
    void *context;
    enum mxf_event event;
    uint64_t flags, match;
    int tagged;
    int atomic;      /* the segments behind the first are for the values that the reply has */
    int announced;   /* by MX, since it is long or synchronous, and has no envelope */
    uint64_t number; /* by which the partner names it in a grant or reply; 0 if there is none */
    size_t length;
    int error, transmitted, granted, answered;
    int pending; /* requests of MX that have not ended */
    uint64_t bulk_number; /* of a read: NO_BULK, or that of its receive */
    int receiving;        /* of a read: MX has the receive */
    mx_request_t receive;
    uint32_t segments, first; /* all, and those of the first message of MX */
    mx_segment_t segment[1 + SEGMENTS];
    char *memory; /* of an injected message that is longer than the space below */
    char space[256];
};

enum mxf_connected { MXF_UNCONNECTED, MXF_CONNECTING, MXF_CONNECTED };

struct mxf_connection {
    struct mxf_work work;
    struct mxf_endpoint *endpoint;
    enum mxf_connected state;
    struct mxf_address address;
    mx_endpoint_addr_t partner;
    struct mxf_send *first, *last;
    size_t unsent; /* sends that have not ended */
};

/* A partner that has gone, or that was opened again with another session. */
struct mxf_loss {
    struct mxf_address address;
    int reopened;
    uint32_t session;
    mx_status_t status;
};

struct mxf_receive {
    struct mxf_receive *previous, *next;
    void *context;
    uint64_t flags, tag, ignore;
    struct mxf_address source; /* nic_id GONE: any */
    size_t segments, length, offset;
    unsigned pending; /* parts of a multi-receive that have not ended */
    int listed;       /* in the list of posted receives */
    int retired;
    struct iovec segment[SEGMENTS];
};

/* A grant or reply on its way. If it fails, its owner is notified. */
struct mxf_answer {
    struct mxf_work work;
    struct mxf_endpoint *endpoint;
    struct mxf_answer **place; /* in the owner; NULL: the owner has gone */
    void (*failed)(void *owner, const mx_status_t *status);
    void *owner;
    int urgent;
    char content[sizeof(struct mxf_reply) + ATOMIC_BYTES];
};

/* Waits for the number of a bulk. */
struct mxf_waiter {
    struct mxf_waiter *previous, *next;
    void (*ready)(struct mxf_waiter *waiter);
};

/* A message that has arrived, until it is received. */
enum mxf_place {
    MXF_QUEUED,   /* in the queue of MX */
    MXF_ARRIVING, /* a request of MX receives it */
    MXF_HELD,     /* in memory */
    MXF_ENVELOPE  /* at the sender */
};

struct mxf_message {
    struct mxf_work work;
    struct mxf_message *previous, *next;
    struct mxf_endpoint *endpoint;
    enum mxf_place place;
    int tagged, with_data;
    mx_endpoint_addr_t partner;
    struct mxf_address source;
    uint64_t tag, data;
    size_t length, taken; /* of the payload; of what the receive takes */
    size_t counted;       /* of the memory for unexpected messages */
    uint64_t identity;    /* in the queue of MX */
    int enveloped;        /* there, an envelope precedes the payload */
    uint64_t number;      /* of an envelope whose payload is at the sender */
    uint64_t bulk;
    struct mxf_receive *receive;
    struct mxf_answer *grant;
    mx_request_t request; /* that receives the bulk */
    int late;             /* the bulk has not arrived since earlier probes */
    struct mxf_waiter waiter;
    void *claim, *buffer;
    struct iovec target[SEGMENTS];
    size_t targets;
    char *held;
};

#define LIST(type)                                                                                                     \
    struct {                                                                                                           \
        struct type *first, *last;                                                                                     \
    }
#define APPEND(list, item)                                                                                             \
    do {                                                                                                               \
        (item)->next = NULL;                                                                                           \
        (item)->previous = (list)->last;                                                                               \
        if ((list)->last)                                                                                              \
            (list)->last->next = (item);                                                                               \
        else                                                                                                           \
            (list)->first = (item);                                                                                    \
        (list)->last = (item);                                                                                         \
    } while (0)
#define REMOVE(list, item)                                                                                             \
    do {                                                                                                               \
        if ((item)->previous)                                                                                          \
            (item)->previous->next = (item)->next;                                                                     \
        else                                                                                                           \
            (list)->first = (item)->next;                                                                              \
        if ((item)->next)                                                                                              \
            (item)->next->previous = (item)->previous;                                                                 \
        else                                                                                                           \
            (list)->last = (item)->previous;                                                                           \
    } while (0)

struct mxf_endpoint {
    struct fid_ep fid;
    struct mxf_domain *domain;
    struct mxf_av *av;
    struct mxf_cq *cq[MXF_QUEUES];
    struct mxf_counter *counter[MXF_EVENTS];
    int selective[MXF_QUEUES];
    uint64_t default_flags[MXF_QUEUES];
    uint64_t caps;
    struct mxf_address wanted, own;
    mx_endpoint_t mx;
    int enabled, closing;
    size_t min_multi_receive;
    struct mxf_connection **connections; /* by the first place of the address */
    size_t connection_room;
    LIST(mxf_receive) posted[2];        /* untagged and tagged */
    LIST(mxf_message) unexpected[2];
    LIST(mxf_message) claimed;
    LIST(mxf_message) granted;          /* whose bulk has not arrived */
    LIST(mxf_block) blocks;             /* see memory.c */
    size_t held;                        /* bytes of unexpected messages in memory */
    uint64_t stayed;                    /* messages and accesses that had to stay in the queue of MX */
    size_t unsent;                      /* sends that have not ended */
    LIST(mxf_probe) probes;             /* connects to partners for which operations wait */
    uint64_t probed;                    /* time of the last ones */
    size_t announced;                   /* long ones without an envelope */
    struct mxf_send **numbered;         /* sends by the low half of their number */
    size_t numbered_room, numbered_next;
    uint32_t *free_bulks, free_count;
    LIST(mxf_waiter) waiting;           /* for the number of a bulk */
    int passing;                        /* free numbers to them */
    LIST(mxf_visit) visits;             /* accesses of others to regions */
    LIST(mxf_visit) postponed;          /* in the queue of MX, until fewer are in progress */
    unsigned visiting, answers;         /* accesses, and grants and replies, in progress */
    unsigned resumed;                   /* accesses that were postponed, and are being received */
    unsigned calls, urgent;             /* see progress.c */
    int threaded, resting;
    pid_t process;
    pthread_t thread;
    pthread_cond_t urged;
};

/* Memory that is freed when its endpoint is closed, or before. */
void *mxf_allocate(struct mxf_endpoint *endpoint, size_t size);
void mxf_free(struct mxf_endpoint *endpoint, void *memory);
void mxf_free_blocks(struct mxf_endpoint *endpoint);

extern pthread_mutex_t mxf_lock;
void mxf_enter(void);
void mxf_leave(void);
void mxf_leave_idle(void);
uint64_t mxf_now(void); /* ms */
/* The end of a wait of at least ``timeout`` ms; UINT64_MAX (no end) if it is negative. */
uint64_t mxf_deadline(int timeout);
void mxf_prepare_condition(pthread_cond_t *condition);
/* Release the lock, wait for the condition until the deadline, and take the lock again; may return early. */
void mxf_await(pthread_cond_t *condition, uint64_t deadline);

/* A line on stderr, if FI_LOG_LEVEL asks for warnings; once per place. */
void mxf_warn(int *said, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define WARN(...)                                                                                                      \
    do {                                                                                                               \
        static int said;                                                                                               \
        mxf_warn(&said, __VA_ARGS__);                                                                                  \
    } while (0)

ssize_t mxf_unsupported(void);
/* A member of an operations structure that is not supported. */
#define UNSUPPORTED ((void *)mxf_unsupported)

int mxf_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags, const struct fi_info *hints,
                struct fi_info **info);
int mxf_use_mx(void);
void mxf_release_mx(void);
int mxf_code(mx_return_t code);
int mxf_error(mx_status_code_t code);

int mxf_av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **av, void *context);
int mxf_same(const struct mxf_address *one, const struct mxf_address *other);
int mxf_known(const struct mxf_av *av, fi_addr_t place);
fi_addr_t mxf_find(const struct mxf_av *av, const struct mxf_address *address);
/* The number of an endpoint that the name of a service means. */
int mxf_read_service(const char *service, uint32_t *number);
int mxf_resolve(const char *node, const char *service, struct mxf_address *address);

int mxf_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq, void *context);
int mxf_counter_open(struct fid_domain *domain, struct fi_cntr_attr *attr, struct fid_cntr **counter, void *context);
int mxf_join(struct mxf_endpoints *endpoints, struct mxf_endpoint *endpoint);
void mxf_part(struct mxf_endpoints *endpoints, struct mxf_endpoint *endpoint);
/* Report the end of an operation: count it, and queue the completion if it is wanted. */
void mxf_complete(struct mxf_endpoint *endpoint, enum mxf_event event, const struct mxf_completion *completion);

/* A counter alone: that of a region. */
void mxf_count(struct mxf_counter *counter, int error);
/* The endpoints of a queue or counter; NULL for other objects. */
struct mxf_endpoints *mxf_endpoints_of(struct fid *fid);
/* Return whether a queue or counter has something for its program. */
int mxf_ready(struct fid *fid);

int mxf_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **result, void *context);
struct mxf_wait *mxf_eq_wait(struct fid *fid);
int mxf_eq_ready(const struct fid *fid);

int mxf_wait_open(struct mxf_wait **wait, enum fi_wait_obj kind, struct fid_wait *set, struct fid *fid);
void mxf_wait_close(struct mxf_wait *wait, struct fid *fid);
int mxf_wait_add(struct mxf_wait *wait, struct mxf_endpoint *endpoint);
void mxf_wait_signal(struct mxf_wait *wait);
int mxf_wait_control(struct mxf_wait *wait, int command, void *argument);
int mxf_trywait(struct fid_fabric *fabric, struct fid **fids, int count);
int mxf_wait_set_open(struct fid_fabric *fabric, struct fi_wait_attr *attr, struct fid_wait **result);
int mxf_poll_set_open(struct fid_domain *domain, struct fi_poll_attr *attr, struct fid_poll **result);

int mxf_endpoint_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **endpoint, void *context);

/* Call the ends of requests that have ended; of the program's calls, mxf_progress. */
void mxf_poll(struct mxf_endpoint *endpoint);
void mxf_progress(struct mxf_endpoint *endpoint);
void mxf_urge(struct mxf_endpoint *endpoint);

/* Return whether an operation waits for a partner; probe the partners for which operations have waited. */
int mxf_waits(const struct mxf_endpoint *endpoint);
void mxf_probe(struct mxf_endpoint *endpoint);
void mxf_probe_partner(struct mxf_endpoint *endpoint, const struct mxf_address *address);
void mxf_probe_messages(struct mxf_endpoint *endpoint);
void mxf_probe_visits(struct mxf_endpoint *endpoint);
/* Return whether a loss concerns an operation with a partner; fail those that wait. */
int mxf_is_lost(const struct mxf_loss *loss, mx_endpoint_addr_t partner);
void mxf_lose_sends(struct mxf_connection *connection, int error);
void mxf_lose_messages(struct mxf_endpoint *endpoint, const struct mxf_loss *loss);
void mxf_lose_visits(struct mxf_endpoint *endpoint, const struct mxf_loss *loss);
int mxf_gone(mx_status_code_t code);
/* Return whether a request that has ended with a status has failed. */
int mxf_failed(mx_status_code_t code);
void mxf_start_thread(struct mxf_endpoint *endpoint);
void mxf_stop_thread(struct mxf_endpoint *endpoint);

extern struct fi_ops_msg mxf_msg_ops;
extern struct fi_ops_tagged mxf_tagged_ops;
extern struct fi_ops_rma mxf_rma_ops;
extern struct fi_ops_atomic mxf_atomic_ops;
extern struct fi_ops_mr mxf_mr_ops;

ssize_t mxf_send(struct mxf_endpoint *endpoint, const struct mxf_operation *operation);
/* A send with a header of some length, or none, at the beginning of its first segment. */
ssize_t mxf_new_send(struct mxf_endpoint *endpoint, const struct mxf_operation *operation, enum mxf_event event,
                     size_t header, struct mxf_send **send);
/* Give a send a number. */
int mxf_number(struct mxf_send *send);
struct mxf_send *mxf_numbered(struct mxf_endpoint *endpoint, uint64_t number, const struct mxf_address *partner);
/* Hand a send to MX, or to the queue of its connection. After an error it is freed. */
ssize_t mxf_submit(struct mxf_send *send);
void mxf_free_send(struct mxf_send *send);
void mxf_end_if_done(struct mxf_send *send);
void mxf_granted(struct mxf_endpoint *endpoint, const struct mxf_address *source, const struct mxf_grant *grant);

/* Match information that says all about a message without an envelope; return 0 if there is none. */
int mxf_pack(const struct mxf_operation *operation, uint64_t *match);
/* Tag and data of such a message; return 0 if the match information is not that of one. */
int mxf_unpack(uint64_t match, struct mxf_message *message);

int mxf_start_read(struct mxf_send *send);
void mxf_cancel_read(struct mxf_send *send);
/* A reply, followed by values. */
void mxf_replied(struct mxf_endpoint *endpoint, const struct mxf_address *source, const void *reply, size_t length);
ssize_t mxf_start_atomic(struct fid_ep *fid, const struct mxf_access *access, const struct mxf_operation *operation,
                         const struct iovec *results, size_t count);
/* Number of operands of an atomic operation per value, and size of its values; 0: it is not supported. */
size_t mxf_operands(uint32_t operation);
size_t mxf_atomic_size(uint32_t operation, uint32_t type);
/* Replace values by the results of an operation. */
void mxf_compute(uint32_t operation, uint32_t type, size_t length, char *values, const char *operands);
int mxf_query_atomic(struct fid_domain *domain, enum fi_datatype type, enum fi_op operation, struct fi_atomic_attr *attr,
                     uint64_t flags);
mx_unexp_handler_action_t mxf_accessed(struct mxf_endpoint *endpoint, mx_endpoint_addr_t partner,
                                       const struct mxf_address *source, uint32_t length, const void *data);
/* Begin with accesses that were postponed, if few are in progress. */
void mxf_resume_visits(struct mxf_endpoint *endpoint);
void mxf_leave_regions(struct mxf_endpoint *endpoint);

ssize_t mxf_post(struct mxf_endpoint *endpoint, int tagged, const struct iovec *segments, size_t count,
                 fi_addr_t source, uint64_t tag, uint64_t ignore, uint64_t flags, void *context);
ssize_t mxf_cancel(fid_t fid, void *context);
mx_unexp_handler_action_t mxf_arrived(void *context, mx_endpoint_addr_t source, uint64_t match, uint32_t length,
                                      void *data);
/* The consumer: see mx_extensions.h. */
mx_unexp_handler_action_t mxf_consume(void *context, mx_endpoint_addr_t source, uint64_t match, uint32_t length,
                                      void *data);
/* Numbers of bulks: one that is free, or NO_BULK. */
uint64_t mxf_take_bulk(struct mxf_endpoint *endpoint);
void mxf_free_bulk(struct mxf_endpoint *endpoint, uint64_t bulk);
/* Return whether a bulk has arrived as a whole, from its sender: any endpoint can send with this match information. */
int mxf_whole(const mx_status_t *status, size_t length, const struct mxf_address *source);
/* Send a grant or reply, or return an error. It is in *place until it ends, and its owner is notified if it then fails. */
int mxf_answer(struct mxf_endpoint *endpoint, mx_endpoint_addr_t partner, uint64_t match, const void *content,
               size_t length, const struct mxf_answer *template);

#endif
