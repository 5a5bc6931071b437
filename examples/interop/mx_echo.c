/* An implementation for mxwire interop --with on the C interface of MX: an echo, or a receiver only.
 *
 *   mxwire library build
 *   export PKG_CONFIG_PATH=$(mxwire library path --packages)
 *   cc $(pkg-config --cflags --libs mxwire-mx) examples/interop/mx_echo.c -o mx_echo
 *   sudo mxwire interop --with c=./mx_echo --case connecting --case sizes
 *
 * libmyriexpress.so itself reads MXWIRE_INTERFACE, MXWIRE_NAME and MXWIRE_DIALECT. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "myriexpress.h"

#define UNSUPPORTED 127

static void wait_for(mx_endpoint_t endpoint, mx_request_t request, mx_status_t *status)
{
    uint32_t done = 0;
    while (!done)
        mx_wait(endpoint, &request, MX_INFINITE, status, &done);
}

int main(void)
{
    const char *role = getenv("ROLE");
    uint32_t number = (uint32_t)atoi(getenv("ENDPOINT")), key = (uint32_t)strtoul(getenv("KEY"), NULL, 0), found;
    mx_endpoint_t endpoint;
    mx_endpoint_addr_t sender;
    mx_request_t request;
    mx_status_t status;
    uint64_t nic;
    if (!strcmp(role, "perf"))
        return UNSUPPORTED;
    mx_init();
    mx_set_error_handler(MX_ERRORS_RETURN);
    if (mx_open_endpoint(0, number, key, NULL, 0, &endpoint) != MX_SUCCESS)
        return 1;
    puts("ready");
    fflush(stdout);
    for (;;) {
        if (mx_probe(endpoint, MX_INFINITE, 0, 0, &status, &found) != MX_SUCCESS || !found)
            continue;
        mx_segment_t segment = {malloc(status.msg_length + 1), status.msg_length};
        mx_irecv(endpoint, &segment, 1, status.match_info, MX_MATCH_MASK_NONE, NULL, &request);
        wait_for(endpoint, request, &status);
        mx_decompose_endpoint_addr(status.source, &nic, &number);
        if (status.code == MX_STATUS_SUCCESS && !strcmp(role, "echo")
            && mx_connect(endpoint, nic, number, key, 10000, &sender) == MX_SUCCESS) {
            mx_isend(endpoint, &segment, 1, sender, status.match_info, NULL, &request);
            wait_for(endpoint, request, &status);
        }
        free(segment.segment_ptr);
    }
}
