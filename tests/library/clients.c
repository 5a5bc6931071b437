/* The calls of the clients of MX, in their patterns, between ranks on several hosts.
 *
 *   clients CLIENT RANK HOST,HOST,…
 *
 * Rank N opens endpoint N on its host, the Nth of the list. CLIENT is one of the names in the table at the end. All
 * ranks that a client connects to exchange messages of all sizes, and check them. The last line of each is "done".
 */

#include "cases.h"

#define RANKS 8
#define PATIENCE 40.0
#define TAG_SHIFT 16

static const uint32_t lengths[] = {0, 1, 32, 33, 128, 129, 4096, 4097, 32768, 32769, 300000};
#define LENGTHS (sizeof lengths / sizeof *lengths)
#define LONGEST 300000

static int rank, ranks;
static char *hosts[RANKS];
static uint32_t key;
static mx_endpoint_t endpoint;
static mx_endpoint_addr_t own, peers[RANKS];
static int reachable[RANKS];
static unsigned char out[RANKS][LENGTHS][LONGEST], in[RANKS][LENGTHS][LONGEST];
static uint64_t context_of_calls, context_mask;

static unsigned char content(int from, int to, uint32_t size, uint32_t place)
{
    return (unsigned char)(from * 31 + to * 17 + size * 7 + place + place / 256);
}

static uint64_t tag(int from, uint32_t size)
{
    return context_of_calls | (uint64_t)from << TAG_SHIFT | size;
}

static void check(int from, uint32_t size, const mx_status_t *status)
{
    EQUAL(status->code, MX_STATUS_SUCCESS);
    EQUAL(status->msg_length, lengths[size]);
    EQUAL(status->xfer_length, lengths[size]);
    EQUAL(status->match_info, tag(from, size));
    for (uint32_t place = 0; place < lengths[size]; place++)
        if (in[from][size][place] != content(from, rank, size, place)) {
            EXPECT(!"the content is right");
            break;
        }
}

static void start(mx_param_t *params, uint32_t count)
{
    uint64_t nic_id;
    uint32_t number, board;
    MUST(mx_init());
    MUST(mx_open_endpoint(MX_ANY_NIC, (uint32_t)rank, key, params, count, &endpoint));
    MUST(mx_get_endpoint_addr(endpoint, &own));
    MUST(mx_decompose_endpoint_addr(own, &nic_id, &number));
    MUST(mx_nic_id_to_board_number(nic_id, &board));
    EXPECT(number == (uint32_t)rank && board == 0);
    for (int from = 0; from < ranks; from++)
        for (uint32_t size = 0; size < LENGTHS; size++)
            for (uint32_t place = 0; place < lengths[size]; place++)
                out[from][size][place] = content(rank, from, size, place);
}

/* Connect to all ranks, or to those of other hosts, as clients do whose library has a path of its own within a host.
   Ranks start at different times, so a connect is repeated; no connect without a timeout may hang. */
static void connect_all(int own_host, uint32_t timeout)
{
    char name[MX_MAX_HOSTNAME_LEN];
    for (int other = 0; other < ranks; other++) {
        uint64_t nic_id = 0, found;
        uint32_t number;
        mx_return_t code = MX_FAILURE;
        if (!own_host && !strcmp(hosts[other], hosts[rank]))
            continue;
        for (double limit = seconds() + PATIENCE; code != MX_SUCCESS && seconds() < limit;) {
            code = mx_hostname_to_nic_id(hosts[other], &nic_id);
            if (code == MX_SUCCESS)
                code = mx_connect(endpoint, nic_id, (uint32_t)other, key, timeout, &peers[other]);
            if (code != MX_SUCCESS)
                usleep(20000);
        }
        MUST(code);
        reachable[other] = 1;
        MUST(mx_decompose_endpoint_addr(peers[other], &found, &number));
        EXPECT(found == nic_id && number == (uint32_t)other);
        MUST(mx_nic_id_to_hostname(nic_id, name));
        EXPECT(!strcmp(name, hosts[other]));
    }
}

static mx_request_t receive_from(int from, uint32_t size)
{
    mx_segment_t segment = {in[from][size], lengths[size]};
    mx_request_t request;
    MUST(mx_irecv(endpoint, &segment, 1, tag(from, size), ALL, in[from][size], &request));
    return request;
}

