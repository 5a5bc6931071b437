/* Return codes and semantics of all functions, between endpoints of this process. */

#include "cases.h"

static mx_endpoint_t a, b;
static mx_endpoint_addr_t to_b, to_a;
static char memory[1 << 20];
static uint32_t result;
static mx_status_t status;

static void open_both(void)
{
    MUST(mx_open_endpoint(0, 1, 11, NULL, 0, &a));
    MUST(mx_open_endpoint(0, 2, 22, NULL, 0, &b));
    MUST(mx_connect(a, own_nic(), 2, 22, 5000, &to_b));
    MUST(mx_connect(b, own_nic(), 1, 11, 5000, &to_a));
}

static void close_both(void)
{
    MUST(mx_close_endpoint(a));
    MUST(mx_close_endpoint(b));
}

static void initialization(void)
{
    EQUAL(mx_init(), MX_ALREADY_INITIALIZED);
    EQUAL(mx_finalize(), MX_SUCCESS);
    EQUAL(mx_finalize(), MX_NOT_INITIALIZED);
    EQUAL(mx_open_endpoint(0, 1, 1, NULL, 0, &a), MX_NOT_INITIALIZED);
    EQUAL(mx_test(a, NULL, NULL, &result), MX_NOT_INITIALIZED);
    EQUAL(mx__init_api(0x201), MX_BAD_LIB_VERSION);
    EQUAL(mx__init_api(0x300), MX_SUCCESS);
    EQUAL(mx_finalize(), MX_SUCCESS);
    EQUAL(mx_init(), MX_SUCCESS);
}

static void opening(void)
{
    mx_endpoint_t other;
    mx_param_t params[2] = {{.key = MX_PARAM_UNEXP_QUEUE_MAX, .val.unexp_queue_max = 1 << 20},
                            {.key = MX_PARAM_CONTEXT_ID, .val.context_id = {17, 0}}};
    MUST(mx_open_endpoint(0, 1, 1, params, 1, &a));
    EQUAL(mx_open_endpoint(0, 1, 1, NULL, 0, &other), MX_BUSY);
    EQUAL(mx_open_endpoint(0, 5000, 1, NULL, 0, &other), MX_BAD_ENDPOINT);
    EQUAL(mx_open_endpoint(7, 1, 1, NULL, 0, &other), MX_BOARD_UNKNOWN);
    EQUAL(mx_open_endpoint(0, 2, 1, NULL, 2, &other), MX_BAD_PARAM_LIST);
    EQUAL(mx_open_endpoint(0, 2, 1, params, 2, &other), MX_BAD_PARAM_VAL);
    params[1].key = (mx_param_key_t)9;
    EQUAL(mx_open_endpoint(0, 2, 1, params, 2, &other), MX_BAD_PARAM_NAME);
    MUST(mx_open_endpoint(MX_ANY_NIC, MX_ANY_ENDPOINT, 1, NULL, 0, &b));
    EXPECT(a != b);
    mx_endpoint_addr_t own;
    uint64_t nic_id;
    uint32_t number;
    MUST(mx_get_endpoint_addr(b, &own));
    MUST(mx_decompose_endpoint_addr(own, &nic_id, &number));
    EXPECT(nic_id == own_nic() && number != 1);
    close_both();
    EQUAL(mx_close_endpoint(a), MX_BAD_ENDPOINT);
    EQUAL(mx_close_endpoint(NULL), MX_BAD_ENDPOINT);
    MUST(mx_open_endpoint(0, 1, 1, NULL, 0, &b));
    EQUAL(mx_close_endpoint(a), MX_BAD_ENDPOINT);
    MUST(mx_close_endpoint(b));
}

static void garbage(void)
{
    open_both();
    uint64_t values[] = {1, 0x1234, 0xffffffffffffffff, (uintptr_t)memory, (uintptr_t)a + 1, 1ull << 63, 0x100000};
    for (size_t place = 0; place < sizeof values / sizeof *values; place++) {
        mx_endpoint_t wrong = (mx_endpoint_t)values[place];
        mx_request_t request = (mx_request_t)values[place];
        mx_endpoint_addr_t address = {{values[place] + 99999, values[place]}};
        mx_segment_t segment = {memory, 4};
        void *context;
        EQUAL(mx_wakeup(wrong), MX_BAD_ENDPOINT);
        EQUAL(mx_isend(wrong, &segment, 1, to_b, 0, NULL, NULL), MX_BAD_ENDPOINT);
        EQUAL(mx_irecv(wrong, &segment, 1, 0, 0, NULL, NULL), MX_BAD_ENDPOINT);
        EQUAL(mx_progress(wrong), MX_BAD_ENDPOINT);
        EQUAL(mx_ipeek(wrong, &request, &result), MX_BAD_ENDPOINT);
        EQUAL(mx_test(a, &request, &status, &result), MX_BAD_REQUEST);
        EQUAL(mx_wait(a, &request, 1, &status, &result), MX_BAD_REQUEST);
        EQUAL(mx_cancel(a, &request, &result), MX_BAD_REQUEST);
        EQUAL(mx_forget(a, &request), MX_BAD_REQUEST);
        EQUAL(mx_ibuffered(a, &request, &result), MX_BAD_REQUEST);
        EQUAL(mx_context(&request, &context), MX_BAD_REQUEST);
        EQUAL(mx_set_request_timeout(a, request, 10), MX_BAD_REQUEST);
        EQUAL(mx_isend(a, &segment, 1, address, 0, NULL, NULL), MX_BAD_ADDR_LIST);
        EQUAL(mx_disconnect(a, address), MX_BAD_ADDR_LIST);
        EQUAL(mx_set_endpoint_addr_context(address, NULL), MX_BAD_ADDR_LIST);
        EQUAL(mx_get_endpoint_addr_context(address, &context), MX_BAD_ADDR_LIST);
        EQUAL(mx_decompose_endpoint_addr(address, NULL, NULL), MX_BAD_ADDR_LIST);
    }
    mx_request_t none = NULL, of_a = post(a, memory, 1, 77, ALL);
    EQUAL(mx_test(a, &none, &status, &result), MX_BAD_REQUEST);
    EQUAL(mx_test(a, NULL, &status, &result), MX_BAD_REQUEST);
    EQUAL(mx_test(b, &of_a, &status, &result), MX_BAD_REQUEST);
    close_both();
    EQUAL(mx_test(a, &of_a, &status, &result), MX_BAD_ENDPOINT);
}

