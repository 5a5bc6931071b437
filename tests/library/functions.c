/* One case per function of the interface, with its name: returned values, results, and all errors that it can return. */

#include "cases.h"

static mx_endpoint_t one, two;
static mx_endpoint_addr_t to_one, to_two;
static const mx_endpoint_addr_t nowhere = {{99999, 0}};
static char memory[100000];
static uint32_t result;
static mx_status_t status;
static mx_request_t request, none;

static void open_both(void)
{
    MUST(mx_open_endpoint(0, 1, 11, NULL, 0, &one));
    MUST(mx_open_endpoint(0, 2, 22, NULL, 0, &two));
    MUST(mx_connect(one, own_nic(), 2, 22, 5000, &to_two));
    MUST(mx_connect(two, own_nic(), 1, 11, 5000, &to_one));
}

static void close_both(void)
{
    MUST(mx_close_endpoint(one));
    MUST(mx_close_endpoint(two));
}

/* Send a message and receive it, so that a request of each kind has ended. */
static void deliver(uint64_t info)
{
    mx_request_t receive = post(two, memory, 10, info, ALL), send = send_to(one, to_two, "data", 5, info);
    EQUAL(finish(two, &receive, NULL), 0);
    EQUAL(finish(one, &send, NULL), 0);
}

static mx_return_t last;

static mx_return_t note(char *text, mx_return_t code)
{
    EXPECT(text && *text);
    last = code;
    return code;
}

static void case_mx__init_api(void)
{
    EQUAL(mx__init_api(MX_API), MX_ALREADY_INITIALIZED);
    MUST(mx_finalize());
    EQUAL(mx__init_api(0x201), MX_BAD_LIB_VERSION);
    EQUAL(mx__init_api(0x400), MX_BAD_LIB_VERSION);
    EQUAL(mx__init_api(0x300), MX_SUCCESS);
}

static void case_mx_finalize(void)
{
    EQUAL(mx_finalize(), MX_SUCCESS);
    EQUAL(mx_finalize(), MX_NOT_INITIALIZED);
    MUST(mx_init());
}

static void case_mx_set_error_handler(void)
{
    EXPECT(mx_set_error_handler(note) == MX_ERRORS_RETURN);
    EQUAL(mx_close_endpoint(NULL), MX_BAD_ENDPOINT);
    EQUAL(last, MX_BAD_ENDPOINT);
    EXPECT(mx_set_error_handler(MX_ERRORS_RETURN) == note);
}

static void case_mx_open_endpoint(void)
{
    mx_endpoint_t other;
    mx_param_t params[2] = {{.key = MX_PARAM_UNEXP_QUEUE_MAX, .val.unexp_queue_max = 1 << 20},
                            {.key = MX_PARAM_CONTEXT_ID, .val.context_id = {17, 0}}};
    EQUAL(mx_open_endpoint(0, 1, 1, params, 1, &one), MX_SUCCESS);
    EQUAL(mx_open_endpoint(0, 1, 1, NULL, 0, &other), MX_BUSY);
    EQUAL(mx_open_endpoint(0, 5000, 1, NULL, 0, &other), MX_BAD_ENDPOINT);
    EQUAL(mx_open_endpoint(0, 2, 1, NULL, 0, NULL), MX_BAD_ENDPOINT);
    EQUAL(mx_open_endpoint(7, 2, 1, NULL, 0, &other), MX_BOARD_UNKNOWN);
    EQUAL(mx_open_endpoint(0, 2, 1, NULL, 2, &other), MX_BAD_PARAM_LIST);
    EQUAL(mx_open_endpoint(0, 2, 1, params, 2, &other), MX_BAD_PARAM_VAL);
    params[1].key = (mx_param_key_t)9;
    EQUAL(mx_open_endpoint(0, 2, 1, params, 2, &other), MX_BAD_PARAM_NAME);
    MUST(mx_close_endpoint(one));
}

static void case_mx_close_endpoint(void)
{
    open_both();
    EQUAL(mx_close_endpoint(one), MX_SUCCESS);
    EQUAL(mx_close_endpoint(one), MX_BAD_ENDPOINT);
    EQUAL(mx_close_endpoint(NULL), MX_BAD_ENDPOINT);
    MUST(mx_close_endpoint(two));
}

static mx_return_t closing;

static mx_unexp_handler_action_t close_inside(void *context, mx_endpoint_addr_t source, uint64_t info, uint32_t length,
                                              void *data)
{
    (void)source, (void)info, (void)length, (void)data;
    closing = mx_close_endpoint(*(mx_endpoint_t *)context);
    return MX_RECV_FINISHED;
}

static void case_mx_register_unexp_handler(void)
{
    open_both();
    EQUAL(mx_register_unexp_handler(two, close_inside, &two), MX_SUCCESS);
    mx_request_t send = send_to(one, to_two, "x", 1, 1);
    EQUAL(finish(one, &send, NULL), 0);
    for (double start = seconds(); !closing && seconds() - start < 20;)
        MUST(mx_progress(two));
    EQUAL(closing, MX_CLOSE_IN_HANDLER);
    EQUAL(mx_register_unexp_handler(two, NULL, NULL), MX_SUCCESS);
    EQUAL(mx_register_unexp_handler(NULL, close_inside, NULL), MX_BAD_ENDPOINT);
    close_both();
}

