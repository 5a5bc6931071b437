/* Plays the schedules of schedules.py: one rank of a random MX program that checks all that it receives.
 *
 *   player FILE RANK HOST,HOST,…
 *
 * FILE has lines of words; each schedule declares endpoints and messages, and then phases of calls per thread, which
 * the threads make at the same time. A barrier of all ranks follows each phase. The last line of output is "done". */

#include "cases.h"

#define RANKS 8
#define ENDPOINTS 32
#define THREADS 4
#define WORDS 16
#define GUARD 8
#define FILLER 0xa5
#define CONTROL 24
#define CONTROL_KEY 0xc0
/* In match information: the lower bits are the number of a message. */
#define IDENTIFIED (1ull << 23)

struct endpoint {
    int rank;
    uint32_t number, key, handled;
    int context_bits, context_shift;
    mx_endpoint_t handle;
    mx_endpoint_addr_t own;
    mx_endpoint_addr_t addresses[ENDPOINTS];
};

enum action { KEEP, CONSUME, RECEIVE_INSIDE, ANSWER };

struct message {
    uint64_t match_info;
    uint32_t length;
    int from, to, action, call;
    int handled;
};

/* A call: its kind, its number, and words whose meaning depends on the kind. */
struct call {
    char kind;
    int thread, number, posted, done;
    uint64_t words[WORDS];
    mx_request_t request;
    unsigned char *memory;
    mx_segment_t *segments;
    uint32_t count, length;
    int taken; /* message that a receive has taken */
};

/* Words of sends and receives. */
enum { ENDPOINT, PEER, MESSAGE, MATCH, MASK, LENGTH, SEGMENTS, MODE, CODE, TRANSFERRED, GROUP };
#define EITHER 99
enum mode { NORMAL, SYNCHRONOUS, WITHOUT_REQUEST, FORGOTTEN, REUSED };

static int rank, ranks;
static char *hosts[RANKS];
static uint64_t nic_ids[RANKS];
static mx_endpoint_t control;
static mx_endpoint_addr_t controls[RANKS];
static struct endpoint endpoints[ENDPOINTS];
static int endpoint_count;
static struct message *messages;
static int message_count;
static struct call *calls, **by_number;
static int call_count;
static long seed = -1;
static int phase;
static struct call *volatile current[THREADS];

static unsigned char content(int message, uint32_t place)
{
    return (unsigned char)(message * 37 + place + place / 251 + (place >> 13) * 3);
}

static int wrong(const struct call *call, const char *what, long long got, long long wanted)
{
    if (failures++ < 20)
        printf("seed %ld phase %d rank %d thread %d: call %c%d: %s is %lld, not %lld\n", seed, phase, rank,
               call->thread, call->kind, call->number, what, got, wanted);
    return 0;
}

static int same(const struct call *call, const char *what, long long got, long long wanted)
{
    return got == wanted || wrong(call, what, got, wanted);
}

#define SAME(call, value, wanted) same(call, #value, (long long)(value), (long long)(wanted))

/* Segments of random lengths within one block, with guards around each. */
static void lay_out(struct call *call)
{
    uint32_t left = call->length, state = (uint32_t)call->number * 2654435761u + 12345;
    call->count = (uint32_t)call->words[SEGMENTS];
    call->segments = calloc(call->count + 1, sizeof *call->segments);
    size_t size = call->length + (call->count + 1) * GUARD;
    call->memory = malloc(size);
    memset(call->memory, FILLER, size);
    unsigned char *place = call->memory + GUARD;
    for (uint32_t each = 0; each < call->count; each++) {
        state = state * 1664525 + 1013904223;
        uint32_t length = each + 1 == call->count ? left : state >> 8 & 3 ? (state >> 10) % (2 * left / (call->count - each) + 1) : 0;
        length = length < left ? length : left;
        call->segments[each] = (mx_segment_t){length || state & 1 << 20 ? place : NULL, length};
        place += length + GUARD;
        left -= length;
    }
}