static mx_request_t send_rank(int to, uint32_t size, int synchronous)
{
    mx_segment_t segment = {out[to][size], lengths[size]};
    mx_request_t request;
    MUST((synchronous ? mx_issend : mx_isend)(endpoint, &segment, 1, peers[to], tag(rank, size), NULL, &request));
    return request;
}

static void end_test(mx_request_t *request, mx_status_t *status)
{
    uint32_t result = 0;
    while (!result)
        MUST(mx_test(endpoint, request, status, &result));
}

/* Take COUNT completed requests with ipeek, then test on a copy of the handle. */
static void drain_by_peek(int receives, int sends)
{
    while (receives + sends) {
        mx_request_t request, copy;
        mx_status_t status;
        uint32_t result;
        MUST(mx_ipeek(endpoint, &request, &result));
        if (!result)
            continue;
        copy = request;
        end_test(&copy, &status);
        if (status.context) {
            long place = (unsigned char *)status.context - in[0][0];
            int from = (int)(place / (long)sizeof in[0]);
            check(from, (uint32_t)(place % (long)sizeof in[0] / LONGEST), &status);
            receives--;
        } else {
            EQUAL(status.code, MX_STATUS_SUCCESS);
            sends--;
        }
    }
}

/* Open MPI, BTL: its own path within a host, receives posted before, buffered sends forgotten, ipeek and test. */

static mx_unexp_handler_action_t pass(void *context, mx_endpoint_addr_t source, uint64_t info, uint32_t length,
                                      void *data)
{
    (void)source, (void)info, (void)length, (void)data;
    ++*(int *)context;
    return MX_RECV_CONTINUE;
}

static void btl(void)
{
    static int called;
    mx_endpt_handle_t handle;
    mx_mapper_state_t mapper = {.board_number = 0};
    uint32_t board = 0, speed, count, sends = 0, receives = 0;
    setenv("MX_DISABLE_SHMEM", "1", 1);
    setenv("MX_DISABLE_SELF", "1", 1);
    setenv("MX_PIPELINE_LOG", "0", 1);
    mx_set_error_handler(MX_ERRORS_RETURN);
    start(NULL, 0);
    MUST(mx_get_info(NULL, MX_NIC_COUNT, NULL, 0, &count, sizeof count));
    EXPECT(count >= 1);
    MUST(mx_open_board(0, &handle));
    MUST(mx__get_mapper_state(handle, &mapper));
    MUST(mx_get_info(NULL, MX_LINE_SPEED, &board, sizeof board, &speed, sizeof speed));
    /* All hosts of a job must report the same. */
    printf("network %02x%02x%02x %u\n", (unsigned char)mapper.mapper_mac[3], (unsigned char)mapper.mapper_mac[4],
           (unsigned char)mapper.mapper_mac[5], speed);
    MUST(mx_register_unexp_handler(endpoint, pass, &called));
    connect_all(0, 5000);
    for (int other = 0; other < ranks; other++)
        for (uint32_t size = 0; reachable[other] && size < LENGTHS; size++, receives++)
            receive_from(other, size);
    for (int other = 0; other < ranks; other++)
        for (uint32_t size = 0; reachable[other] && size < LENGTHS; size++) {
            uint32_t buffered;
            mx_request_t request = send_rank(other, size, 0);
            MUST(mx_ibuffered(endpoint, &request, &buffered));
            if (buffered)
                MUST(mx_forget(endpoint, &request));
            sends += !buffered;
        }
    drain_by_peek((int)receives, (int)sends);
    EQUAL(mx__regcache_clean(NULL, 0), 0);
}