static void case_mx_wakeup(void)
{
    open_both();
    EQUAL(mx_wakeup(one), MX_SUCCESS);
    EQUAL(mx_wakeup((mx_endpoint_t)memory), MX_BAD_ENDPOINT);
    close_both();
}

static void case_mx_disable_progression(void)
{
    open_both();
    EQUAL(mx_disable_progression(two), MX_SUCCESS);
    mx_request_t receive = post(two, memory, 10, 1, ALL), send = send_to(one, to_two, "x", 1, 1);
    MUST(mx_wait(two, &receive, 20, &status, &result));
    EQUAL(result, 0);
    MUST(mx_reenable_progression(two));
    EQUAL(finish(two, &receive, NULL), 0);
    finish(one, &send, NULL);
    EQUAL(mx_disable_progression(NULL), MX_BAD_ENDPOINT);
    close_both();
}

static void case_mx_reenable_progression(void)
{
    open_both();
    EQUAL(mx_reenable_progression(two), MX_SUCCESS);
    MUST(mx_disable_progression(two));
    EQUAL(mx_reenable_progression(two), MX_SUCCESS);
    deliver(1);
    EQUAL(mx_reenable_progression(NULL), MX_BAD_ENDPOINT);
    close_both();
}

static void case_mx_progress(void)
{
    open_both();
    EQUAL(mx_progress(one), MX_SUCCESS);
    EQUAL(mx_progress(NULL), MX_BAD_ENDPOINT);
    close_both();
}

typedef mx_return_t (*send_function)(mx_endpoint_t, mx_segment_t *, uint32_t, mx_endpoint_addr_t, uint64_t, void *,
                                     mx_request_t *);

static void check_send(send_function send)
{
    static mx_segment_t many[MX_MAX_SEGMENTS + 1];
    mx_segment_t segment = {memory, 10}, wrong = {NULL, 10};
    open_both();
    mx_request_t receive = post(two, memory + 100, 10, 1, ALL);
    EQUAL(send(one, &segment, 1, to_two, 1, &segment, &request), MX_SUCCESS);
    EQUAL(finish(one, &request, &status), 0);
    EXPECT(status.context == &segment && status.match_info == 1 && status.xfer_length == 10);
    EQUAL(finish(two, &receive, NULL), 0);
    EQUAL(send(one, many, MX_MAX_SEGMENTS + 1, to_two, 1, NULL, &request), MX_BAD_SEG_CNT);
    EQUAL(send(one, NULL, 1, to_two, 1, NULL, &request), MX_BAD_SEG_LIST);
    EQUAL(send(one, &wrong, 1, to_two, 1, NULL, &request), MX_BAD_SEG_MEM);
    EQUAL(send(one, &segment, 1, nowhere, 1, NULL, &request), MX_BAD_ADDR_LIST);
    EQUAL(send(one, &segment, 1, to_one, 1, NULL, &request), MX_BAD_ADDR_LIST);
    EQUAL(send(NULL, &segment, 1, to_two, 1, NULL, &request), MX_BAD_ENDPOINT);
    close_both();
}

static void case_mx_isend(void)
{
    check_send(mx_isend); /* MX_SUCCESS, MX_BAD_SEG_CNT */
}

static void case_mx_issend(void)
{
    check_send(mx_issend); /* MX_SUCCESS, MX_BAD_SEG_CNT */
    open_both();
    mx_segment_t segment = {memory, 10};
    MUST(mx_issend(one, &segment, 1, to_two, 1, NULL, &request));
    MUST(mx_wait(one, &request, 20, &status, &result));
    EQUAL(result, 0);
    close_both();
}

static void case_mx_irecv(void)
{
    static mx_segment_t many[MX_MAX_SEGMENTS + 1];
    mx_segment_t segment = {memory, 10}, wrong = {NULL, 10};
    mx_param_t param = {.key = MX_PARAM_CONTEXT_ID, .val.context_id = {.bits = 4, .shift = 60}};
    mx_endpoint_t third;
    open_both();
    EQUAL(mx_irecv(two, &segment, 1, 1, ALL, memory, &request), MX_SUCCESS);
    mx_request_t send = send_to(one, to_two, "data", 5, 1);
    EQUAL(finish(two, &request, &status), 0);
    EXPECT(status.context == memory && status.xfer_length == 5 && !memcmp(&status.source, &to_one, sizeof to_one));
    finish(one, &send, NULL);
    EQUAL(mx_irecv(two, many, MX_MAX_SEGMENTS + 1, 1, ALL, NULL, &request), MX_BAD_SEG_CNT);
    EQUAL(mx_irecv(two, NULL, 1, 1, ALL, NULL, &request), MX_BAD_SEG_LIST);
    EQUAL(mx_irecv(two, &wrong, 1, 1, ALL, NULL, &request), MX_BAD_SEG_MEM);
    EQUAL(mx_irecv(two, &segment, 1, 2, 1, NULL, &request), MX_BAD_MATCH_MASK);
    EQUAL(mx_irecv(NULL, &segment, 1, 1, ALL, NULL, &request), MX_BAD_ENDPOINT);
    MUST(mx_open_endpoint(0, 3, 33, &param, 1, &third));
    EQUAL(mx_irecv(third, &segment, 1, 0, 1, NULL, &request), MX_BAD_MATCHING_FOR_CONTEXT_ID_MASK);
    MUST(mx_close_endpoint(third));
    close_both();
}