static void fill(struct call *call)
{
    uint32_t position = 0;
    for (uint32_t each = 0; each < call->count; each++) {
        unsigned char *place = call->segments[each].segment_ptr;
        for (uint32_t byte = 0; byte < call->segments[each].segment_length; byte++)
            place[byte] = content((int)call->words[MESSAGE], position++);
    }
}

/* The first wrong byte of a receive, or -1; all bytes that no message was received into are as before. */
static long check_memory(const struct call *call, int message, uint32_t received)
{
    uint32_t position = 0;
    const unsigned char *place = call->memory;
    for (uint32_t each = 0; each <= call->count; each++) {
        for (int byte = 0; byte < GUARD; byte++)
            if (*place++ != FILLER)
                return -2 - (long)each;
        uint32_t length = each < call->count ? call->segments[each].segment_length : 0;
        for (uint32_t byte = 0; byte < length; byte++, position++)
            if (*place++ != (position < received ? content(message, position) : FILLER))
                return (long)position;
    }
    return -1;
}

static mx_return_t post_send(struct call *call)
{
    struct endpoint *endpoint = &endpoints[call->words[ENDPOINT]];
    mx_endpoint_addr_t to = endpoint->addresses[call->words[PEER]];
    call->length = (uint32_t)call->words[LENGTH];
    lay_out(call);
    fill(call);
    mx_return_t code = (call->words[MODE] == SYNCHRONOUS ? mx_issend : mx_isend)(
        endpoint->handle, call->count ? call->segments : NULL, call->count, to, call->words[MATCH], call,
        call->words[MODE] == WITHOUT_REQUEST ? NULL : &call->request);
    /* The list is copied, the memory is not. */
    memset(call->segments, 0xff, call->count * sizeof *call->segments);
    if (call->words[MODE] == FORGOTTEN) {
        MUST(mx_forget(endpoint->handle, &call->request));
        SAME(call, call->request, NULL);
    }
    if (call->words[MODE] == REUSED) {
        uint32_t buffered = 7;
        MUST(mx_ibuffered(endpoint->handle, &call->request, &buffered));
        if (buffered)
            memset(call->memory, 0, call->length);
    }
    __atomic_store_n(&call->posted, 1, __ATOMIC_RELEASE);
    return code;
}

static mx_return_t post_receive(struct call *call)
{
    struct endpoint *endpoint = &endpoints[call->words[ENDPOINT]];
    call->length = (uint32_t)call->words[LENGTH];
    lay_out(call);
    mx_segment_t segments[MX_MAX_SEGMENTS];
    memcpy(segments, call->segments, call->count * sizeof *segments);
    mx_return_t code = mx_irecv(endpoint->handle, call->count ? segments : NULL, call->count, call->words[MATCH],
                                call->words[MASK], call, call->words[MODE] == WITHOUT_REQUEST ? NULL : &call->request);
    memset(segments, 0xff, sizeof segments);
    if (call->words[MODE] == FORGOTTEN) {
        MUST(mx_forget(endpoint->handle, &call->request));
        SAME(call, call->request, NULL);
    }
    __atomic_store_n(&call->posted, 1, __ATOMIC_RELEASE);
    return code;
}

static int same_address(mx_endpoint_addr_t one, mx_endpoint_addr_t other)
{
    return !memcmp(&one, &other, sizeof one);
}

