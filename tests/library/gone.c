/* A program whose interface disappears while it waits. */

#include <stdio.h>
#include "myriexpress.h"

int main(void)
{
    mx_endpoint_t endpoint;
    mx_request_t request;
    mx_status_t status;
    uint32_t result = 0;
    mx_set_error_handler(MX_ERRORS_RETURN);
    if (mx_init() || mx_open_endpoint(0, 1, 1, NULL, 0, &endpoint))
        return 1;
    mx_irecv(endpoint, NULL, 0, 1, MX_MATCH_MASK_NONE, NULL, &request);
    puts("ready");
    fflush(stdout);
    mx_wait(endpoint, &request, 30000, &status, &result);
    return !(result && status.code == MX_STATUS_CANCELLED &&
             mx_irecv(endpoint, NULL, 0, 1, MX_MATCH_MASK_NONE, NULL, &request) == MX_NIC_DEAD &&
             mx_close_endpoint(endpoint) == MX_SUCCESS && mx_finalize() == MX_SUCCESS);
}
