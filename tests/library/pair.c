/* Programs on two hosts. The first argument is the part:
 *
 *   serve COUNT         endpoint 3 returns COUNT messages to their senders, of whatever length
 *   talk HOST           sends messages of all kinds to such an endpoint, and checks what returns
 *   eleven HOST         does so with the eleven calls of NetPIPE
 *   receive COUNT       endpoint 3 receives COUNT messages of 1000 bytes, and prints the number of those that are right
 *   leave HOST COUNT    sends them, and exits without mx_finalize
 *   errors HOST         connects that fail
 *   lonely HOST         sends until the partner, which was killed, is abandoned
 *   near HOST           sends to a partner of the same host, which was killed
 *   fatal HOST          fails with the initial error handler
 */

#include "cases.h"

#define KEY 0x14072010
#define ENDPOINT 3

static const uint32_t lengths[] = {0, 1, 32, 33, 128, 129, 4096, 8192, 32768, 32769, 100000, 1000000};
#define LENGTHS (sizeof lengths / sizeof *lengths)
static unsigned char out[1000000], in[1000000];
static mx_endpoint_t endpoint;
static mx_endpoint_addr_t address;
static mx_status_t status;
static uint32_t result;

static void open_endpoint(uint32_t number)
{
    MUST(mx_init());
    MUST(mx_open_endpoint(0, number, KEY, NULL, 0, &endpoint));
}

static void connect_to(char *host)
{
    uint64_t nic_id;
    MUST(mx_hostname_to_nic_id(host, &nic_id));
    MUST(mx_connect(endpoint, nic_id, ENDPOINT, KEY, 10000, &address));
}

static void fill(unsigned seed, uint32_t length)
{
    for (uint32_t place = 0; place < length; place++)
        out[place] = (unsigned char)(place * 13 + place / 256 + seed);
}

static void serve(int count)
{
    open_endpoint(ENDPOINT);
    printf("ready\n");
    for (int number = 0; number < count; number++) {
        mx_request_t request;
        mx_segment_t segment;
        uint64_t nic_id;
        uint32_t other;
        do
            MUST(mx_probe(endpoint, MX_INFINITE, 0, 0, &status, &result));
        while (!result);
        segment = (mx_segment_t){in, status.msg_length};
        uint64_t info = status.match_info;
        MUST(mx_irecv(endpoint, &segment, 1, info, ALL, NULL, &request));
        EQUAL(finish(endpoint, &request, &status), 0);
        MUST(mx_decompose_endpoint_addr(status.source, &nic_id, &other));
        MUST(mx_connect(endpoint, nic_id, other, KEY, 10000, &address));
        EXPECT(!memcmp(&address, &status.source, sizeof address));
        request = send_to(endpoint, address, in, status.xfer_length, info);
        EQUAL(finish(endpoint, &request, NULL), 0);
    }
}

/* The number of bytes before the first wrong one. */
static uint32_t right_bytes(uint32_t length)
{
    uint32_t place = 0;
    while (place < length && in[place] == out[place])
        place++;
    return place;
}

static void exchange(uint32_t place, int posted_first, int synchronous)
{
    uint32_t length = lengths[place];
    mx_segment_t from = {out, length}, to = {in, sizeof in};
    mx_request_t send, receive = NULL;
    fill(place, length);
    memset(in, 0, length);
    if (posted_first)
        MUST(mx_irecv(endpoint, &to, 1, place, ALL, NULL, &receive));
    if (synchronous)
        MUST(mx_issend(endpoint, &from, 1, address, place, NULL, &send));
    else
        MUST(mx_isend(endpoint, &from, 1, address, place, NULL, &send));
    EQUAL(finish(endpoint, &send, &status), 0);
    EQUAL(status.xfer_length, length);
    if (!posted_first) {
        MUST(mx_probe(endpoint, 20000, place, ALL, &status, &result));
        EXPECT(result == 1 && status.msg_length == length);
        MUST(mx_irecv(endpoint, &to, 1, place, ALL, NULL, &receive));
    }
    EQUAL(finish(endpoint, &receive, &status), 0);
    EQUAL(status.xfer_length, length);
    EQUAL(right_bytes(length), length);
}

static void talk(char *host)
{
    open_endpoint(MX_ANY_ENDPOINT);
    connect_to(host);
    for (uint32_t place = 0; place < LENGTHS; place++)
        for (int way = 0; way < 3; way++)
            exchange(place, way != 1, way == 2);
}

static void eleven(char *host)
{
    mx_endpoint_addr_t own;
    uint64_t nic_id;
    uint32_t number;
    MUST(mx_init());
    MUST(mx_open_endpoint(0, 0, KEY, NULL, 0, &endpoint));
    MUST(mx_get_endpoint_addr(endpoint, &own));
    MUST(mx_decompose_endpoint_addr(own, &nic_id, &number));
    EQUAL(number, 0);
    connect_to(host);
    for (uint32_t place = 0; place < LENGTHS; place++) {
        mx_segment_t from = {out, lengths[place]}, to = {in, lengths[place]};
        mx_request_t send, receive;
        fill(place, lengths[place]);
        MUST(mx_irecv(endpoint, lengths[place] ? &to : NULL, lengths[place] > 0, 0, 0, NULL, &receive));
        MUST(mx_isend(endpoint, lengths[place] ? &from : NULL, lengths[place] > 0, address, 0, NULL, &send));
        for (result = 0; !result;)
            MUST(mx_test(endpoint, &send, &status, &result));
        do
            MUST(mx_wait(endpoint, &receive, MX_INFINITE, &status, &result));
        while (!result);
        EXPECT(status.code == MX_STATUS_SUCCESS && !memcmp(in, out, lengths[place]));
    }
}