/* Open MPI, MTL: connects without a timeout to all ranks, itself included; probes, cancels, synchronous sends. */
static void mtl(void)
{
    mx_param_t param = {.key = MX_PARAM_UNEXP_QUEUE_MAX, .val.unexp_queue_max = 2 * 1024 * 1024};
    mx_status_t status;
    uint32_t result;
    int pending = 0;
    setenv("MX_RCACHE", "2", 1);
    mx_set_error_handler(MX_ERRORS_RETURN);
    start(&param, 1);
    connect_all(1, MX_INFINITE);
    mx_request_t never = receive_from(rank, 0);
    MUST(mx_cancel(endpoint, &never, &result));
    EXPECT(result == 1 && never == NULL);
    for (int other = 0; other < ranks; other++)
        for (uint32_t size = 0; size < LENGTHS; size++)
            if (size % 2) {
                receive_from(other, size);
                pending++;
            }
    for (int other = 0; other < ranks; other++)
        for (uint32_t size = 0; size < LENGTHS; size++)
            send_rank(other, size, size % 3 == 2);
    for (int other = 0; other < ranks; other++)
        for (uint32_t size = 0; size < LENGTHS; size += 2, pending++) {
            for (result = 0; !result;)
                MUST(mx_iprobe(endpoint, tag(other, size), ALL, &status, &result));
            EXPECT(status.xfer_length == lengths[size] && status.msg_length == lengths[size]);
            receive_from(other, size);
        }
    drain_by_peek(pending, ranks * (int)LENGTHS);
}

/* MPICH, nemesis: context ids, receives posted in the unexpected handler, test_any, progression switched off. */

static int arrived, left;

static mx_unexp_handler_action_t receive_here(void *context, mx_endpoint_addr_t source, uint64_t info, uint32_t length,
                                              void *data)
{
    int from = (int)(info >> TAG_SHIFT & 0xff);
    uint32_t size = info & 0xff;
    void *known;
    (void)context, (void)data;
    MUST(mx_get_endpoint_addr_context(source, &known));
    EXPECT(known == NULL || known == &reachable[from]);
    EQUAL(length, lengths[size]);
    receive_from(from, size);
    arrived++;
    return MX_RECV_CONTINUE;
}

/* Post receives for the messages that arrived before the handler was registered: it is never called for them. */
static void receive_early(void)
{
    mx_status_t status;
    uint32_t result;
    for (;;) {
        MUST(mx_iprobe(endpoint, context_of_calls, context_mask, &status, &result));
        if (!result)
            break;
        receive_from((int)(status.match_info >> TAG_SHIFT & 0xff), status.match_info & 0xff);
    }
}

/* Complete COUNT receives and sends of this context, with mx_wait_any, or with mx_test_any if TIMEOUT is 0. They
   alternate in completion order: both have the same match information bits. */
static void complete_all(int count, uint32_t timeout)
{
    for (left = count; left;) {
        mx_status_t status;
        uint32_t result;
        if (timeout)
            MUST(mx_wait_any(endpoint, timeout, context_of_calls, context_mask, &status, &result));
        else
            MUST(mx_test_any(endpoint, context_of_calls, context_mask, &status, &result));
        if (!result)
            continue;
        left--;
        int from = (int)(status.match_info >> TAG_SHIFT & 0xff);
        if (from != rank)
            check(from, (uint32_t)(status.match_info & 0xff), &status);
        else
            EQUAL(status.code, MX_STATUS_SUCCESS);
    }
}

static void nemesis(void)
{
    mx_param_t param = {.key = MX_PARAM_CONTEXT_ID};
    uint32_t eager, board = 0;
    int count = 0;
    param.val.context_id.bits = 8;
    param.val.context_id.shift = 56;
    context_of_calls = (uint64_t)2 << 56;
    context_mask = (uint64_t)0xff << 56;
    setenv("MX_DISABLE_SHARED", "1", 1);
    setenv("MX_DISABLE_SELF", "1", 1);
    MUST(mx_init());
    mx_set_error_handler(MX_ERRORS_RETURN);
    MUST(mx_finalize());
    start(&param, 1);
    MUST(mx_get_info(endpoint, MX_COPY_SEND_MAX, &board, sizeof board, &eager, sizeof eager));
    EQUAL(eager, 32768);
    /* A rank that registers late has messages already: its endpoint answers connects as soon as it is open. */
    if (rank == 2)
        usleep(500000);
    MUST(mx_register_unexp_handler(endpoint, receive_here, NULL));
    receive_early();
    connect_all(0, MX_INFINITE);
    for (int other = 0; other < ranks; other++)
        if (reachable[other])
            MUST(mx_set_endpoint_addr_context(peers[other], &reachable[other]));
    MUST(mx_disable_progression(endpoint));
    for (int other = 0; other < ranks; other++)
        for (uint32_t size = 0; reachable[other] && size < LENGTHS; size++, count++) {
            /* Without a request, or with one that is ended by its context. */
            mx_segment_t segment = {out[other][size], lengths[size]};
            MUST(mx_isend(endpoint, &segment, 1, peers[other], tag(rank, size) ^ (uint64_t)3 << 56, NULL, NULL));
            send_rank(other, size, size == 3);
        }
    MUST(mx_reenable_progression(endpoint));
    complete_all(2 * count, 0);
}