static void segments(void)
{
    static char sent[257 * 8], received[sizeof sent];
    mx_segment_t from[257], to[257];
    mx_request_t send, receive;
    open_both();
    for (uint32_t place = 0; place < sizeof sent; place++)
        sent[place] = (char)(place * 3);
    for (uint32_t place = 0; place < 257; place++) {
        from[place] = (mx_segment_t){sent + place * 8, 8};
        to[place] = (mx_segment_t){received + (256 - place) * 8, 8};
    }
    EQUAL(mx_isend(a, from, 257, to_b, 1, NULL, &send), MX_BAD_SEG_CNT);
    EQUAL(mx_irecv(b, to, 257, 1, ALL, NULL, &receive), MX_BAD_SEG_CNT);
    EQUAL(mx_isend(a, NULL, 1, to_b, 1, NULL, &send), MX_BAD_SEG_LIST);
    from[0].segment_ptr = NULL;
    EQUAL(mx_isend(a, from, 1, to_b, 1, NULL, &send), MX_BAD_SEG_MEM);
    from[0].segment_ptr = sent;
    MUST(mx_irecv(b, to, 256, 1, ALL, NULL, &receive));
    MUST(mx_isend(a, from, 256, to_b, 1, NULL, &send));
    /* Lists of segments are copied at the call. */
    memset(from, 0, sizeof from);
    memset(to, 0, sizeof to);
    EQUAL(finish(b, &receive, &status), MX_STATUS_SUCCESS);
    EQUAL(status.xfer_length, 256 * 8);
    for (uint32_t place = 0; place < 256; place++)
        EXPECT(!memcmp(received + (256 - place) * 8, sent + place * 8, 8));
    EQUAL(finish(a, &send, NULL), MX_STATUS_SUCCESS);
    /* Empty messages. */
    MUST(mx_irecv(b, NULL, 0, 2, ALL, NULL, &receive));
    MUST(mx_isend(a, NULL, 0, to_b, 2, NULL, &send));
    EQUAL(finish(b, &receive, &status), MX_STATUS_SUCCESS);
    EQUAL(status.msg_length, 0);
    EQUAL(finish(a, &send, NULL), MX_STATUS_SUCCESS);
    close_both();
}

static mx_return_t seen;
static int calls;

static mx_return_t count_errors(char *text, mx_return_t code)
{
    EXPECT(text && *text);
    seen = code;
    calls++;
    return code;
}

static mx_return_t replace_errors(char *text, mx_return_t code)
{
    (void)text, (void)code;
    return MX_SUCCESS;
}

static void truncation(void)
{
    static const uint32_t lengths[] = {64, 1000, 20000, 100000, 1000000};
    open_both();
    EXPECT(mx_set_error_handler(count_errors) == MX_ERRORS_RETURN);
    for (size_t place = 0; place < sizeof lengths / sizeof *lengths; place++) {
        mx_request_t receive = post(b, memory, lengths[place] / 2, place, ALL);
        mx_request_t send = send_to(a, to_b, memory, lengths[place], place);
        calls = 0;
        EQUAL(finish(b, &receive, &status), MX_STATUS_TRUNCATED);
        EQUAL(calls, 1);
        EQUAL(status.msg_length, lengths[place]);
        EQUAL(status.xfer_length, lengths[place] / 2);
        finish(a, &send, NULL);
    }
    EXPECT(mx_set_error_handler(replace_errors) == count_errors);
    mx_request_t receive = post(b, memory, 4, 1, ALL), send = send_to(a, to_b, memory, 8, 1);
    EQUAL(finish(b, &receive, &status), MX_STATUS_SUCCESS);
    EQUAL(status.xfer_length, 4);
    finish(a, &send, NULL);
    EQUAL(mx_wakeup(NULL), MX_SUCCESS);
    EXPECT(mx_set_error_handler(MX_ERRORS_RETURN) == replace_errors);
    close_both();
}

static void error_handler_of_endpoint(void)
{
    mx_param_t param = {.key = MX_PARAM_ERROR_HANDLER, .val.error_handler = count_errors};
    MUST(mx_open_endpoint(0, 4, 1, &param, 1, &a));
    calls = 0;
    EQUAL(mx_irecv(a, NULL, 0, 1, 0, NULL, NULL), MX_BAD_MATCH_MASK);
    EQUAL(calls, 1);
    EQUAL(seen, MX_BAD_MATCH_MASK);
    MUST(mx_close_endpoint(a));
}

static void matching(void)
{
    open_both();
    mx_request_t any = post(b, memory, 100, 0, 0), one = post(b, memory + 100, 100, 5, ALL);
    EQUAL(mx_irecv(b, NULL, 0, 0x10, 0x0f, NULL, NULL), MX_BAD_MATCH_MASK);
    mx_request_t first = send_to(a, to_b, "one", 4, 5), second = send_to(a, to_b, "two", 4, 5);
    EQUAL(finish(b, &any, &status), 0);
    EXPECT(status.match_info == 5 && status.context == memory && !strcmp(memory, "one"));
    EQUAL(finish(b, &one, &status), 0);
    EXPECT(!strcmp(memory + 100, "two"));
    EXPECT(!memcmp(&status.source, &to_a, sizeof to_a));
    finish(a, &first, NULL);
    finish(a, &second, NULL);
    close_both();
}

static void probing(void)
{
    open_both();
    EQUAL(mx_iprobe(b, 7, ALL, &status, &result), MX_SUCCESS);
    EQUAL(result, 0);
    EQUAL(mx_iprobe(b, 0x10, 1, &status, &result), MX_BAD_MATCH_MASK);
    double start = seconds();
    MUST(mx_probe(b, 50, 7, ALL, &status, &result));
    EQUAL(result, 0);
    EXPECT(seconds() - start >= 0.049);
    mx_request_t send = send_to(a, to_b, memory, 5000, 7);
    for (int times = 0; times < 2; times++) {
        MUST(mx_probe(b, 5000, 7, ALL, &status, &result));
        EXPECT(result == 1 && status.code == 0 && status.match_info == 7);
        EXPECT(status.msg_length == 5000 && status.xfer_length == 5000);
        EXPECT(!memcmp(&status.source, &to_a, sizeof to_a));
    }
    MUST(mx_iprobe(b, 8, ALL, &status, &result));
    EQUAL(result, 0);
    mx_request_t receive = post(b, memory, 5000, 7, ALL);
    EQUAL(finish(b, &receive, NULL), 0);
    MUST(mx_iprobe(b, 0, 0, &status, &result));
    EQUAL(result, 0);
    finish(a, &send, NULL);
    close_both();
}

static void completion_order(void)
{
    open_both();
    mx_request_t receives[3], peeked = NULL, again = NULL, copy;
    for (int place = 0; place < 3; place++)
        receives[place] = post(b, memory + place * 10, 10, (uint64_t)(10 + place), ALL);
    MUST(mx_ipeek(b, &peeked, &result));
    EQUAL(result, 0);
    MUST(mx_peek(b, 20, &peeked, &result));
    EQUAL(result, 0);
    static const int order[] = {2, 0, 1};
    for (int place = 0; place < 3; place++) {
        mx_request_t send = send_to(a, to_b, "x", 2, (uint64_t)(10 + order[place]));
        finish(a, &send, NULL);
    }
    for (int place = 0; place < 3; place++) {
        MUST(mx_peek(b, 5000, &peeked, &result));
        MUST(mx_ipeek(b, &again, &result));
        EXPECT(result == 1 && peeked == again && peeked == receives[order[place]]);
        copy = peeked;
        MUST(mx_test(b, &copy, &status, &result));
        EXPECT(result == 1 && copy == NULL && status.match_info == (uint64_t)(10 + order[place]));
        /* The variable that it was posted with is stale now. */
        EQUAL(mx_test(b, &receives[order[place]], &status, &result), MX_BAD_REQUEST);
    }
    MUST(mx_ipeek(b, &peeked, &result));
    EQUAL(result, 0);
    close_both();
}