/* A request has ended: check its status against the schedule. */
static void end_call(struct call *call, const mx_status_t *status)
{
    struct endpoint *endpoint = &endpoints[call->words[ENDPOINT]];
    SAME(call, call->done, 0);
    SAME(call, status->context == call, 1);
    if (call->kind == 'K') {
        SAME(call, status->code, call->words[CODE]);
        SAME(call, status->match_info, call->words[MATCH]);
        if (status->code == MX_STATUS_SUCCESS)
            SAME(call, same_address(status->source, endpoint->addresses[call->words[PEER]]), 1);
    } else if (call->kind == 'S' || call->kind == 'J') {
        /* One that is buffered, or not, by the options of the host. */
        int buffered = call->words[CODE] == EITHER && status->code == MX_STATUS_SUCCESS;
        if (call->words[CODE] != EITHER)
            SAME(call, status->code, call->words[CODE]);
        SAME(call, status->match_info, call->words[MATCH]);
        SAME(call, status->msg_length, call->length);
        SAME(call, status->xfer_length, buffered ? call->length : call->words[TRANSFERRED]);
        SAME(call, same_address(status->source, endpoint->addresses[call->words[PEER]]), 1);
    } else {
        int number = call->words[GROUP] ? (int)(status->match_info & (IDENTIFIED - 1)) : (int)call->words[MESSAGE];
        if (number >= message_count) {
            wrong(call, "the number of the message", number, message_count);
            return;
        }
        const struct message *message = &messages[number];
        uint32_t received = message->length < call->length ? message->length : call->length;
        call->taken = number;
        SAME(call, status->match_info, message->match_info);
        SAME(call, endpoint - endpoints, message->to);
        SAME(call, status->msg_length, message->length);
        SAME(call, status->xfer_length, received);
        SAME(call, status->code, received < message->length ? MX_STATUS_TRUNCATED : MX_STATUS_SUCCESS);
        SAME(call, same_address(status->source, endpoint->addresses[message->from]), 1);
        SAME(call, check_memory(call, number, received), -1);
    }
    __atomic_store_n(&call->done, 1, __ATOMIC_RELEASE);
}

static int is_done(const struct call *call)
{
    return __atomic_load_n(&call->done, __ATOMIC_ACQUIRE);
}

/* Complete a request in one of several ways; those that take any request of the endpoint may complete others, too. */
static void complete(struct call *call, int method)
{
    mx_endpoint_t endpoint = endpoints[call->words[ENDPOINT]].handle;
    while (!__atomic_load_n(&call->posted, __ATOMIC_ACQUIRE))
        MUST(mx_progress(endpoint));
    while (!is_done(call)) {
        mx_status_t status;
        mx_request_t request = call->request;
        uint32_t result = 9;
        uint64_t bits = call->words[MATCH] & call->words[MASK];
        memset(&status, 0x77, sizeof status);
        status.context = call;
        switch (method) {
        case 0: MUST(mx_test(endpoint, &request, &status, &result)); break;
        case 1: MUST(mx_wait(endpoint, &request, MX_INFINITE, &status, &result)); break;
        case 2: MUST(mx_wait(endpoint, &request, 1, &status, &result)); break;
        case 3: MUST(mx_test_any(endpoint, 0, 0, &status, &result)); break;
        case 4: MUST(mx_wait_any(endpoint, 3, bits, call->words[MASK], &status, &result)); break;
        case 5: MUST(mx_wait_any(endpoint, MX_INFINITE, 0, 0, &status, &result)); break;
        default:
            if (method == 6)
                MUST(mx_ipeek(endpoint, &request, &result));
            else
                MUST(mx_peek(endpoint, method == 7 ? 5 : MX_INFINITE, &request, &result));
            if (result) {
                MUST(mx_test(endpoint, &request, &status, &result));
                SAME(call, result, 1);
                SAME(call, request, NULL);
            }
        }
        if (!result) {
            SAME(call, status.msg_length, 0x77777777);
            continue;
        }
        SAME(call, result, 1);
        if (method < 3)
            SAME(call, request, NULL);
        end_call(status.context, &status);
    }
}

static void probe(struct call *call)
{
    enum { BLOCKING = 5, LONGEST, NUMBER };
    struct endpoint *endpoint = &endpoints[call->words[ENDPOINT]];
    mx_status_t status;
    uint32_t result = 0;
    do {
        uint32_t timeout = (uint32_t)call->words[LONGEST];
        if (call->words[BLOCKING])
            MUST(mx_probe(endpoint->handle, timeout, call->words[MATCH], call->words[MASK], &status, &result));
        else
            MUST(mx_iprobe(endpoint->handle, call->words[MATCH], call->words[MASK], &status, &result));
    } while (!result);
    const struct message *message = &messages[call->words[NUMBER]];
    SAME(call, status.match_info, message->match_info);
    SAME(call, status.msg_length, message->length);
    SAME(call, status.xfer_length, message->length);
    SAME(call, same_address(status.source, endpoint->addresses[message->from]), 1);
}