static void case_mx_cancel(void)
{
    open_both();
    mx_request_t receive = post(two, memory, 10, 1, ALL);
    EQUAL(mx_cancel(two, &receive, &result), MX_SUCCESS);
    EXPECT(result == 1 && receive == NULL);
    receive = post(two, memory, 10, 2, ALL);
    mx_request_t send = send_to(one, to_two, "x", 1, 2);
    MUST(mx_peek(two, 5000, &request, &result));
    EQUAL(mx_cancel(two, &receive, &result), MX_SUCCESS);
    EXPECT(result == 0 && receive != NULL);
    EQUAL(mx_cancel(one, &send, &result), MX_BAD_REQUEST);
    EQUAL(mx_cancel(one, &none, &result), MX_BAD_REQUEST);
    EQUAL(mx_cancel(NULL, &receive, &result), MX_BAD_ENDPOINT);
    close_both();
}

static void case_mx_test(void)
{
    open_both();
    mx_request_t receive = post(two, memory, 10, 1, ALL);
    result = 7;
    EQUAL(mx_test(two, &receive, &status, &result), MX_SUCCESS);
    EXPECT(result == 0 && receive != NULL);
    mx_request_t send = send_to(one, to_two, "data", 5, 1), stale = receive;
    for (double start = seconds(); !result && seconds() - start < 20;)
        EQUAL(mx_test(two, &receive, &status, &result), MX_SUCCESS);
    EXPECT(result == 1 && receive == NULL && status.code == MX_STATUS_SUCCESS && status.xfer_length == 5);
    EQUAL(mx_test(two, &stale, &status, &result), MX_BAD_REQUEST);
    EQUAL(mx_test(two, NULL, &status, &result), MX_BAD_REQUEST);
    EQUAL(mx_test(two, &send, &status, &result), MX_BAD_REQUEST);
    EQUAL(mx_test(NULL, &send, &status, &result), MX_BAD_ENDPOINT);
    finish(one, &send, NULL);
    close_both();
}

static void case_mx_wait(void)
{
    open_both();
    mx_request_t receive = post(two, memory, 2, 1, ALL);
    EQUAL(mx_wait(two, &receive, 10, &status, &result), MX_SUCCESS);
    EXPECT(result == 0 && receive != NULL);
    mx_request_t send = send_to(one, to_two, "data", 5, 1);
    EQUAL(mx_wait(two, &receive, 5000, &status, &result), MX_SUCCESS);
    EXPECT(result == 1 && receive == NULL && status.code == MX_STATUS_TRUNCATED);
    EXPECT(status.msg_length == 5 && status.xfer_length == 2);
    EQUAL(mx_wait(two, &receive, 10, &status, &result), MX_BAD_REQUEST);
    EQUAL(mx_wait(NULL, &send, 10, &status, &result), MX_BAD_ENDPOINT);
    finish(one, &send, NULL);
    close_both();
}

static void case_mx_test_any(void)
{
    open_both();
    EQUAL(mx_test_any(two, 0, 0, &status, &result), MX_SUCCESS);
    EQUAL(result, 0);
    mx_request_t receive = post(two, memory, 10, 6, ALL), send = send_to(one, to_two, "data", 5, 6);
    MUST(mx_peek(two, 5000, &request, &result));
    EQUAL(mx_test_any(two, 5, ALL, &status, &result), MX_SUCCESS);
    EQUAL(result, 0);
    EQUAL(mx_test_any(two, 6, ALL, &status, &result), MX_SUCCESS);
    EXPECT(result == 1 && status.match_info == 6);
    EQUAL(mx_test(two, &receive, &status, &result), MX_BAD_REQUEST);
    EQUAL(mx_test_any(two, 2, 1, &status, &result), MX_BAD_MATCH_MASK);
    EQUAL(mx_test_any(NULL, 0, 0, &status, &result), MX_BAD_ENDPOINT);
    finish(one, &send, NULL);
    close_both();
}

static void case_mx_wait_any(void)
{
    open_both();
    EQUAL(mx_wait_any(two, 10, 0, 0, &status, &result), MX_SUCCESS);
    EQUAL(result, 0);
    mx_request_t receive = post(two, memory, 10, 6, ALL), send = send_to(one, to_two, "data", 5, 6);
    EQUAL(mx_wait_any(two, 5000, 6, ALL, &status, &result), MX_SUCCESS);
    EXPECT(result == 1 && status.match_info == 6);
    EQUAL(mx_wait_any(two, 10, 2, 1, &status, &result), MX_BAD_MATCH_MASK);
    EQUAL(mx_wait_any(NULL, 10, 0, 0, &status, &result), MX_BAD_ENDPOINT);
    finish(one, &send, NULL);
    (void)receive;
    close_both();
}

static void case_mx_ipeek(void)
{
    open_both();
    EQUAL(mx_ipeek(two, &request, &result), MX_SUCCESS);
    EQUAL(result, 0);
    mx_request_t receive = post(two, memory, 10, 1, ALL), send = send_to(one, to_two, "data", 5, 1);
    for (double start = seconds(); !result && seconds() - start < 20;)
        EQUAL(mx_ipeek(two, &request, &result), MX_SUCCESS);
    EXPECT(result == 1 && request == receive);
    EQUAL(mx_ipeek(two, NULL, &result), MX_BAD_REQUEST);
    EQUAL(mx_ipeek(NULL, &request, &result), MX_BAD_ENDPOINT);
    finish(one, &send, NULL);
    close_both();
}