static void any_by_match(void)
{
    open_both();
    mx_request_t ignored = post(b, memory, 10, 1, ALL), other = post(b, memory, 10, 2, ALL);
    EQUAL(mx_test_any(b, 2, 1, &status, &result), MX_BAD_MATCH_MASK);
    MUST(mx_test_any(b, 0, 0, &status, &result));
    EQUAL(result, 0);
    double start = seconds();
    MUST(mx_wait_any(b, 30, 0, 0, &status, &result));
    EXPECT(result == 0 && seconds() - start >= 0.029);
    send_to(a, to_b, "1", 2, 1);
    send_to(a, to_b, "2", 2, 2);
    MUST(mx_wait_any(b, 5000, 2, ALL, &status, &result));
    EXPECT(result == 1 && status.match_info == 2);
    MUST(mx_wait_any(b, 5000, 0, 0, &status, &result));
    EXPECT(result == 1 && status.match_info == 1);
    /* Sends count, too, with the match information given to them. */
    for (uint64_t info = 1; info <= 2; info++) {
        MUST(mx_wait_any(a, 5000, info, ALL, &status, &result));
        EXPECT(result == 1 && status.match_info == info);
    }
    (void)ignored, (void)other;
    close_both();
}

static void *wait_until_cancelled(void *request)
{
    mx_status_t unused;
    uint32_t is = 9;
    double start = seconds();
    MUST(mx_wait(b, request, 15000, &unused, &is));
    EQUAL(is, 0);
    EXPECT(seconds() - start < 10);
    return NULL;
}

static void cancelling(void)
{
    open_both();
    mx_request_t receive = post(b, memory, 10, 1, ALL);
    MUST(mx_cancel(b, &receive, &result));
    EXPECT(result == 1 && receive == NULL);
    MUST(mx_ipeek(b, &receive, &result));
    EQUAL(result, 0);
    receive = post(b, memory, 10, 1, ALL);
    mx_request_t send = send_to(a, to_b, "x", 2, 1), large;
    MUST(mx_peek(b, 5000, &large, &result));
    MUST(mx_cancel(b, &receive, &result));
    EXPECT(result == 0 && receive != NULL);
    EQUAL(finish(b, &receive, NULL), 0);
    EQUAL(mx_cancel(a, &send, &result), MX_BAD_REQUEST);
    finish(a, &send, NULL);
    /* Another thread that waits for it is notified. */
    mx_request_t waited;
    pthread_t waiting;
    receive = waited = post(b, memory, 10, 1, ALL);
    pthread_create(&waiting, NULL, wait_until_cancelled, &waited);
    usleep(50000);
    MUST(mx_cancel(b, &receive, &result));
    EQUAL(result, 1);
    pthread_join(waiting, NULL);
    close_both();
}

static void forgetting(void)
{
    open_both();
    mx_segment_t to = {memory, 100}, from = {"forgotten", 10};
    mx_request_t request;
    memset(memory, 0, 100);
    MUST(mx_irecv(b, &to, 1, 1, ALL, NULL, NULL));
    MUST(mx_isend(a, &from, 1, to_b, 1, NULL, NULL));
    request = post(b, memory + 100, 100, 2, ALL);
    MUST(mx_forget(b, &request));
    EXPECT(request == NULL);
    MUST(mx_isend(a, &from, 1, to_b, 2, NULL, &request));
    MUST(mx_forget(a, &request));
    MUST(mx_issend(a, &from, 1, to_b, 3, NULL, &request));
    mx_request_t last = post(b, memory + 200, 100, 3, ALL);
    EQUAL(finish(b, &last, NULL), 0);
    EQUAL(finish(a, &request, NULL), 0);
    EXPECT(!strcmp(memory, "forgotten") && !strcmp(memory + 100, "forgotten"));
    MUST(mx_ipeek(b, &request, &result));
    EQUAL(result, 0);
    MUST(mx_ipeek(a, &request, &result));
    EQUAL(result, 0);
    close_both();
}

static void buffering(void)
{
    static const uint32_t lengths[] = {0, 32, 128, 4000};
    open_both();
    void *context = NULL;
    for (size_t place = 0; place < sizeof lengths / sizeof *lengths; place++) {
        mx_request_t send = send_to(a, to_b, memory, lengths[place], place);
        MUST(mx_ibuffered(a, &send, &result));
        EQUAL(result, 1);
        MUST(mx_buffered(a, &send, 10, &result));
        EQUAL(result, 1);
        finish(a, &send, NULL);
    }
    mx_segment_t segment = {memory, 1 << 20};
    mx_request_t send, receive = post(b, memory, 10, 9, ALL);
    MUST(mx_isend(a, &segment, 1, to_b, 10, &send, &send));
    MUST(mx_ibuffered(a, &send, &result));
    EQUAL(result, 0);
    /* The memory of a medium one to the same host is read when it is received. */
    static char medium[10000] = "before", got[10000];
    mx_request_t late = send_to(a, to_b, medium, sizeof medium, 11);
    MUST(mx_ibuffered(a, &late, &result));
    if (result)
        strcpy(medium, "after");
    mx_request_t last = post(b, got, sizeof got, 11, ALL);
    EQUAL(finish(b, &last, NULL), 0);
    EXPECT(!strcmp(got, "before"));
    finish(a, &late, NULL);
    MUST(mx_context(&send, &context));
    EXPECT(context == &send);
    EQUAL(mx_ibuffered(b, &receive, &result), MX_BAD_REQUEST);
    close_both();
}

static void synchronous(void)
{
    open_both();
    mx_segment_t segment = {"sync", 5};
    mx_request_t send;
    MUST(mx_issend(a, &segment, 1, to_b, 1, NULL, &send));
    MUST(mx_wait(a, &send, 50, &status, &result));
    EQUAL(result, 0);
    mx_request_t receive = post(b, memory, 100, 1, ALL);
    EQUAL(finish(a, &send, &status), 0);
    EQUAL(status.xfer_length, 5);
    EQUAL(finish(b, &receive, NULL), 0);
    EXPECT(!strcmp(memory, "sync"));
    close_both();
}