/* Connect again; or to where no endpoint is, or with a wrong key. */
static void reconnect(struct call *call)
{
    enum { WAY = 5 };
    struct endpoint *endpoint = &endpoints[call->words[ENDPOINT]], *peer = &endpoints[call->words[PEER]];
    mx_endpoint_addr_t address;
    uint64_t nic_id = nic_ids[peer->rank];
    if (call->words[WAY] == 0) {
        mx_return_t code;
        for (;;) {
            code = mx_connect(endpoint->handle, nic_id, peer->number, peer->key, 0, &address);
            if (code != MX_TIMEOUT) /* mx_wakeup */
                break;
        }
        if (SAME(call, code, MX_SUCCESS))
            SAME(call, same_address(address, endpoint->addresses[call->words[PEER]]), 1);
        call->done = 1;
    } else {
        uint32_t number = call->words[CODE] == MX_STATUS_ENDPOINT_CLOSED ? 31 : peer->number;
        if (call->words[CODE] == MX_STATUS_BAD_ENDPOINT)
            number = 200;
        uint32_t key = call->words[CODE] == MX_STATUS_BAD_KEY ? peer->key + 1 : peer->key;
        MUST(mx_iconnect(endpoint->handle, nic_id, number, key, call->words[MATCH], call, call->words[WAY] == 2 ? NULL : &call->request));
    }
    call->posted = 1;
}

static void pause_for(uint64_t microseconds, int busy)
{
    if (!busy)
        usleep((useconds_t)microseconds);
    for (double start = seconds(); busy && seconds() - start < 1e-6 * (double)microseconds;)
        ;
}

/* A receive without a request has no status: its memory shows its end. */
static void await_memory(struct call *call)
{
    struct message *message = &messages[call->words[MESSAGE]];
    while (check_memory(call, (int)call->words[MESSAGE], message->length) != -1)
        MUST(mx_progress(endpoints[call->words[ENDPOINT]].handle));
}

static void await_handler(struct call *call)
{
    struct message *message = &messages[call->words[MESSAGE]];
    while (!__atomic_load_n(&message->handled, __ATOMIC_ACQUIRE))
        MUST(mx_progress(endpoints[call->words[ENDPOINT]].handle));
}

static void set_context(struct call *call)
{
    struct endpoint *endpoint = &endpoints[call->words[ENDPOINT]];
    void *context = NULL;
    MUST(mx_set_endpoint_addr_context(endpoint->addresses[call->words[PEER]], &endpoints[call->words[PEER]]));
    MUST(mx_get_endpoint_addr_context(endpoint->addresses[call->words[PEER]], &context));
    SAME(call, context == &endpoints[call->words[PEER]], 1);
}

static void cancel(struct call *call)
{
    struct call *receive = by_number[call->words[MESSAGE]];
    uint32_t result = 7;
    MUST(mx_cancel(endpoints[call->words[ENDPOINT]].handle, &receive->request, &result));
    SAME(call, result, 1);
    SAME(call, receive->request, NULL);
    SAME(call, check_memory(receive, 0, 0), -1);
    receive->done = 1;
}