static void case_mx_peek(void)
{
    open_both();
    EQUAL(mx_peek(two, 10, &request, &result), MX_SUCCESS);
    EQUAL(result, 0);
    mx_request_t receive = post(two, memory, 10, 1, ALL), send = send_to(one, to_two, "data", 5, 1);
    EQUAL(mx_peek(two, 5000, &request, &result), MX_SUCCESS);
    EXPECT(result == 1 && request == receive);
    EQUAL(mx_peek(two, 10, NULL, &result), MX_BAD_REQUEST);
    EQUAL(mx_peek(NULL, 10, &request, &result), MX_BAD_ENDPOINT);
    finish(one, &send, NULL);
    close_both();
}

static void case_mx_iprobe(void)
{
    open_both();
    EQUAL(mx_iprobe(two, 1, ALL, &status, &result), MX_SUCCESS);
    EQUAL(result, 0);
    mx_request_t send = send_to(one, to_two, "data", 5, 1);
    for (double start = seconds(); !result && seconds() - start < 20;)
        EQUAL(mx_iprobe(two, 1, ALL, &status, &result), MX_SUCCESS);
    EXPECT(result == 1 && status.msg_length == 5 && status.xfer_length == 5 && status.match_info == 1);
    EQUAL(mx_iprobe(two, 2, 1, &status, &result), MX_BAD_MATCH_MASK);
    EQUAL(mx_iprobe(NULL, 1, ALL, &status, &result), MX_BAD_ENDPOINT);
    finish(one, &send, NULL);
    close_both();
}

static void case_mx_probe(void)
{
    open_both();
    EQUAL(mx_probe(two, 10, 1, ALL, &status, &result), MX_SUCCESS);
    EQUAL(result, 0);
    mx_request_t send = send_to(one, to_two, "data", 5, 1);
    EQUAL(mx_probe(two, 5000, 1, ALL, &status, &result), MX_SUCCESS);
    EXPECT(result == 1 && status.msg_length == 5 && status.xfer_length == 5 && status.match_info == 1);
    EQUAL(mx_probe(two, 10, 2, 1, &status, &result), MX_BAD_MATCH_MASK);
    EQUAL(mx_probe(NULL, 10, 1, ALL, &status, &result), MX_BAD_ENDPOINT);
    finish(one, &send, NULL);
    close_both();
}

typedef mx_return_t (*buffered_function)(mx_endpoint_t, mx_request_t *, uint32_t *);

static mx_return_t buffered_for_a_while(mx_endpoint_t endpoint, mx_request_t *send, uint32_t *is)
{
    return mx_buffered(endpoint, send, 10, is);
}

static void check_buffered(buffered_function buffered)
{
    open_both();
    mx_request_t small = send_to(one, to_two, memory, 100, 1), large = send_to(one, to_two, memory, sizeof memory, 2);
    mx_request_t receive = post(two, memory, 10, 3, ALL);
    EQUAL(buffered(one, &small, &result), MX_SUCCESS);
    EQUAL(result, 1);
    EQUAL(buffered(one, &large, &result), MX_SUCCESS);
    EQUAL(result, 0);
    EQUAL(buffered(two, &receive, &result), MX_BAD_REQUEST);
    EQUAL(buffered(one, &none, &result), MX_BAD_REQUEST);
    EQUAL(buffered(NULL, &small, &result), MX_BAD_ENDPOINT);
    close_both();
}

static void case_mx_ibuffered(void)
{
    check_buffered(mx_ibuffered); /* MX_SUCCESS, MX_BAD_REQUEST */
}

static void case_mx_buffered(void)
{
    check_buffered(buffered_for_a_while); /* mx_buffered */
}

static void case_mx_context(void)
{
    void *context = NULL;
    open_both();
    mx_request_t receive = post(two, memory, 10, 1, ALL);
    EQUAL(mx_context(&receive, &context), MX_SUCCESS);
    EXPECT(context == memory);
    EQUAL(mx_context(&none, &context), MX_BAD_REQUEST);
    EQUAL(mx_context(NULL, &context), MX_BAD_REQUEST);
    EQUAL(mx_context(&receive, NULL), MX_BAD_REQUEST);
    close_both();
}

static void case_mx_forget(void)
{
    open_both();
    mx_request_t receive = post(two, memory, 10, 1, ALL);
    EQUAL(mx_forget(two, &receive), MX_SUCCESS);
    EXPECT(receive == NULL);
    EQUAL(mx_forget(two, &receive), MX_BAD_REQUEST);
    EQUAL(mx_forget(NULL, &receive), MX_BAD_ENDPOINT);
    mx_request_t send = send_to(one, to_two, "data", 5, 1);
    EQUAL(finish(one, &send, NULL), 0);
    MUST(mx_peek(two, 20, &request, &result));
    EQUAL(result, 0);
    close_both();
}