static void connecting(void)
{
    open_both();
    mx_endpoint_addr_t address;
    mx_request_t request;
    EQUAL(mx_connect(a, own_nic(), 2, 23, 1000, &address), MX_BAD_CONNECTION_KEY);
    EQUAL(mx_connect(a, own_nic(), 3, 22, 1000, &address), MX_CONNECTION_FAILED);
    EQUAL(mx_connect(a, own_nic(), 200, 22, 1000, &address), MX_BAD_ENDPOINT_ID);
    EQUAL(mx_connect(a, own_nic(), 0xffffff, 22, 1000, &address), MX_BAD_ENDPOINT_ID);
    EQUAL(mx_connect(a, 0x0abcdef00001, 2, 22, 1000, &address), MX_NIC_NOT_FOUND);
    EQUAL(mx_connect(a, ~0ull, 2, 22, 1000, &address), MX_NIC_NOT_FOUND);
    MUST(mx_iconnect(a, own_nic(), 2, 22, 0xc0, &address, &request));
    EQUAL(finish(a, &request, &status), 0);
    EXPECT(status.match_info == 0xc0 && status.context == &address);
    EXPECT(!memcmp(&status.source, &to_b, sizeof to_b));
    MUST(mx_iconnect(a, own_nic(), 2, 99, 0xc1, NULL, &request));
    EQUAL(finish(a, &request, &status), MX_STATUS_BAD_KEY);
    /* An endpoint is connected to itself. */
    mx_endpoint_addr_t own;
    MUST(mx_get_endpoint_addr(a, &own));
    mx_request_t receive = post(a, memory, 10, 3, ALL), send = send_to(a, own, "self", 5, 3);
    EQUAL(finish(a, &receive, &status), 0);
    EXPECT(!strcmp(memory, "self") && !memcmp(&status.source, &own, sizeof own));
    finish(a, &send, NULL);
    MUST(mx_connect(a, own_nic(), 1, 11, 5, &address));
    EXPECT(!memcmp(&address, &own, sizeof own));
    /* Contexts of addresses belong to the partner. */
    void *context = &context;
    uint64_t nic_id;
    uint32_t number, session;
    MUST(mx_get_endpoint_addr_context(to_b, &context));
    EXPECT(context == NULL);
    MUST(mx_set_endpoint_addr_context(to_b, memory));
    MUST(mx_connect(a, own_nic(), 2, 22, 1000, &address));
    MUST(mx_get_endpoint_addr_context(address, &context));
    EXPECT(context == memory);
    MUST(mx_decompose_endpoint_addr2(address, &nic_id, &number, &session));
    EXPECT(nic_id == own_nic() && number == 2 && session != 0);
    MUST(mx_disconnect(a, to_b));
    MUST(mx_connect(a, own_nic(), 2, 22, 1000, &address));
    MUST(mx_get_endpoint_addr_context(address, &context));
    EXPECT(context == NULL);
    /* An endpoint stays connected to itself. */
    mx_endpoint_addr_t myself;
    char got[8] = "";
    MUST(mx_get_endpoint_addr(a, &myself));
    MUST(mx_disconnect(a, myself));
    mx_request_t to_self = send_to(a, myself, "self", 5, 99), from_self = post(a, got, 8, 99, ALL);
    EQUAL(finish(a, &from_self, NULL), 0);
    EQUAL(finish(a, &to_self, NULL), 0);
    EXPECT(!strcmp(got, "self"));
    close_both();
}

static void context_ids(void)
{
    mx_param_t param = {.key = MX_PARAM_CONTEXT_ID, .val.context_id = {.bits = 4, .shift = 60}};
    uint64_t high = 0xfull << 60;
    MUST(mx_open_endpoint(0, 1, 11, NULL, 0, &a));
    MUST(mx_open_endpoint(0, 2, 22, &param, 1, &b));
    MUST(mx_connect(a, own_nic(), 2, 22, 5000, &to_b));
    EQUAL(mx_irecv(b, NULL, 0, 0, 0, NULL, NULL), MX_BAD_MATCHING_FOR_CONTEXT_ID_MASK);
    for (uint64_t context = 1; context <= 2; context++)
        send_to(a, to_b, "x", 2, context << 60 | 5);
    MUST(mx_probe(b, 5000, 2ull << 60, high, &status, &result));
    EXPECT(result == 1 && status.match_info == (2ull << 60 | 5));
    MUST(mx_probe(b, 5000, 5, 0xff, &status, &result));
    EXPECT(result == 1 && status.match_info == (1ull << 60 | 5));
    mx_request_t receive = post(b, memory, 10, 2ull << 60, high);
    MUST(mx_wait_any(b, 5000, 2ull << 60, high, &status, &result));
    EXPECT(result == 1 && status.match_info == (2ull << 60 | 5));
    (void)receive;
    close_both();
}

static int handled, consumed;
static mx_request_t from_handler;

static mx_unexp_handler_action_t consume(void *context, mx_endpoint_addr_t source, uint64_t info, uint32_t length,
                                         void *data)
{
    uint32_t number;
    EXPECT(context == memory);
    MUST(mx_decompose_endpoint_addr(source, NULL, &number));
    EQUAL(number, 1);
    EXPECT(length > 32768 ? data == NULL : data != NULL);
    if (data)
        EXPECT(!memcmp(data, "payload", 8));
    handled++;
    EQUAL(mx_close_endpoint(b), MX_CLOSE_IN_HANDLER);
    return info == 1 ? MX_RECV_FINISHED : MX_RECV_CONTINUE;
}

static mx_unexp_handler_action_t receive_inside(void *context, mx_endpoint_addr_t source, uint64_t info,
                                                uint32_t length, void *data)
{
    mx_segment_t segment = {memory, length};
    void *found;
    (void)data, (void)context;
    MUST(mx_get_endpoint_addr_context(source, &found));
    MUST(mx_irecv(b, &segment, 1, info, ALL, memory, &from_handler));
    MUST(mx_test(b, &from_handler, &status, &result));
    EQUAL(result, 0);
    handled++;
    return MX_RECV_CONTINUE;
}

static uint64_t identities[3];

static mx_unexp_handler_action_t identify(void *context, mx_endpoint_addr_t source, uint64_t info, uint32_t length,
                                          void *data)
{
    (void)context, (void)source, (void)info, (void)length, (void)data;
    MUST(mx__identity(b, &identities[handled++]));
    if (handled == 3) {
        mx_segment_t segment = {memory, length};
        MUST(mx__claim(b, identities[2], &segment, 1, memory, &from_handler));
    }
    return MX_RECV_CONTINUE;
}

static void claims(void)
{
    static char payloads[3][40000];
    static const uint32_t lengths[] = {8, 1000, 20000, 40000};
    mx_segment_t segment = {memory, 40000};
    open_both();
    MUST(mx_register_unexp_handler(b, identify, NULL));
    for (int place = 0; place < 4; place++) {
        mx_request_t sends[3], receive;
        handled = 0;
        for (int number = 0; number < 3; number++) {
            memset(payloads[number], '1' + number, lengths[place]);
            sends[number] = send_to(a, to_b, payloads[number], lengths[place], 4);
        }
        for (double start = seconds(); handled < 3 && seconds() - start < 5;)
            mx_progress(b);
        EQUAL(handled, 3);
        EQUAL(finish(b, &from_handler, &status), 0);
        EXPECT(*(char *)memory == '3' && status.xfer_length == lengths[place] && status.match_info == 4);
        MUST(mx__claim(b, identities[1], &segment, 1, NULL, &receive));
        EQUAL(finish(b, &receive, NULL), 0);
        EXPECT(*(char *)memory == '2');
        EQUAL(mx__claim(b, identities[1], &segment, 1, NULL, &receive), MX_BAD_REQUEST);
        receive = post(b, memory, 40000, 4, ALL);
        EQUAL(finish(b, &receive, NULL), 0);
        EXPECT(*(char *)memory == '1');
        for (int number = 0; number < 3; number++)
            finish(a, &sends[number], NULL);
    }
    EQUAL(mx__identity(b, identities), MX_BAD_REQUEST);
    EQUAL(mx__claim(NULL, 0, &segment, 1, NULL, &from_handler), MX_BAD_ENDPOINT);
    close_both();
}