static void receive(int count)
{
    int right = 0;
    open_endpoint(ENDPOINT);
    printf("ready\n");
    for (int number = 0; number < count; number++) {
        mx_request_t request = post(endpoint, in, 1000, (uint64_t)number, ALL);
        EQUAL(finish(endpoint, &request, &status), 0);
        fill((unsigned)number, 1000);
        right += !memcmp(in, out, 1000);
    }
    printf("%d\n", right);
}

static void leave(char *host, int count)
{
    open_endpoint(1);
    connect_to(host);
    for (int number = 0; number < count; number++) {
        fill((unsigned)number, 1000);
        mx_request_t request = send_to(endpoint, address, out, 1000, (uint64_t)number);
        EQUAL(finish(endpoint, &request, NULL), 0);
    }
    exit(7);
}

static void errors(char *host)
{
    uint64_t nic_id;
    open_endpoint(1);
    MUST(mx_hostname_to_nic_id(host, &nic_id));
    EQUAL(mx_connect(endpoint, nic_id, ENDPOINT, 1, 10000, &address), MX_BAD_CONNECTION_KEY);
    EQUAL(mx_connect(endpoint, nic_id, 9, KEY, 10000, &address), MX_CONNECTION_FAILED);
    EQUAL(mx_connect(endpoint, nic_id, 250, KEY, 10000, &address), MX_BAD_ENDPOINT_ID);
    EQUAL(mx_connect(endpoint, 0x020000ffffff, ENDPOINT, KEY, 30, &address), MX_TIMEOUT);
    EQUAL(mx_connect(endpoint, 0x020000fffffe, ENDPOINT, KEY, MX_INFINITE, &address), MX_NIC_NOT_FOUND);
    EQUAL(mx_connect(endpoint, 0x020000fffffd, ENDPOINT, KEY, MX_INFINITE, &address), MX_NIC_NOT_FOUND);
    EQUAL(mx_hostname_to_nic_id("nowhere:0", &nic_id), MX_HOST_NOT_FOUND);
    connect_to(host);
    mx_request_t send = send_to(endpoint, address, "bye", 4, 0), receive = post(endpoint, in, 4, 0, 0);
    EQUAL(finish(endpoint, &send, NULL), 0);
    EQUAL(finish(endpoint, &receive, NULL), 0);
}

static void lonely(char *host)
{
    open_endpoint(1);
    connect_to(host);
    printf("connected\n");
    getchar();
    MUST(mx_set_request_timeout(endpoint, NULL, 1000));
    mx_segment_t segment = {out, 100000};
    mx_request_t request;
    MUST(mx_isend(endpoint, &segment, 1, address, 1, NULL, &request));
    int code = finish(endpoint, &request, NULL);
    EXPECT(code == MX_STATUS_ENDPOINT_UNREACHABLE);
}

static void near(char *host)
{
    open_endpoint(1);
    connect_to(host);
    printf("connected\n");
    getchar();
    mx_segment_t segment = {out, 100000};
    mx_request_t request;
    double start = seconds();
    MUST(mx_isend(endpoint, &segment, 1, address, 1, NULL, &request));
    int code = finish(endpoint, &request, NULL);
    EXPECT(code == MX_STATUS_ENDPOINT_CLOSED || code == MX_STATUS_ENDPOINT_UNREACHABLE);
    EXPECT(seconds() - start < 10);
}

static void fatal(char *host)
{
    mx_set_error_handler(MX_ERRORS_ARE_FATAL);
    open_endpoint(1);
    connect_to(host);
    mx_connect(endpoint, own_nic(), 77, KEY, 1000, &address);
    printf("not reached\n");
}

int main(int count, char **words)
{
    if (count < 3)
        return 2;
    const char *part = words[1];
    setlinebuf(stdout);
    mx_set_error_handler(MX_ERRORS_RETURN);
    if (!strcmp(part, "serve"))
        serve(atoi(words[2]));
    else if (!strcmp(part, "talk"))
        talk(words[2]);
    else if (!strcmp(part, "eleven"))
        eleven(words[2]);
    else if (!strcmp(part, "receive"))
        receive(atoi(words[2]));
    else if (!strcmp(part, "leave"))
        leave(words[2], atoi(words[3]));
    else if (!strcmp(part, "errors"))
        errors(words[2]);
    else if (!strcmp(part, "lonely"))
        lonely(words[2]);
    else if (!strcmp(part, "near"))
        near(words[2]);
    else if (!strcmp(part, "fatal"))
        fatal(words[2]);
    MUST(mx_close_endpoint(endpoint));
    MUST(mx_finalize());
    return failures != 0;
}