static void case_mx_set_request_timeout(void)
{
    open_both();
    mx_request_t receive = post(two, memory, 10, 1, ALL);
    EQUAL(mx_set_request_timeout(two, receive, 2000), MX_SUCCESS);
    EQUAL(mx_set_request_timeout(two, NULL, MX_INFINITE), MX_SUCCESS);
    EQUAL(mx_set_request_timeout(one, receive, 2000), MX_BAD_REQUEST);
    EQUAL(mx_set_request_timeout(NULL, receive, 2000), MX_BAD_ENDPOINT);
    close_both();
}

static void case_mx_get_info(void)
{
    uint32_t board = 0, value;
    MUST(mx_open_endpoint(0, 1, 1, NULL, 0, &one));
    EQUAL(mx_get_info(NULL, MX_PORT_COUNT, &board, sizeof board, &value, sizeof value), MX_SUCCESS);
    EQUAL(value, 1);
    EQUAL(mx_get_info(one, MX_COPY_SEND_MAX, NULL, 0, &value, sizeof value), MX_SUCCESS);
    EQUAL(value, 32768);
    EQUAL(mx_get_info(NULL, (mx_get_info_key_t)99, &board, sizeof board, &value, sizeof value), MX_BAD_INFO_KEY);
    EQUAL(mx_get_info(NULL, MX_PORT_COUNT, &board, sizeof board, NULL, 4), MX_BAD_INFO_VAL);
    EQUAL(mx_get_info(NULL, MX_PORT_COUNT, &board, sizeof board, &value, 2), MX_BAD_INFO_LENGTH);
    EQUAL(mx_get_info((mx_endpoint_t)memory, MX_PORT_COUNT, NULL, 0, &value, sizeof value), MX_BAD_ENDPOINT);
    board = 9;
    EQUAL(mx_get_info(NULL, MX_PORT_COUNT, &board, sizeof board, &value, sizeof value), MX_BOARD_UNKNOWN);
    MUST(mx_close_endpoint(one));
    MUST(mx_finalize());
    EQUAL(mx_get_info(NULL, MX_NIC_COUNT, NULL, 0, &value, sizeof value), MX_NOT_INITIALIZED);
    MUST(mx_init());
}

static void case_mx_hostname_to_nic_id(void)
{
    char name[MX_MAX_HOSTNAME_LEN], longest[MX_MAX_HOSTNAME_LEN + 1];
    uint64_t nic_id;
    MUST(mx_nic_id_to_hostname(own_nic(), name));
    EQUAL(mx_hostname_to_nic_id(name, &nic_id), MX_SUCCESS);
    EXPECT(nic_id == own_nic());
    EQUAL(mx_hostname_to_nic_id("nowhere:0", &nic_id), MX_HOST_NOT_FOUND);
    EQUAL(mx_hostname_to_nic_id("", &nic_id), MX_BAD_HOSTNAME_ARGS);
    EQUAL(mx_hostname_to_nic_id(NULL, &nic_id), MX_BAD_HOSTNAME_ARGS);
    EQUAL(mx_hostname_to_nic_id(name, NULL), MX_BAD_HOSTNAME_ARGS);
    memset(longest, 'x', sizeof longest);
    EQUAL(mx_hostname_to_nic_id(longest, &nic_id), MX_BAD_HOSTNAME_ARGS);
}

static void case_mx_nic_id_to_hostname(void)
{
    char name[MX_MAX_HOSTNAME_LEN] = "";
    EQUAL(mx_nic_id_to_hostname(own_nic(), name), MX_SUCCESS);
    EXPECT(strlen(name) > 2 && !strcmp(name + strlen(name) - 2, ":0"));
    EQUAL(mx_nic_id_to_hostname(77, name), MX_HOST_NOT_FOUND);
    EQUAL(mx_nic_id_to_hostname(~0ull, name), MX_HOST_NOT_FOUND);
    EQUAL(mx_nic_id_to_hostname(own_nic(), NULL), MX_BAD_HOSTNAME_ARGS);
}

static void case_mx_board_number_to_nic_id(void)
{
    uint64_t nic_id = 0;
    EQUAL(mx_board_number_to_nic_id(0, &nic_id), MX_SUCCESS);
    EXPECT(nic_id && !(nic_id >> 48));
    EQUAL(mx_board_number_to_nic_id(9, &nic_id), MX_BOARD_UNKNOWN);
    EQUAL(mx_board_number_to_nic_id(0, NULL), MX_BAD_NIC);
    MUST(mx_finalize());
    EQUAL(mx_board_number_to_nic_id(0, &nic_id), MX_NOT_INITIALIZED);
    MUST(mx_init());
}

static void case_mx_nic_id_to_board_number(void)
{
    uint32_t board = 9;
    EQUAL(mx_nic_id_to_board_number(own_nic(), &board), MX_SUCCESS);
    EQUAL(board, 0);
    EQUAL(mx_nic_id_to_board_number(77, &board), MX_BOARD_UNKNOWN);
    EQUAL(mx_nic_id_to_board_number(own_nic(), NULL), MX_BAD_NIC);
    MUST(mx_finalize());
    EQUAL(mx_nic_id_to_board_number(77, &board), MX_NOT_INITIALIZED);
    MUST(mx_init());
}