static void unexpected_handler(void)
{
    static char payload[100000] = "payload";
    static const uint32_t lengths[] = {8, 100, 1000, 100000};
    open_both();
    MUST(mx_register_unexp_handler(b, consume, memory));
    mx_request_t sends[8], receive;
    for (int place = 0; place < 4; place++)
        sends[place] = send_to(a, to_b, payload, lengths[place], 1);
    for (int place = 0; place < 4; place++)
        finish(a, &sends[place], NULL);
    for (double start = seconds(); handled < 4 && seconds() - start < 5;)
        mx_progress(b);
    EQUAL(handled, 4);
    MUST(mx_iprobe(b, 1, ALL, &status, &result));
    EQUAL(result, 0);
    sends[0] = send_to(a, to_b, payload, 8, 2);
    receive = post(b, memory, 100, 2, ALL);
    EQUAL(finish(b, &receive, NULL), 0);
    finish(a, &sends[0], NULL);
    MUST(mx_register_unexp_handler(b, receive_inside, NULL));
    for (int place = 0; place < 4; place++) {
        memset(memory, 0, 16);
        handled = 0;
        from_handler = NULL;
        sends[0] = send_to(a, to_b, payload, lengths[place], 3);
        for (double start = seconds(); !handled && seconds() - start < 5;)
            mx_progress(b);
        EQUAL(handled, 1);
        EXPECT(from_handler != NULL);
        EQUAL(finish(b, &from_handler, &status), 0);
        EXPECT(!strcmp(memory, "payload") && status.xfer_length == lengths[place]);
        EQUAL(finish(a, &sends[0], NULL), 0);
    }
    MUST(mx_register_unexp_handler(b, NULL, NULL));
    close_both();
}

/* The consumer has the messages that MX has as a whole, and those that it leaves go to the handler, in order. */

static uint32_t sequence[64];

static mx_unexp_handler_action_t take_number(void *context, mx_endpoint_addr_t source, uint64_t info, uint32_t length,
                                             void *data)
{
    int early = context == &from_handler;
    EXPECT(early ? data != NULL && length <= 32768 : context == memory);
    MUST(mx_decompose_endpoint_addr(source, NULL, NULL));
    if (early && info % 4 == 3)
        return MX_RECV_CONTINUE;
    sequence[handled++] = (uint32_t)info;
    consumed += early;
    return MX_RECV_FINISHED;
}

static void consumer(void)
{
    static char payload[40000];
    static const uint32_t lengths[] = {0, 8, 100, 1000, 40000};
    mx_request_t sends[64];
    open_both();
    MUST(mx_register_unexp_handler(b, take_number, memory));
    MUST(mx__register_consumer(b, take_number, &from_handler));
    handled = consumed = 0;
    for (uint32_t number = 0; number < 64; number++)
        sends[number] = send_to(a, to_b, payload, lengths[number % 5], number);
    for (double start = seconds(); handled < 64 && seconds() - start < 5;)
        mx_progress(b);
    for (uint32_t number = 0; number < 64; number++) {
        finish(a, &sends[number], NULL);
        EQUAL(sequence[number], number);
    }
    EXPECT(consumed > 0 && consumed < 64);
    MUST(mx__register_consumer(b, NULL, NULL));
    handled = consumed = 0;
    sends[0] = send_to(a, to_b, payload, 8, 64);
    finish(a, &sends[0], NULL);
    for (double start = seconds(); !handled && seconds() - start < 5;)
        mx_progress(b);
    EQUAL(consumed, 0);
    EQUAL(handled, 1);
    EQUAL(mx__register_consumer(NULL, take_number, NULL), MX_BAD_ENDPOINT);
    close_both();
}

/* While a handler runs, only its endpoint stops. */

static int release_handler;
static mx_return_t inside[3];

static mx_unexp_handler_action_t hold(void *context, mx_endpoint_addr_t source, uint64_t info, uint32_t length,
                                      void *data)
{
    (void)context, (void)source, (void)info, (void)length, (void)data;
    inside[0] = mx_finalize();
    inside[1] = mx_init();
    inside[2] = mx_close_endpoint(a);
    __atomic_store_n(&handled, 1, __ATOMIC_SEQ_CST);
    for (double start = seconds(); !__atomic_load_n(&release_handler, __ATOMIC_SEQ_CST) && seconds() - start < 20;)
        usleep(1000);
    return MX_RECV_FINISHED;
}

static void *wait_at_b(void *argument)
{
    mx_request_t receive = post(b, argument, 10, 77, ALL);
    EQUAL(finish(b, &receive, NULL), 0);
    return NULL;
}

/* Whatever call delivers the message runs the handler. */
static void *send_to_handler(void *unused)
{
    send_to(a, to_b, "handled", 8, 1);
    return unused;
}

static double processor_time(void)
{
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (double)used.tv_sec + 1e-9 * (double)used.tv_nsec;
}

static mx_endpoint_t third;
static mx_endpoint_addr_t to_third;

static void other_endpoints_in_handler(void)
{
    static char got[4][10];
    pthread_t waiting[3], sending;
    open_both();
    MUST(mx_open_endpoint(0, 5, 55, NULL, 0, &third));
    MUST(mx_connect(a, own_nic(), 5, 55, 5000, &to_third));
    handled = release_handler = 0;
    MUST(mx_register_unexp_handler(b, hold, NULL));
    for (int place = 0; place < 3; place++)
        pthread_create(&waiting[place], NULL, wait_at_b, got[place]);
    usleep(20000);
    pthread_create(&sending, NULL, send_to_handler, NULL);
    for (double start = seconds(); !__atomic_load_n(&handled, __ATOMIC_SEQ_CST) && seconds() - start < 20;)
        usleep(1000);
    EQUAL(inside[0], MX_CLOSE_IN_HANDLER);
    EQUAL(inside[1], MX_ALREADY_INITIALIZED);
    EQUAL(inside[2], MX_CLOSE_IN_HANDLER);
    /* The waiting threads sleep. */
    usleep(20000);
    double before = processor_time();
    usleep(200000);
    EXPECT(processor_time() - before < 0.15);
    mx_request_t receive = post(third, got[3], 10, 6, ALL), send = send_to(a, to_third, "third", 6, 6);
    EQUAL(finish(third, &receive, NULL), 0);
    EQUAL(finish(a, &send, NULL), 0);
    EXPECT(!strcmp(got[3], "third"));
    for (int place = 0; place < 3; place++)
        send_to(a, to_b, "later", 6, 77);
    __atomic_store_n(&release_handler, 1, __ATOMIC_SEQ_CST);
    pthread_join(sending, NULL);
    for (int place = 0; place < 3; place++)
        pthread_join(waiting[place], NULL);
    MUST(mx_close_endpoint(third));
    close_both();
}

/* A call runs the handler of another endpoint, while that endpoint's sender closes. */

static void *send_to_the_handler(void *code)
{
    mx_segment_t segment = {memory, 100000};
    *(mx_return_t *)code = mx_issend(a, &segment, 1, to_b, 1, NULL, NULL);
    return NULL;
}

static void closing_beside_a_handler(void)
{
    pthread_t sending;
    mx_return_t code = MX_SUCCESS;
    open_both();
    handled = release_handler = 0;
    MUST(mx_register_unexp_handler(b, hold, NULL));
    pthread_create(&sending, NULL, send_to_the_handler, &code);
    for (double start = seconds(); !__atomic_load_n(&handled, __ATOMIC_SEQ_CST) && seconds() - start < 20;)
        usleep(1000);
    EQUAL(mx_close_endpoint(a), MX_SUCCESS);
    __atomic_store_n(&release_handler, 1, __ATOMIC_SEQ_CST);
    pthread_join(sending, NULL);
    EQUAL(code, MX_BAD_ENDPOINT);
    /* The library continues. */
    MUST(mx_open_endpoint(0, 1, 11, NULL, 0, &a));
    close_both();
}

/* A cancelled request is not a completed one, even for a handler that runs within the call. */

static uint32_t peeked;