static void make(struct call *call)
{
    mx_endpoint_t endpoint = endpoints[call->words[ENDPOINT]].handle;
    current[call->thread] = call;
    switch (call->kind) {
    case 'S': SAME(call, post_send(call), MX_SUCCESS); break;
    case 'R': SAME(call, post_receive(call), MX_SUCCESS); break;
    case 'C': complete(by_number[call->words[MESSAGE]], (int)call->words[PEER]); break;
    case 'P': probe(call); break;
    case 'K': reconnect(call); break;
    case 'X': cancel(call); break;
    case 'F': await_memory(by_number[call->words[MESSAGE]]); break;
    case 'U': await_handler(call); break;
    case 'A': set_context(call); break;
    case 'Z': pause_for(call->words[PEER], 0); break;
    case 'B': pause_for(call->words[PEER], 1); break;
    case 'W': MUST(mx_wakeup(endpoint)); break;
    case 'D': MUST(mx_disable_progression(endpoint)); break;
    case 'N': MUST(mx_reenable_progression(endpoint)); break;
    case 'G': MUST(mx_progress(endpoint)); break;
    case 'T': MUST(mx_set_request_timeout(endpoint, NULL, 60000)); break;
    case 'H': break;
    default: wrong(call, "the kind", call->kind, 0);
    }
}

static mx_unexp_handler_action_t handle(void *context, mx_endpoint_addr_t source, uint64_t info, uint32_t length,
                                        void *data)
{
    struct endpoint *endpoint = context;
    struct call none = {.kind = 'H', .thread = -1};
    int number = (int)(info & (IDENTIFIED - 1));
    if (!(info & IDENTIFIED) || number >= message_count)
        return MX_RECV_CONTINUE;
    struct message *message = &messages[number];
    none.number = number;
    SAME(&none, info, message->match_info);
    SAME(&none, endpoint - endpoints, message->to);
    SAME(&none, length, message->length);
    SAME(&none, same_address(source, endpoint->addresses[message->from]), 1);
    for (uint32_t place = 0; data && place < length; place++)
        if (((unsigned char *)data)[place] != content(number, place)) {
            wrong(&none, "the byte", place, 0);
            break;
        }
    if (message->action == KEEP)
        return MX_RECV_CONTINUE;
    SAME(&none, message->handled, 0);
    struct call *call = message->call >= 0 ? by_number[message->call] : NULL;
    if (message->action == RECEIVE_INSIDE)
        SAME(call, post_receive(call), MX_SUCCESS);
    if (message->action == ANSWER)
        SAME(call, post_send(call), MX_SUCCESS);
    __atomic_store_n(&message->handled, 1, __ATOMIC_RELEASE);
    return message->action == RECEIVE_INSIDE ? MX_RECV_CONTINUE : MX_RECV_FINISHED;
}

static void *run_thread(void *argument)
{
    int thread = (int)(intptr_t)argument;
    for (int each = 0; each < call_count; each++)
        if (calls[each].thread == thread && calls[each].kind != 'I' && calls[each].kind != 'J')
            make(&calls[each]);
    return NULL;
}

static void barrier(void)
{
    static uint64_t round;
    round++;
    for (int way = 0; way < 2; way++)
        for (int other = 1; other < ranks; other++) {
            mx_request_t request;
            if ((way == 0) == (rank == 0)) {
                if (rank == 0 || rank == other) {
                    request = post(control, NULL, 0, round << 8 | (uint64_t)other, ALL);
                    EQUAL(finish(control, &request, NULL), 0);
                }
            } else if (rank == 0 || rank == other) {
                request = send_to(control, controls[rank ? 0 : other], NULL, 0, round << 8 | (uint64_t)other);
                EQUAL(finish(control, &request, NULL), 0);
            }
        }
}

static void connect_to(mx_endpoint_t endpoint, int other, uint32_t number, uint32_t key, mx_endpoint_addr_t *address)
{
    mx_return_t code = MX_FAILURE;
    for (double limit = seconds() + 60; code != MX_SUCCESS && seconds() < limit;) {
        code = mx_hostname_to_nic_id(hosts[other], &nic_ids[other]);
        if (code == MX_SUCCESS)
            code = mx_connect(endpoint, nic_ids[other], number, key, 1000, address);
        if (code != MX_SUCCESS)
            usleep(10000);
    }
    MUST(code);
}