static void case_mx_connect(void)
{
    mx_endpoint_addr_t address;
    open_both();
    EQUAL(mx_connect(one, own_nic(), 2, 22, 5000, &address), MX_SUCCESS);
    EXPECT(!memcmp(&address, &to_two, sizeof address));
    EQUAL(mx_connect(one, own_nic(), 2, 23, 5000, &address), MX_BAD_CONNECTION_KEY);
    EQUAL(mx_connect(one, own_nic(), 3, 22, 5000, &address), MX_CONNECTION_FAILED);
    EQUAL(mx_connect(one, own_nic(), 200, 22, 5000, &address), MX_BAD_ENDPOINT_ID);
    EQUAL(mx_connect(one, 0x0abcdef00001, 2, 22, 5000, &address), MX_NIC_NOT_FOUND);
    EQUAL(mx_connect(one, own_nic(), 2, 22, 5000, NULL), MX_BAD_ADDR_LIST);
    EQUAL(mx_connect(NULL, own_nic(), 2, 22, 5000, &address), MX_BAD_ENDPOINT);
    /* An endpoint that makes no progress does not answer. */
    MUST(mx_disable_progression(one));
    EQUAL(mx_connect(one, own_nic(), 2, 22, 20, &address), MX_TIMEOUT);
    MUST(mx_reenable_progression(one));
    close_both();
}

static void case_mx_iconnect(void)
{
    open_both();
    EQUAL(mx_iconnect(one, own_nic(), 2, 22, 7, memory, &request), MX_SUCCESS);
    EQUAL(finish(one, &request, &status), MX_STATUS_SUCCESS);
    EXPECT(status.match_info == 7 && status.context == memory && !memcmp(&status.source, &to_two, sizeof to_two));
    MUST(mx_iconnect(one, own_nic(), 2, 23, 7, NULL, &request));
    EQUAL(finish(one, &request, &status), MX_STATUS_BAD_KEY);
    MUST(mx_iconnect(one, own_nic(), 3, 22, 7, NULL, &request));
    EQUAL(finish(one, &request, &status), MX_STATUS_ENDPOINT_CLOSED);
    MUST(mx_iconnect(one, own_nic(), 200, 22, 7, NULL, &request));
    EQUAL(finish(one, &request, &status), MX_STATUS_BAD_ENDPOINT);
    EQUAL(mx_iconnect(one, ~0ull, 2, 22, 7, NULL, &request), MX_NIC_NOT_FOUND);
    EQUAL(mx_iconnect(NULL, own_nic(), 2, 22, 7, NULL, &request), MX_BAD_ENDPOINT);
    close_both();
}

static void case_mx_disconnect(void)
{
    open_both();
    mx_request_t send = send_to(one, to_two, memory, sizeof memory, 1);
    EQUAL(mx_disconnect(one, to_two), MX_SUCCESS);
    EQUAL(finish(one, &send, &status), MX_STATUS_ENDPOINT_UNREACHABLE);
    EQUAL(mx_disconnect(one, nowhere), MX_BAD_ADDR_LIST);
    EQUAL(mx_disconnect(one, to_one), MX_BAD_ADDR_LIST);
    EQUAL(mx_disconnect(NULL, to_two), MX_BAD_ENDPOINT);
    close_both();
}

static void case_mx_get_endpoint_addr(void)
{
    mx_endpoint_addr_t own;
    open_both();
    EQUAL(mx_get_endpoint_addr(one, &own), MX_SUCCESS);
    mx_request_t receive = post(one, memory, 10, 1, ALL), send = send_to(one, own, "self", 5, 1);
    EQUAL(finish(one, &receive, NULL), 0);
    finish(one, &send, NULL);
    EQUAL(mx_get_endpoint_addr(one, NULL), MX_BAD_ADDR_LIST);
    EQUAL(mx_get_endpoint_addr(NULL, &own), MX_BAD_ENDPOINT);
    close_both();
}

static void case_mx_decompose_endpoint_addr(void)
{
    uint64_t nic_id;
    uint32_t number;
    open_both();
    EQUAL(mx_decompose_endpoint_addr(to_two, &nic_id, &number), MX_SUCCESS);
    EXPECT(nic_id == own_nic() && number == 2);
    EQUAL(mx_decompose_endpoint_addr(to_two, NULL, NULL), MX_SUCCESS);
    EQUAL(mx_decompose_endpoint_addr(nowhere, &nic_id, &number), MX_BAD_ADDR_LIST);
    close_both();
}

static void case_mx_decompose_endpoint_addr2(void)
{
    uint64_t nic_id;
    uint32_t number, session = 0, other = 0;
    open_both();
    EQUAL(mx_decompose_endpoint_addr2(to_two, &nic_id, &number, &session), MX_SUCCESS);
    EQUAL(mx_decompose_endpoint_addr2(to_one, NULL, NULL, &other), MX_SUCCESS);
    EXPECT(nic_id == own_nic() && number == 2 && session && other && session != other);
    EQUAL(mx_decompose_endpoint_addr2(nowhere, &nic_id, &number, &session), MX_BAD_ADDR_LIST);
    close_both();
}

static void case_mx_set_endpoint_addr_context(void)
{
    void *context = &context;
    open_both();
    EQUAL(mx_set_endpoint_addr_context(to_two, memory), MX_SUCCESS);
    MUST(mx_get_endpoint_addr_context(to_two, &context));
    EXPECT(context == memory);
    EQUAL(mx_set_endpoint_addr_context(nowhere, memory), MX_BAD_ADDR_LIST);
    close_both();
}