static mx_unexp_handler_action_t send_on(void *context, mx_endpoint_addr_t source, uint64_t info, uint32_t length,
                                         void *data)
{
    (void)source, (void)info, (void)length;
    send_to(a, to_third, "on", 3, 1);
    return hold(context, source, info, length, data);
}

static mx_unexp_handler_action_t peek_inside(void *context, mx_endpoint_addr_t source, uint64_t info, uint32_t length,
                                             void *data)
{
    (void)context, (void)source, (void)info, (void)length, (void)data;
    mx_request_t found;
    uint32_t is;
    MUST(mx_ipeek(b, &found, &is));
    __atomic_store_n(&peeked, is, __ATOMIC_SEQ_CST);
    return MX_RECV_FINISHED;
}

static void cancelling_beside_a_handler(void)
{
    pthread_t sending;
    open_both();
    MUST(mx_open_endpoint(0, 5, 55, NULL, 0, &third));
    MUST(mx_connect(a, own_nic(), 5, 55, 5000, &to_third));
    handled = release_handler = 0;
    peeked = 9;
    MUST(mx_register_unexp_handler(b, send_on, NULL));
    MUST(mx_register_unexp_handler(third, peek_inside, NULL));
    mx_request_t receive = post(b, memory, 10, 99, ALL);
    pthread_create(&sending, NULL, send_to_handler, NULL);
    /* Soon, or the progression thread calls the handler. */
    while (!__atomic_load_n(&handled, __ATOMIC_SEQ_CST))
        ;
    MUST(mx_cancel(b, &receive, &result));
    EXPECT(result == 1 && receive == NULL);
    for (double start = seconds(); __atomic_load_n(&peeked, __ATOMIC_SEQ_CST) == 9 && seconds() - start < 20;)
        mx_progress(third);
    EQUAL(peeked, 0);
    __atomic_store_n(&release_handler, 1, __ATOMIC_SEQ_CST);
    pthread_join(sending, NULL);
    MUST(mx_close_endpoint(third));
    close_both();
}

/* A message wakes the thread that probes for it, whichever thread has received it. */

static void *probe_for(void *argument)
{
    mx_status_t found;
    uint32_t is = 0;
    double start = seconds();
    MUST(mx_probe(b, 15000, (uintptr_t)argument, ALL, &found, &is));
    EQUAL(is, 1);
    EXPECT(seconds() - start < 10);
    return NULL;
}

static void probing_in_threads(void)
{
    static char got[10];
    pthread_t waiting[3], probing[2];
    open_both();
    for (int times = 0; times < 5; times++) {
        pthread_create(&waiting[0], NULL, wait_at_b, got);
        usleep(5000);
        for (uintptr_t place = 0; place < 2; place++)
            pthread_create(&probing[place], NULL, probe_for, (void *)(place + 1));
        usleep(5000);
        for (uint64_t info = 1; info <= 2; info++)
            send_to(a, to_b, "probed", 7, info);
        for (int place = 0; place < 2; place++)
            pthread_join(probing[place], NULL);
        send_to(a, to_b, "waited", 7, 77);
        pthread_join(waiting[0], NULL);
        for (uint64_t info = 1; info <= 2; info++) {
            mx_request_t receive = post(b, got, 10, info, ALL);
            EQUAL(finish(b, &receive, NULL), 0);
        }
    }
    close_both();
}

/* Addresses of closed endpoints are refused, and their places are used again. */
static void addresses_of_closed_endpoints(void)
{
    mx_endpoint_addr_t old = {{0, 0}}, address = {{0, 0}};
    mx_segment_t segment = {memory, 1};
    for (int times = 0; times < 200; times++) {
        old = address;
        MUST(mx_open_endpoint(0, 6, 66, NULL, 0, &a));
        MUST(mx_get_endpoint_addr(a, &address));
        EQUAL(mx_isend(a, &segment, 1, old, 0, NULL, NULL), MX_BAD_ADDR_LIST);
        if (times < 199)
            MUST(mx_close_endpoint(a));
    }
    EXPECT(address.stuff[0] < 100);
    /* A partner keeps its address when it reconnects. */
    MUST(mx_open_endpoint(0, 2, 22, NULL, 0, &b));
    MUST(mx_connect(a, own_nic(), 2, 22, 5000, &old));
    for (int times = 0; times < 20; times++) {
        MUST(mx_disconnect(a, old));
        MUST(mx_connect(a, own_nic(), 2, 22, 5000, &to_b));
        EXPECT(!memcmp(&old, &to_b, sizeof old));
    }
    close_both();
}

static void progression(void)
{
    open_both();
    MUST(mx_disable_progression(b));
    mx_request_t receive = post(b, memory, 100, 1, ALL), send = send_to(a, to_b, "later", 6, 1);
    finish(a, &send, NULL);
    MUST(mx_wait(b, &receive, 60, &status, &result));
    EQUAL(result, 0);
    MUST(mx_reenable_progression(b));
    EQUAL(finish(b, &receive, NULL), 0);
    EXPECT(!strcmp(memory, "later"));
    /* The call that enables it makes progress: a single look finds what has arrived before. */
    MUST(mx_disable_progression(b));
    send = send_to(a, to_b, "later", 6, 2);
    finish(a, &send, NULL);
    MUST(mx_reenable_progression(b));
    MUST(mx_iprobe(b, 2, ALL, &status, &result));
    EQUAL(result, 1);
    close_both();
}

static void many_requests(void)
{
    static mx_request_t receives[3000], sends[3000];
    static uint32_t numbers[3000], received[3000];
    open_both();
    for (uint32_t place = 0; place < 3000; place++) {
        numbers[place] = place * 77;
        receives[place] = post(b, &received[place], 4, place, ALL);
    }
    for (uint32_t place = 0; place < 3000; place++)
        sends[place] = send_to(a, to_b, &numbers[2999 - place], 4, 2999 - place);
    for (uint32_t place = 0; place < 3000; place++) {
        EQUAL(finish(b, &receives[place], NULL), 0);
        EQUAL(finish(a, &sends[place], NULL), 0);
        EQUAL(received[place], numbers[place]);
    }
    close_both();
}

