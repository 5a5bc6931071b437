/* A greeting from one host to another through the C interface of MX.
 *
 *   mxwire library build
 *   export PKG_CONFIG_PATH=$(mxwire library path --packages)
 *   cc $(pkg-config --cflags --libs mxwire-mx) examples/mx_hello.c -o hello
 *   mxwire run -i veth0 --name alpha -- ./hello alpha:0           on one host: wait for a greeting, and answer it
 *   mxwire run -i veth1 --name beta -- ./hello --to alpha:0       on another host
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "myriexpress.h"

#define KEY 0x12345678
#define ENDPOINT 3
#define GREETING 1
#define ANSWER 2

/* The initial error handler of MX ends the program with a message, so that no call here is checked. */

static void wait_for(mx_endpoint_t endpoint, mx_request_t request, mx_status_t *status)
{
    uint32_t done = 0;
    while (!done)
        mx_wait(endpoint, &request, MX_INFINITE, status, &done);
}

static void receive(mx_endpoint_t endpoint, uint64_t match_info, char *text, size_t room, mx_status_t *status)
{
    mx_segment_t segment = {text, (uint32_t)room};
    mx_request_t request;
    mx_irecv(endpoint, &segment, 1, match_info, MX_MATCH_MASK_NONE, NULL, &request);
    wait_for(endpoint, request, status);
}

static void send(mx_endpoint_t endpoint, mx_endpoint_addr_t to, uint64_t match_info, const char *text)
{
    mx_segment_t segment = {(void *)text, (uint32_t)strlen(text) + 1};
    mx_request_t request;
    mx_status_t status;
    mx_isend(endpoint, &segment, 1, to, match_info, NULL, &request);
    wait_for(endpoint, request, &status);
}

int main(int count, char **words)
{
    char own[MX_MAX_HOSTNAME_LEN], other[MX_MAX_HOSTNAME_LEN], text[256], greeting[256];
    mx_endpoint_t endpoint;
    mx_endpoint_addr_t address;
    mx_status_t status;
    uint64_t nic_id;
    int greets = count == 3 && !strcmp(words[1], "--to");
    if (count != 2 && !greets) {
        fprintf(stderr, "usage: %s OWN-NAME, or %s --to NAME\n", words[0], words[0]);
        return 2;
    }
    mx_init();
    mx_board_number_to_nic_id(0, &nic_id);
    mx_nic_id_to_hostname(nic_id, own);
    mx_open_endpoint(0, greets ? MX_ANY_ENDPOINT : ENDPOINT, KEY, NULL, 0, &endpoint);
    if (greets) {
        mx_hostname_to_nic_id(words[2], &nic_id);
        mx_connect(endpoint, nic_id, ENDPOINT, KEY, 10000, &address);
        snprintf(greeting, sizeof greeting, "hello from %s", own);
        send(endpoint, address, GREETING, greeting);
        receive(endpoint, ANSWER, text, sizeof text, &status);
        printf("%s\n", text);
    } else {
        uint32_t number;
        receive(endpoint, GREETING, text, sizeof text, &status);
        mx_decompose_endpoint_addr(status.source, &nic_id, &number);
        mx_nic_id_to_hostname(nic_id, other);
        printf("%s: %s\n", other, text);
        mx_connect(endpoint, nic_id, number, KEY, 10000, &address);
        snprintf(greeting, sizeof greeting, "%s answers %s", words[1], other);
        send(endpoint, address, ANSWER, greeting);
    }
    mx_close_endpoint(endpoint);
    mx_finalize();
    return 0;
}