static void case_mx_get_endpoint_addr_context(void)
{
    void *context = &context;
    open_both();
    EQUAL(mx_get_endpoint_addr_context(to_two, &context), MX_SUCCESS);
    EXPECT(context == NULL);
    EQUAL(mx_get_endpoint_addr_context(to_two, NULL), MX_BAD_ADDR_LIST);
    EQUAL(mx_get_endpoint_addr_context(nowhere, &context), MX_BAD_ADDR_LIST);
    close_both();
}

static void case_mx_strerror(void)
{
    for (int code = -1; code < 60; code++)
        EXPECT(*mx_strerror((mx_return_t)code));
    EXPECT(strcmp(mx_strerror(MX_TIMEOUT), mx_strerror(MX_BUSY)));
    EXPECT(!strcmp(mx_strerror((mx_return_t)1000), mx_strerror((mx_return_t)-1)));
}

static void case_mx_strstatus(void)
{
    for (int code = -1; code < 60; code++)
        EXPECT(*mx_strstatus((mx_status_code_t)code));
    EXPECT(strcmp(mx_strstatus(MX_STATUS_TRUNCATED), mx_strstatus(MX_STATUS_SUCCESS)));
}

static void case_mx_register_unexp_callback(void)
{
    open_both();
    EQUAL(mx_register_unexp_callback(one, NULL, NULL), MX_FAILURE);
    EQUAL(mx_register_unexp_callback(NULL, NULL, NULL), MX_BAD_ENDPOINT);
    close_both();
}

static void case_mx_iput(void)
{
    open_both();
    EQUAL(mx_iput(one, memory, 1, to_two, 0, NULL, &request), MX_FAILURE);
    EQUAL(mx_iput(NULL, memory, 1, to_two, 0, NULL, &request), MX_BAD_ENDPOINT);
    close_both();
}

static void case_mx_iget(void)
{
    open_both();
    EQUAL(mx_iget(one, memory, 1, to_two, 0, NULL, &request), MX_FAILURE);
    EQUAL(mx_iget(NULL, memory, 1, to_two, 0, NULL, &request), MX_BAD_ENDPOINT);
    close_both();
}

static void case_mx_open_board(void)
{
    mx_endpt_handle_t handle = -7;
    EQUAL(mx_open_board(0, &handle), MX_SUCCESS);
    EXPECT(handle != MX__INVALID_HANDLE);
    EQUAL(mx_open_board(9, &handle), MX_BOARD_UNKNOWN);
    EXPECT(handle == MX__INVALID_HANDLE);
    EQUAL(mx_open_board(-1, &handle), MX_BOARD_UNKNOWN);
    EQUAL(mx_open_board(0, NULL), MX_BOARD_UNKNOWN);
}

static void case_mx__get_mapper_state(void)
{
    mx_mapper_state_t state;
    mx_endpt_handle_t handle;
    MUST(mx_open_board(0, &handle));
    EQUAL(mx__get_mapper_state(handle, &state), MX_SUCCESS);
    EXPECT(state.board_number == 0 && state.network_configured && state.routes_valid && state.num_hosts >= 1);
    EQUAL(mx__get_mapper_state(handle, NULL), MX_BOARD_UNKNOWN);
    EQUAL(mx__get_mapper_state(MX__INVALID_HANDLE, &state), MX_BOARD_UNKNOWN);
}

static void case_mx__regcache_clean(void)
{
    EQUAL(mx__regcache_clean(memory, sizeof memory), 0);
    EQUAL(mx__regcache_clean(NULL, 0), 0);
}