static void information(void)
{
    uint32_t count, counters, value;
    uint64_t ids[8];
    static char labels[256 * MX_MAX_STR_LEN];
    static uint32_t values[256];
    char name[MX_MAX_HOSTNAME_LEN], text[MX_MAX_STR_LEN];
    uint64_t nic_id;
    uint32_t board = 0;
    MUST(mx_get_info(NULL, MX_NIC_COUNT, NULL, 0, &count, sizeof count));
    EQUAL(count, 1);
    MUST(mx_get_info(NULL, MX_NIC_IDS, NULL, 0, ids, (count + 1) * sizeof *ids));
    EXPECT(ids[0] == own_nic() && ids[1] == 0);
    EQUAL(mx_get_info(NULL, MX_NIC_IDS, NULL, 0, ids, 8), MX_BAD_INFO_LENGTH);
    MUST(mx_get_info(NULL, MX_MAX_NATIVE_ENDPOINTS, &board, sizeof board, &value, sizeof value));
    EXPECT(value >= 4);
    MUST(mx_get_info(NULL, MX_NATIVE_REQUESTS, &board, sizeof board, &value, sizeof value));
    EQUAL(value, 0xffffffff);
    MUST(mx_get_info(NULL, MX_COUNTERS_COUNT, &board, sizeof board, &counters, sizeof counters));
    EXPECT(counters > 10 && counters <= 256);
    MUST(mx_get_info(NULL, MX_COUNTERS_LABELS, &board, sizeof board, labels, counters * MX_MAX_STR_LEN));
    EXPECT(*labels && strlen(labels) < MX_MAX_STR_LEN);
    MUST(mx_get_info(NULL, MX_COUNTERS_VALUES, &board, sizeof board, values, counters * 4));
    for (int key = MX_PRODUCT_CODE; key <= MX_SERIAL_NUMBER; key++)
        MUST(mx_get_info(NULL, (mx_get_info_key_t)key, &board, sizeof board, text, sizeof text));
    static const struct { int key; uint32_t value; } expected[] = {
        {MX_PORT_COUNT, 1}, {MX_PIO_SEND_MAX, 128}, {MX_COPY_SEND_MAX, 32768}, {MX_NET_TYPE, MX_NET_ETHER}};
    for (size_t place = 0; place < sizeof expected / sizeof *expected; place++) {
        MUST(mx_get_info(NULL, (mx_get_info_key_t)expected[place].key, &board, sizeof board, &value, sizeof value));
        EQUAL(value, expected[place].value);
    }
    MUST(mx_get_info(NULL, MX_LINE_SPEED, &board, sizeof board, &value, sizeof value));
    EXPECT(value <= MX_SPEED_OPEN_MX);
    EQUAL(mx_get_info(NULL, (mx_get_info_key_t)99, &board, 4, &value, 4), MX_BAD_INFO_KEY);
    EQUAL(mx_get_info(NULL, MX_PORT_COUNT, &board, 4, NULL, 4), MX_BAD_INFO_VAL);
    board = 9;
    EQUAL(mx_get_info(NULL, MX_PORT_COUNT, &board, 4, &value, 4), MX_BOARD_UNKNOWN);
    MUST(mx_nic_id_to_hostname(own_nic(), name));
    EXPECT(strchr(name, ':'));
    MUST(mx_hostname_to_nic_id(name, &nic_id));
    EXPECT(nic_id == own_nic());
    MUST(mx_nic_id_to_board_number(nic_id, &board));
    EQUAL(board, 0);
    EQUAL(mx_nic_id_to_board_number(77, &board), MX_BOARD_UNKNOWN);
    EQUAL(mx_board_number_to_nic_id(9, &nic_id), MX_BOARD_UNKNOWN);
    EQUAL(mx_hostname_to_nic_id("nowhere:0", &nic_id), MX_HOST_NOT_FOUND);
    EQUAL(mx_hostname_to_nic_id("", &nic_id), MX_BAD_HOSTNAME_ARGS);
    EQUAL(mx_nic_id_to_hostname(77, name), MX_HOST_NOT_FOUND);
    mx_endpt_handle_t handle;
    mx_mapper_state_t state;
    MUST(mx_open_board(0, &handle));
    MUST(mx__get_mapper_state(handle, &state));
    EXPECT(state.board_number == 0 && state.network_configured && state.num_hosts >= 1);
    EQUAL(mx_open_board(9, &handle), MX_BOARD_UNKNOWN);
    EQUAL(mx__get_mapper_state(handle, &state), MX_BOARD_UNKNOWN);
    EQUAL(mx__regcache_clean(memory, 10), 0);
    for (int code = -1; code < 60; code++) {
        EXPECT(*mx_strerror((mx_return_t)code));
        EXPECT(*mx_strstatus((mx_status_code_t)code));
    }
    EXPECT(strcmp(mx_strerror(MX_TIMEOUT), mx_strerror(MX_BUSY)));
}

static void unsupported(void)
{
    mx_request_t request;
    open_both();
    EQUAL(mx_iput(a, memory, 1, to_b, 0, NULL, &request), MX_FAILURE);
    EQUAL(mx_iget(a, memory, 1, to_b, 0, NULL, &request), MX_FAILURE);
    EQUAL(mx_register_unexp_callback(a, NULL, NULL), MX_FAILURE);
    MUST(mx_set_request_timeout(a, NULL, 2000));
    MUST(mx_set_request_timeout(a, NULL, MX_INFINITE));
    close_both();
}

/* Twelve threads in every blocking call end with one mx_wakeup. */

static int ended;
static uint32_t results[12];
static mx_return_t codes[12];