/* PVFS2, bmi_mx: connects without waiting, address contexts, wait_any that another thread wakes, disconnect. */

static void *wake(void *unused)
{
    (void)unused;
    usleep(200000);
    MUST(mx_wakeup(endpoint));
    return NULL;
}

static void bmi(void)
{
    mx_param_t param = {.key = MX_PARAM_CONTEXT_ID};
    mx_status_t status;
    uint32_t result, session, number;
    uint64_t nic_id;
    pthread_t waker;
    int count = 0;
    param.val.context_id.bits = 4;
    param.val.context_id.shift = 60;
    context_of_calls = (uint64_t)5 << 60;
    context_mask = (uint64_t)0xf << 60;
    setenv("MX_ZOMBIE_SEND", "0", 1);
    setenv("MX_DISABLE_SHMEM", "1", 1);
    mx_set_error_handler(MX_ERRORS_RETURN);
    start(&param, 1);
    EQUAL(mx_init(), MX_ALREADY_INITIALIZED);
    MUST(mx_register_unexp_handler(endpoint, receive_here, NULL));
    receive_early();
    MUST(mx_set_request_timeout(endpoint, NULL, 20000));
    for (int other = 0; other < ranks; other++) {
        if (other == rank)
            continue;
        for (double limit = seconds() + PATIENCE; !reachable[other] && seconds() < limit; usleep(20000)) {
            mx_request_t request;
            if (mx_hostname_to_nic_id(hosts[other], &nic_id) != MX_SUCCESS)
                continue;
            MUST(mx_iconnect(endpoint, nic_id, (uint32_t)other, key, (uint64_t)9 << 60, &peers[other], &request));
            for (result = 0; !result;)
                MUST(mx_test_any(endpoint, (uint64_t)9 << 60, context_mask, &status, &result));
            EXPECT(status.context == &peers[other] && *mx_strstatus(status.code));
            if (status.code != MX_STATUS_SUCCESS)
                continue;
            peers[other] = status.source;
            reachable[other] = 1;
        }
        MUST(mx_decompose_endpoint_addr2(peers[other], &nic_id, &number, &session));
        EQUAL(number, other);
        MUST(mx_set_endpoint_addr_context(peers[other], &reachable[other]));
    }
    pthread_create(&waker, NULL, wake, NULL);
    MUST(mx_wait_any(endpoint, 0, (uint64_t)8 << 60, context_mask, &status, &result));
    EQUAL(result, 0);
    pthread_join(waker, NULL);
    for (int other = 0; other < ranks; other++)
        for (uint32_t size = 0; reachable[other] && size < LENGTHS; size++, count++)
            send_rank(other, size, 0);
    complete_all(2 * count, 100);
    EQUAL(arrived <= count, 1);
}

/* netgauge with LogGP: short timeouts of connects, also to itself; bursts of sends and one answer. */
static void netgauge(void)
{
    mx_status_t status;
    uint32_t result;
    setenv("MX_ERRORS_ARE_FATAL", "0", 1);
    start(NULL, 0);
    connect_all(1, 5);
    int other = rank ^ 1;
    for (uint32_t size = 0; size < LENGTHS; size++)
        for (int burst = 1; burst <= 16; burst *= 4) {
            mx_request_t sends[16], receives[16], last;
            for (int number = 0; number < burst; number++)
                receives[number] = receive_from(other, size);
            for (int number = 0; number < burst; number++)
                sends[number] = send_rank(other, size, 0);
            for (int number = 0; number < burst; number++) {
                end_test(&sends[number], &status);
                EQUAL(status.code, MX_STATUS_SUCCESS);
                last = receives[number];
                for (result = 0; !result;)
                    MUST(mx_wait(endpoint, &last, MX_INFINITE, &status, &result));
                EXPECT(last == NULL);
            }
            /* They share a buffer, which is whole when all of them have ended. */
            check(other, size, &status);
        }
}

