/* Data symbols of the library, which a program without position-independent code copies. */

#include <string.h>
#include "myriexpress.h"
static mx_return_t call(mx_error_handler_t handler) { return handler((char *)"text", MX_BUSY); }
mx_return_t (*test)(mx_endpoint_t, mx_request_t *, mx_status_t *, uint32_t *) = &mx_test;

int main(void)
{
    if (mx_set_error_handler(MX_ERRORS_RETURN) != MX_ERRORS_ARE_FATAL)
        return 1;
    if (mx_set_error_handler(MX_ERRORS_ARE_FATAL) != MX_ERRORS_RETURN || !test)
        return 2;
    return call(MX_ERRORS_RETURN) == MX_BUSY ? 0 : 3;
}