/* All functions that need the library, before mx_init and after mx_finalize. */
static void case_uninitialized(void)
{
    mx_segment_t segment = {memory, 1};
    mx_endpoint_addr_t address;
    mx_endpt_handle_t board;
    mx_mapper_state_t state;
    void *context;
    uint64_t nic_id;
    uint32_t number;
    mx_endpoint_t other = one;
    MUST(mx_finalize());
    EQUAL(mx_finalize(), MX_NOT_INITIALIZED);
    EQUAL(mx_open_endpoint(0, 1, 1, NULL, 0, &other), MX_NOT_INITIALIZED);
    EQUAL(mx_close_endpoint(one), MX_NOT_INITIALIZED);
    EQUAL(mx_wakeup(one), MX_NOT_INITIALIZED);
    EQUAL(mx_disable_progression(one), MX_NOT_INITIALIZED);
    EQUAL(mx_reenable_progression(one), MX_NOT_INITIALIZED);
    EQUAL(mx_progress(one), MX_NOT_INITIALIZED);
    EQUAL(mx_isend(one, &segment, 1, to_two, 1, NULL, &request), MX_NOT_INITIALIZED);
    EQUAL(mx_issend(one, &segment, 1, to_two, 1, NULL, &request), MX_NOT_INITIALIZED);
    EQUAL(mx_irecv(one, &segment, 1, 1, ALL, NULL, &request), MX_NOT_INITIALIZED);
    EQUAL(mx_cancel(one, &request, &result), MX_NOT_INITIALIZED);
    EQUAL(mx_test(one, &request, &status, &result), MX_NOT_INITIALIZED);
    EQUAL(mx_wait(one, &request, 10, &status, &result), MX_NOT_INITIALIZED);
    EQUAL(mx_test_any(one, 0, 0, &status, &result), MX_NOT_INITIALIZED);
    EQUAL(mx_wait_any(one, 10, 0, 0, &status, &result), MX_NOT_INITIALIZED);
    EQUAL(mx_ipeek(one, &request, &result), MX_NOT_INITIALIZED);
    EQUAL(mx_peek(one, 10, &request, &result), MX_NOT_INITIALIZED);
    EQUAL(mx_iprobe(one, 0, 0, &status, &result), MX_NOT_INITIALIZED);
    EQUAL(mx_probe(one, 10, 0, 0, &status, &result), MX_NOT_INITIALIZED);
    EQUAL(mx_ibuffered(one, &request, &result), MX_NOT_INITIALIZED);
    EQUAL(mx_buffered(one, &request, 10, &result), MX_NOT_INITIALIZED);
    EQUAL(mx_context(&request, &context), MX_NOT_INITIALIZED);
    EQUAL(mx_forget(one, &request), MX_NOT_INITIALIZED);
    EQUAL(mx_set_request_timeout(one, NULL, 10), MX_NOT_INITIALIZED);
    EQUAL(mx_get_info(NULL, MX_NIC_COUNT, NULL, 0, &number, sizeof number), MX_NOT_INITIALIZED);
    EQUAL(mx_hostname_to_nic_id("x:0", &nic_id), MX_NOT_INITIALIZED);
    EQUAL(mx_nic_id_to_hostname(1, memory), MX_NOT_INITIALIZED);
    EQUAL(mx_board_number_to_nic_id(0, &nic_id), MX_NOT_INITIALIZED);
    EQUAL(mx_nic_id_to_board_number(1, &number), MX_NOT_INITIALIZED);
    EQUAL(mx_connect(one, 1, 1, 1, 10, &address), MX_NOT_INITIALIZED);
    EQUAL(mx_iconnect(one, 1, 1, 1, 1, NULL, &request), MX_NOT_INITIALIZED);
    EQUAL(mx_disconnect(one, to_two), MX_NOT_INITIALIZED);
    EQUAL(mx_get_endpoint_addr(one, &address), MX_NOT_INITIALIZED);
    EQUAL(mx_decompose_endpoint_addr(to_two, &nic_id, &number), MX_NOT_INITIALIZED);
    EQUAL(mx_decompose_endpoint_addr2(to_two, &nic_id, &number, &number), MX_NOT_INITIALIZED);
    EQUAL(mx_set_endpoint_addr_context(to_two, NULL), MX_NOT_INITIALIZED);
    EQUAL(mx_get_endpoint_addr_context(to_two, &context), MX_NOT_INITIALIZED);
    EQUAL(mx_register_unexp_callback(one, NULL, NULL), MX_NOT_INITIALIZED);
    EQUAL(mx_register_unexp_handler(one, NULL, NULL), MX_NOT_INITIALIZED);
    EQUAL(mx_iput(one, memory, 1, to_two, 0, NULL, &request), MX_NOT_INITIALIZED);
    EQUAL(mx_iget(one, memory, 1, to_two, 0, NULL, &request), MX_NOT_INITIALIZED);
    EQUAL(mx_open_board(0, &board), MX_NOT_INITIALIZED);
    EQUAL(mx__get_mapper_state(0, &state), MX_NOT_INITIALIZED);
    MUST(mx_init());
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
#define CASE(name) {#name, case_##name}
    CASE(mx__init_api), CASE(mx_finalize), CASE(mx_set_error_handler), CASE(mx_open_endpoint),
    CASE(mx_close_endpoint), CASE(mx_register_unexp_handler), CASE(mx_wakeup), CASE(mx_disable_progression),
    CASE(mx_reenable_progression), CASE(mx_progress), CASE(mx_isend), CASE(mx_issend), CASE(mx_irecv),
    CASE(mx_cancel), CASE(mx_test), CASE(mx_wait), CASE(mx_test_any), CASE(mx_wait_any), CASE(mx_ipeek),
    CASE(mx_peek), CASE(mx_iprobe), CASE(mx_probe), CASE(mx_ibuffered), CASE(mx_buffered), CASE(mx_context),
    CASE(mx_forget), CASE(mx_set_request_timeout), CASE(mx_get_info), CASE(mx_hostname_to_nic_id),
    CASE(mx_nic_id_to_hostname), CASE(mx_board_number_to_nic_id), CASE(mx_nic_id_to_board_number), CASE(mx_connect),
    CASE(mx_iconnect), CASE(mx_disconnect), CASE(mx_get_endpoint_addr), CASE(mx_decompose_endpoint_addr),
    CASE(mx_decompose_endpoint_addr2), CASE(mx_set_endpoint_addr_context), CASE(mx_get_endpoint_addr_context),
    CASE(mx_strerror), CASE(mx_strstatus), CASE(mx_register_unexp_callback), CASE(mx_iput), CASE(mx_iget),
    CASE(mx_open_board), CASE(mx__get_mapper_state), CASE(mx__regcache_clean), CASE(uninitialized),
};

int main(void)
{
    mx_set_error_handler(MX_ERRORS_RETURN);
    MUST(mx_init());
    setlinebuf(stdout);
    for (size_t place = 0; place < sizeof cases / sizeof *cases; place++) {
        int before = failures;
        cases[place].run();
        printf("%s %s\n", failures == before ? "ok" : "failed", cases[place].name);
    }
    MUST(mx_finalize());
    return failures != 0;
}