static void begin(void)
{
    for (int each = 0; each < endpoint_count; each++) {
        struct endpoint *endpoint = &endpoints[each];
        mx_param_t params[2] = {{.key = MX_PARAM_UNEXP_QUEUE_MAX, .val.unexp_queue_max = 1 << 22},
                                {.key = MX_PARAM_CONTEXT_ID}};
        params[1].val.context_id.bits = (uint8_t)endpoint->context_bits;
        params[1].val.context_id.shift = (uint8_t)endpoint->context_shift;
        if (endpoint->rank != rank)
            continue;
        MUST(mx_open_endpoint(each % 2 ? MX_ANY_NIC : 0, endpoint->number, endpoint->key, params,
                              endpoint->context_bits ? 2 : 1, &endpoint->handle));
        MUST(mx_get_endpoint_addr(endpoint->handle, &endpoint->own));
        if (endpoint->handled)
            MUST(mx_register_unexp_handler(endpoint->handle, handle, endpoint));
    }
    barrier();
    for (int each = 0; each < endpoint_count; each++)
        for (int other = 0; endpoints[each].rank == rank && other < endpoint_count; other++) {
            struct endpoint *peer = &endpoints[other];
            if (other == each)
                endpoints[each].addresses[other] = endpoints[each].own;
            else
                connect_to(endpoints[each].handle, peer->rank, peer->number, peer->key,
                           &endpoints[each].addresses[other]);
        }
    barrier();
}

/* After a phase nothing is left; receives of a group have taken the messages of each sender in order. */
static void check_phase(void)
{
    struct call none = {.kind = '-', .thread = -1};
    for (int each = 0; each < endpoint_count; each++) {
        mx_request_t request = NULL;
        mx_status_t status;
        uint32_t result = 9;
        if (endpoints[each].rank != rank)
            continue;
        none.number = each;
        MUST(mx_ipeek(endpoints[each].handle, &request, &result));
        if (!SAME(&none, result, 0)) {
            MUST(mx_test(endpoints[each].handle, &request, &status, &result));
            printf("left: call %c%d\n", ((struct call *)status.context)->kind, ((struct call *)status.context)->number);
        }
        MUST(mx_iprobe(endpoints[each].handle, 0, 0, &status, &result));
        SAME(&none, result, 0);
    }
    for (int each = 0; each < call_count; each++) {
        struct call *call = &calls[each];
        if ((call->kind == 'R' || call->kind == 'I') && call->words[MODE] != WITHOUT_REQUEST && call->words[MODE] != FORGOTTEN)
            SAME(call, call->done, 1);
        if (call->kind != 'R' || !call->words[GROUP])
            continue;
        for (int later = each + 1; later < call_count; later++) {
            struct call *next = &calls[later];
            if (next->kind == 'R' && next->words[GROUP] == call->words[GROUP] &&
                messages[next->taken].from == messages[call->taken].from)
                if (next->taken < call->taken)
                    wrong(next, "the message taken after another", next->taken, call->taken);
        }
    }
}

static void **kept;
static int kept_count;

static void keep(void *memory)
{
    kept = realloc(kept, (size_t)(kept_count + 1) * sizeof *kept);
    kept[kept_count++] = memory;
}

static void run_phase(int threads)
{
    pthread_t started[THREADS];
    /* All ranks have read their calls, which handlers make, and have checked the last phase. */
    barrier();
    for (intptr_t thread = 0; thread < threads; thread++)
        pthread_create(&started[thread], NULL, run_thread, (void *)thread);
    for (int thread = 0; thread < threads; thread++)
        pthread_join(started[thread], NULL);
    check_phase();
    for (int each = 0; each < call_count; each++) {
        free(calls[each].segments);
        /* Memory of requests that were forgotten may be in use until the endpoint is closed. */
        if (calls[each].memory && (calls[each].words[MODE] == WITHOUT_REQUEST || calls[each].words[MODE] == FORGOTTEN))
            keep(calls[each].memory);
        else
            free(calls[each].memory);
    }
    call_count = 0;
    phase++;
}

static void finish_schedule(void)
{
    barrier();
    for (int each = 0; each < endpoint_count; each++)
        if (endpoints[each].rank == rank)
            MUST(mx_close_endpoint(endpoints[each].handle));
    barrier();
    while (kept_count)
        free(kept[--kept_count]);
    endpoint_count = message_count = phase = 0;
    memset(endpoints, 0, sizeof endpoints);
}

