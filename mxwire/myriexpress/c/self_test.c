/* Self-test of the library: endpoints of this process exchange messages of all kinds. It needs no interface. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mx_extensions.h"

#define LONGEST (1 << 20)

static void require(int condition, const char *what)
{
    if (!condition) {
        printf("%s\n", what);
        exit(1);
    }
}

static void succeed(mx_return_t code, const char *call)
{
    if (code != MX_SUCCESS) {
        printf("%s returns %d: %s\n", call, code, mx_strerror(code));
        exit(1);
    }
}
#define SUCCEED(call) succeed(call, #call)

int main(void)
{
    static const uint32_t lengths[] = {0, 1, 32, 33, 128, 129, 4096, 32768, 32769, LONGEST};
    static char sent[LONGEST], received[LONGEST];
    mx_endpoint_t alpha, beta;
    mx_endpoint_addr_t address;
    uint64_t nic_id;
    mx_set_error_handler(MX_ERRORS_RETURN);
    SUCCEED(mx_init());
    SUCCEED(mx_board_number_to_nic_id(0, &nic_id));
    SUCCEED(mx_open_endpoint(0, 1, 11, NULL, 0, &alpha));
    SUCCEED(mx_open_endpoint(0, 2, 22, NULL, 0, &beta));
    SUCCEED(mx_connect(alpha, nic_id, 2, 22, 1000, &address));
    for (size_t place = 0; place < sizeof sent; place++)
        sent[place] = (char)(place * 7 + place / 251);
    for (size_t place = 0; place < sizeof lengths / sizeof *lengths; place++) {
        mx_segment_t from = {sent, lengths[place]}, to = {received, sizeof received};
        mx_request_t send, receive;
        mx_status_t status;
        uint32_t result;
        memset(received, 0, sizeof received);
        SUCCEED(mx_irecv(beta, &to, 1, place, MX_MATCH_MASK_NONE, &to, &receive));
        SUCCEED(mx_isend(alpha, &from, 1, address, place, &from, &send));
        SUCCEED(mx_wait(beta, &receive, 5000, &status, &result));
        require(result && status.code == MX_STATUS_SUCCESS && !receive, "a receive does not end");
        require(status.xfer_length == lengths[place] && status.context == &to, "the status of a receive is wrong");
        require(!memcmp(sent, received, lengths[place]), "the data of a message is wrong");
        SUCCEED(mx_wait(alpha, &send, 5000, &status, &result));
        require(result && status.code == MX_STATUS_SUCCESS && !send, "a send does not end");
    }
    require(mx_close_endpoint((mx_endpoint_t)(uintptr_t)0x1234) == MX_BAD_ENDPOINT, "a wrong handle is not refused");
    SUCCEED(mx_close_endpoint(alpha));
    SUCCEED(mx_close_endpoint(beta));
    SUCCEED(mx_finalize());
    return 0;
}