/* MPICH-MX: the address of mx_test, the list of interfaces, blocking waits, messages to itself and within the host. */
static void ch_mx(void)
{
    mx_return_t (*volatile test)(mx_endpoint_t, mx_request_t *, mx_status_t *, uint32_t *) = &mx_test;
    uint64_t ids[9] = {0};
    uint32_t count, result;
    mx_status_t status;
    mx_request_t receives[RANKS][LENGTHS], sends[RANKS][LENGTHS];
    mx_set_error_handler(MX_ERRORS_RETURN);
    start(NULL, 0);
    MUST(mx_get_info(NULL, MX_NIC_COUNT, NULL, 0, &count, sizeof count));
    MUST(mx_get_info(NULL, MX_NIC_IDS, NULL, 0, ids, (count + 1) * 8));
    EXPECT(ids[0] == own_nic() && ids[count] == 0);
    connect_all(1, 5000);
    for (int other = 0; other < ranks; other++)
        for (uint32_t size = 0; size < LENGTHS; size++) {
            receives[other][size] = receive_from(other, size);
            sends[other][size] = send_rank(other, size, 0);
        }
    for (int other = 0; other < ranks; other++)
        for (uint32_t size = 0; size < LENGTHS; size++) {
            MUST(test(endpoint, &receives[other][size], &status, &result));
            if (!result)
                finish(endpoint, &receives[other][size], &status);
            check(other, size, &status);
            EQUAL(finish(endpoint, &sends[other][size], NULL), MX_STATUS_SUCCESS);
        }
}

/* MX's message loop: messages to the own address without a connect, found by probes. */
static void msg_loop(void)
{
    mx_status_t status;
    uint32_t result;
    setenv("MX_DISABLE_SELF", "1", 1);
    setenv("MX_DISABLE_SHMEM", "1", 1);
    start(NULL, 0);
    peers[rank] = own;
    for (uint32_t size = 0; size < LENGTHS; size++) {
        mx_request_t send = send_rank(rank, size, 1), receive;
        do
            MUST(mx_probe(endpoint, MX_INFINITE, 0, 0, &status, &result));
        while (!result);
        EQUAL(status.msg_length, lengths[size]);
        receive = receive_from(rank, size);
        EQUAL(finish(endpoint, &receive, &status), MX_STATUS_SUCCESS);
        check(rank, size, &status);
        EQUAL(finish(endpoint, &send, NULL), MX_STATUS_SUCCESS);
    }
}

static const struct {
    const char *name;
    uint32_t key;
    void (*play)(void);
} clients[] = {
    {"btl", 0xdeadbeef, btl},         {"mtl", 0xaaaaffff, mtl},     {"nemesis", 0xabadbada, nemesis},
    {"bmi", 0xb0b0, bmi},             {"netgauge", 0xcafebabe, netgauge}, {"ch_mx", 0x1234, ch_mx},
    {"msg_loop", 0x12345, msg_loop},
};

/* Report the state of a rank that does not end, when the test ends it. */
static void report(int number)
{
    char line[80];
    int length = snprintf(line, sizeof line, "rank %d: %d calls of the handler, %d requests left\n", rank, arrived, left);
    if (write(2, line, (size_t)length) == length)
        _exit(128 + number);
    _exit(1);
}

int main(int count, char **words)
{
    if (count != 4)
        return 2;
    rank = atoi(words[2]);
    signal(SIGTERM, report);
    for (char *host = strtok(words[3], ","); host && ranks < RANKS; host = strtok(NULL, ","))
        hosts[ranks++] = host;
    for (size_t place = 0; place < sizeof clients / sizeof *clients; place++)
        if (!strcmp(words[1], clients[place].name)) {
            key = clients[place].key;
            clients[place].play();
            /* All ranks are still there until their partners have what they sent: closing waits for acks. */
            MUST(mx_close_endpoint(endpoint));
            MUST(mx_finalize());
            printf("done\n");
            return failures != 0;
        }
    return 2;
}