static void read_call(char *words)
{
    static int room, numbers;
    int thread, number, used;
    char kind;
    if (sscanf(words, "%d %c %d%n", &thread, &kind, &number, &used) < 3)
        exit(3);
    if (call_count == room) {
        /* Within a phase the calls do not move: all are read before it starts. */
        room = room ? 2 * room : 256;
        calls = realloc(calls, (size_t)room * sizeof *calls);
    }
    if (number >= numbers) {
        by_number = realloc(by_number, (size_t)(number + 256) * sizeof *by_number);
        numbers = number + 256;
    }
    struct call *call = &calls[call_count++];
    memset(call, 0, sizeof *call);
    call->kind = kind;
    call->thread = thread;
    call->number = number;
    char *rest = words + used;
    for (int each = 0; each < WORDS && *rest && *rest != '\n'; each++)
        call->words[each] = strtoull(rest, &rest, 0);
}

static void play(FILE *file)
{
    static char line[1000];
    while (fgets(line, sizeof line, file)) {
        char word[20] = "";
        int used = 0;
        sscanf(line, "%19s%n", word, &used);
        if (!strcmp(word, "schedule")) {
            seed = atol(line + used);
        } else if (!strcmp(word, "endpoint")) {
            struct endpoint *each = &endpoints[endpoint_count++];
            sscanf(line + used, "%d %u %u %d %d %u", &each->rank, &each->number, &each->key, &each->context_bits,
                   &each->context_shift, &each->handled);
        } else if (!strcmp(word, "message")) {
            static int room;
            if (message_count == room)
                messages = realloc(messages, (size_t)(room = room ? 2 * room : 256) * sizeof *messages);
            struct message *each = &messages[message_count++];
            memset(each, 0, sizeof *each);
            unsigned long long info;
            sscanf(line + used, "%llu %u %d %d %d %d", &info, &each->length, &each->from, &each->to, &each->action,
                   &each->call);
            each->match_info = info;
        } else if (!strcmp(word, "begin")) {
            begin();
        } else if (!strcmp(word, "call")) {
            read_call(line + used);
        } else if (!strcmp(word, "run")) {
            for (int each = 0; each < call_count; each++)
                by_number[calls[each].number] = &calls[each];
            run_phase(atoi(line + used));
        } else if (!strcmp(word, "finish")) {
            finish_schedule();
        }
    }
}

/* The calls in which a rank is, when the test ends it. */
static void report(int number)
{
    for (int thread = 0; thread < THREADS; thread++)
        if (current[thread])
            fprintf(stderr, "seed %ld phase %d rank %d thread %d: in call %c%d of %llu\n", seed, phase, rank, thread,
                    current[thread]->kind, current[thread]->number, (unsigned long long)current[thread]->words[MESSAGE]);
    fflush(NULL);
    _exit(128 + number);
}

int main(int count, char **words)
{
    if (count != 4)
        return 2;
    FILE *file = fopen(words[1], "r");
    rank = atoi(words[2]);
    for (char *host = strtok(words[3], ","); host && ranks < RANKS; host = strtok(NULL, ","))
        hosts[ranks++] = host;
    signal(SIGTERM, report);
    setlinebuf(stdout);
    mx_set_error_handler(MX_ERRORS_RETURN);
    MUST(mx_init());
    MUST(mx_board_number_to_nic_id(0, &nic_ids[rank]));
    MUST(mx_open_endpoint(0, CONTROL + (uint32_t)rank, CONTROL_KEY, NULL, 0, &control));
    for (int other = 0; other < ranks; other++)
        if (!rank || !other)
            connect_to(control, other, CONTROL + (uint32_t)other, CONTROL_KEY, &controls[other]);
    play(file);
    MUST(mx_close_endpoint(control));
    MUST(mx_finalize());
    printf("done\n");
    return failures != 0;
}