static void *block(void *argument)
{
    intptr_t place = (intptr_t)argument;
    mx_request_t request = NULL, receive;
    mx_status_t outcome;
    uint32_t done = 1;
    mx_endpoint_addr_t address;
    switch (place % 4) {
    case 0:
        receive = post(b, memory + 1000 * place, 10, (uint64_t)place, ALL);
        codes[place] = mx_wait(b, &receive, MX_INFINITE, &outcome, &done);
        break;
    case 1:
        codes[place] = mx_probe(b, MX_INFINITE, 1000, ALL, &outcome, &done);
        break;
    case 2:
        codes[place] = place % 8 == 2 ? mx_peek(b, 60000, &request, &done)
                                      : mx_wait_any(b, MX_INFINITE, 0, 0, &outcome, &done);
        break;
    default:
        codes[place] = mx_connect(b, 0x0abcdef00002, 2, 22, 60000, &address);
        done = codes[place] == MX_SUCCESS;
    }
    results[place] = done;
    __atomic_fetch_add(&ended, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

static void wakeup(void)
{
    pthread_t threads[12];
    open_both();
    for (intptr_t place = 0; place < 12; place++)
        pthread_create(&threads[place], NULL, block, (void *)place);
    usleep(300000);
    int before = __atomic_load_n(&ended, __ATOMIC_SEQ_CST);
    EXPECT(before == 0 || before == 3); /* connects may end: that NIC is unknown */
    MUST(mx_wakeup(b));
    for (int place = 0; place < 12; place++) {
        pthread_join(threads[place], NULL);
        EQUAL(results[place], 0);
        if (place % 4 == 3)
            EXPECT(codes[place] == MX_TIMEOUT || codes[place] == MX_NIC_NOT_FOUND);
        else
            EQUAL(codes[place], MX_SUCCESS);
    }
    /* It has no effect on later calls. */
    double start = seconds();
    MUST(mx_probe(b, 50, 1000, ALL, &status, &result));
    EXPECT(seconds() - start >= 0.049);
    close_both();
}

/* Several threads of one endpoint receive what others send. */

#define MESSAGES 300

static void *send_many(void *argument)
{
    for (uint64_t number = 0; number < MESSAGES; number++) {
        mx_request_t request = send_to(a, to_b, &number, sizeof number, (uintptr_t)argument << 32 | number);
        finish(a, &request, NULL);
    }
    return NULL;
}

static void *receive_many(void *argument)
{
    for (uint64_t number = 0; number < MESSAGES; number++) {
        uint64_t got = 0;
        mx_request_t request = post(b, &got, sizeof got, (uintptr_t)argument << 32 | number, ALL);
        EQUAL(finish(b, &request, NULL), 0);
        EQUAL(got, number);
    }
    return NULL;
}

static void threads(void)
{
    pthread_t started[6];
    open_both();
    for (intptr_t place = 0; place < 3; place++) {
        pthread_create(&started[place], NULL, receive_many, (void *)place);
        pthread_create(&started[place + 3], NULL, send_many, (void *)place);
    }
    for (int place = 0; place < 6; place++)
        pthread_join(started[place], NULL);
    close_both();
}

static volatile int interrupted;

static void note_signal(int number)
{
    interrupted = number;
}

static void signals(void)
{
    open_both();
    mx_request_t receive = post(b, memory, 10, 1, ALL);
    signal(SIGALRM, note_signal);
    ualarm(20000, 0);
    double start = seconds();
    MUST(mx_wait(b, &receive, 100, &status, &result));
    EXPECT(interrupted == SIGALRM && result == 0 && seconds() - start >= 0.099);
    close_both();
}

static void forks(void)
{
    open_both();
    mx_request_t receive = post(b, memory, 10, 1, ALL);
    for (int times = 0; times < 3; times++) {
        pid_t child = fork();
        if (!child) {
            mx_segment_t segment = {memory, 1};
            int wrong = mx_test(b, &receive, &status, &result) != MX_NOT_INITIALIZED;
            wrong |= mx_isend(a, &segment, 1, to_b, 1, NULL, NULL) != MX_NOT_INITIALIZED;
            wrong |= mx_finalize() != MX_NOT_INITIALIZED;
            wrong |= mx_init() != MX_NO_DRIVER;
            exit(wrong);
        }
        int outcome = -1;
        waitpid(child, &outcome, 0);
        EQUAL(outcome, 0);
    }
    EQUAL(system("exit 3") >> 8, 3);
    mx_request_t send = send_to(a, to_b, "after", 6, 1);
    EQUAL(finish(b, &receive, NULL), 0);
    EXPECT(!strcmp(memory, "after"));
    finish(a, &send, NULL);
    close_both();
}

/* Calls of one thread that take any request do not take the connect of another thread. */
static void *take_any(void *argument)
{
    mx_status_t outcome;
    uint32_t found = 0;
    (void)argument;
    while (!__atomic_load_n(&ended, __ATOMIC_SEQ_CST) && !found)
        MUST(mx_wait_any(a, 20, 0, 0, &outcome, &found));
    EQUAL(found, 0);
    return NULL;
}

static void connecting_beside_a_wait(void)
{
    pthread_t waiting;
    mx_endpoint_addr_t address;
    open_both();
    ended = 0;
    pthread_create(&waiting, NULL, take_any, NULL);
    for (int times = 0; times < 200; times++)
        EQUAL(mx_connect(a, own_nic(), 2, 22, 2000, &address), MX_SUCCESS);
    __atomic_store_n(&ended, 1, __ATOMIC_SEQ_CST);
    pthread_join(waiting, NULL);
    close_both();
}

static void closing_while_waiting(void)
{
    pthread_t waiting;
    open_both();
    ended = 0;
    pthread_create(&waiting, NULL, block, (void *)1);
    usleep(50000);
    MUST(mx_close_endpoint(b));
    pthread_join(waiting, NULL);
    EQUAL(codes[1], MX_BAD_ENDPOINT);
    MUST(mx_close_endpoint(a));
}

/* A call that finds nothing, or whose time is up, writes neither the status nor the handle, and is no error. */
static void nothing_found(void)
{
    mx_status_t blank;
    mx_request_t request, as_posted, first, again;
    open_both();
    memset(&blank, 0x5a, sizeof blank);
    status = blank;
    request = as_posted = post(b, memory, 100, 5, ALL);
    MUST(mx_test(b, &request, &status, &result));
    EQUAL(result, 0);
    MUST(mx_wait(b, &request, 20, &status, &result));
    EQUAL(result, 0);
    MUST(mx_test_any(b, 0, 0, &status, &result));
    EQUAL(result, 0);
    MUST(mx_wait_any(b, 20, 0, 0, &status, &result));
    EQUAL(result, 0);
    MUST(mx_iprobe(b, 0, 0, &status, &result));
    EQUAL(result, 0);
    MUST(mx_probe(b, 20, 0, 0, &status, &result));
    EQUAL(result, 0);
    EXPECT(request == as_posted && !memcmp(&status, &blank, sizeof status));
    /* It has no effect on later calls. */
    MUST(mx_wakeup(b));
    double start = seconds();
    MUST(mx_wait(b, &request, 100, &status, &result));
    EXPECT(result == 0 && seconds() - start > 0.09);
    /* A second peek shows the same request. */
    mx_request_t send = send_to(a, to_b, "found", 6, 5);
    for (result = 0; !result;)
        MUST(mx_ipeek(b, &first, &result));
    MUST(mx_peek(b, 100, &again, &result));
    EXPECT(result == 1 && first == request && again == request);
    EQUAL(finish(b, &first, &status), 0);
    EQUAL(finish(a, &send, NULL), 0);
    close_both();
}

/* The status of a send shows why its partner does not receive it. */
static void lost_partners(void)
{
    mx_segment_t segment = {memory, 5};
    mx_request_t send;
    open_both();
    MUST(mx_close_endpoint(b));
    MUST(mx_open_endpoint(0, 2, 22, NULL, 0, &b));
    MUST(mx_issend(a, &segment, 1, to_b, 9, NULL, &send));
    EQUAL(finish(a, &send, NULL), MX_STATUS_BAD_SESSION);
    MUST(mx_connect(a, own_nic(), 2, 22, 1000, &to_b));
    MUST(mx_issend(a, &segment, 1, to_b, 9, NULL, &send));
    MUST(mx_disconnect(a, to_b));
    EQUAL(finish(a, &send, NULL), MX_STATUS_ENDPOINT_UNREACHABLE);
    MUST(mx_connect(a, own_nic(), 2, 22, 1000, &to_b));
    MUST(mx_issend(a, &segment, 1, to_b, 9, NULL, &send));
    MUST(mx_close_endpoint(b));
    EQUAL(finish(a, &send, NULL), MX_STATUS_ENDPOINT_CLOSED);
    MUST(mx_open_endpoint(0, 2, 22, NULL, 0, &b));
    close_both();
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
#define CASE(name) {#name, name}
    CASE(initialization),     CASE(opening),     CASE(garbage),      CASE(segments),    CASE(truncation),
    CASE(error_handler_of_endpoint),             CASE(matching),     CASE(probing),     CASE(completion_order),
    CASE(any_by_match),       CASE(cancelling),  CASE(forgetting),   CASE(buffering),   CASE(synchronous),
    CASE(connecting),         CASE(context_ids), CASE(unexpected_handler),              CASE(progression),
    CASE(many_requests),      CASE(information), CASE(unsupported),  CASE(wakeup),      CASE(threads),
    CASE(claims),             CASE(consumer),
    CASE(signals),            CASE(forks),       CASE(connecting_beside_a_wait),
    CASE(closing_while_waiting),                 CASE(other_endpoints_in_handler),
    CASE(closing_beside_a_handler),              CASE(cancelling_beside_a_handler),
    CASE(probing_in_threads),                    CASE(addresses_of_closed_endpoints),
    CASE(nothing_found),      CASE(lost_partners),
};

int main(int count, char **words)
{
    mx_set_error_handler(MX_ERRORS_RETURN);
    MUST(mx_init());
    setlinebuf(stdout);
    for (size_t place = 0; place < sizeof cases / sizeof *cases; place++) {
        if (count > 1 && strcmp(words[1], cases[place].name))
            continue;
        int before = failures;
        cases[place].run();
        printf("%s %s\n", failures == before ? "ok" : "failed", cases[place].name);
    }
    MUST(mx_finalize());
    return failures != 0;
}
