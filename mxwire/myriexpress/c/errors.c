/* Error handlers, and the texts of return codes and status codes. */

#include <stdlib.h>
#include <string.h>

#include "internal.h"

static mx_return_t fatal(char *text, mx_return_t code)
{
    const char *fatal_errors = getenv("MX_ERRORS_ARE_FATAL");
    if (!fatal_errors)
        fatal_errors = getenv("OMX_FATAL_ERRORS");
    if (fatal_errors && !strcmp(fatal_errors, "0"))
        return code;
    fprintf(stderr, "MX: fatal error: %s\n", text);
    exit(-1);
}

static mx_return_t pass(char *text, mx_return_t code)
{
    (void)text;
    return code;
}

EXPORTED const mx_error_handler_t MX_ERRORS_ARE_FATAL = fatal;
EXPORTED const mx_error_handler_t MX_ERRORS_RETURN = pass;

static mx_error_handler_t handler = fatal;

EXPORTED mx_error_handler_t mx_set_error_handler(mx_error_handler_t chosen)
{
    return __atomic_exchange_n(&handler, chosen ? chosen : pass, __ATOMIC_ACQ_REL);
}

/* Pass an error to the handler of an endpoint, or to the global one. */
static mx_return_t report(struct mxw_endpoint *endpoint, const char *call, const char *reason, mx_return_t code)
{
    mx_error_handler_t chosen = endpoint && endpoint->error_handler ? endpoint->error_handler : handler;
    char text[MX_MAX_STR_LEN];
    snprintf(text, sizeof text, "%s: %s", call, reason);
    return chosen(text, code);
}

mx_return_t mxw_fail(struct mxw_endpoint *endpoint, const char *call, mx_return_t code)
{
    return code == MX_SUCCESS ? code : report(endpoint, call, mx_strerror(code), code);
}

mx_return_t mxw_fail_handle(const char *call)
{
    return mxw_fail(NULL, call, mxw_alive ? MX_BAD_ENDPOINT : MX_NOT_INITIALIZED);
}

/* Status codes by the numbers of mxwire's Status, which an error handler sees as return codes. */
static const struct {
    uint32_t number;
    mx_status_code_t code;
} codes[] = {
    {0, MX_STATUS_SUCCESS},       {30, MX_STATUS_TIMEOUT},     {95, MX_STATUS_TRUNCATED},
    {90, MX_STATUS_CANCELLED},    {33, MX_STATUS_ENDPOINT_CLOSED}, {92, MX_STATUS_ENDPOINT_UNREACHABLE},
    {36, MX_STATUS_ENDPOINT_UNREACHABLE}, {93, MX_STATUS_BAD_SESSION}, {34, MX_STATUS_BAD_KEY},
    {32, MX_STATUS_BAD_ENDPOINT}, {91, MX_STATUS_BAD_RDMAWIN}, {94, MX_STATUS_ABORTED},
    {15, MX_STATUS_NO_RESOURCES},
};

static mx_status_code_t code_of(uint32_t number)
{
    for (size_t place = 0; place < sizeof codes / sizeof *codes; place++)
        if (codes[place].number == number)
            return codes[place].code;
    return (mx_status_code_t)number;
}

/* The status code of a request that has ended, after the error handler has seen an error. */
mx_status_code_t mxw_status(struct mxw_endpoint *endpoint, const char *call, uint32_t status)
{
    if (!status)
        return MX_STATUS_SUCCESS;
    return code_of(report(endpoint, call, mx_strstatus(code_of(status)), (mx_return_t)status));
}

static const char *const errors[] = {
    "Success",
    "Internal error",
    "Failure",
    "The library is initialized already",
    "The library is not initialized",
    "No such device",
    "The engine of mxwire cannot be used",
    "No permission",
    "Unknown board number",
    "Bad endpoint",
    "Bad list of segments",
    "Bad memory of a segment",
    "Bad number of segments",
    "Bad request",
    "Match information outside of the mask",
    "Not enough resources",
    "Bad address",
    "Bad number of addresses",
    "Bad root",
    "Not completed",
    "The endpoint is in use",
    "Bad info key",
    "Bad info value",
    "Bad NIC id",
    "Bad list of parameters",
    "Bad parameter key",
    "Bad parameter value",
    "Bad arguments of a host name",
    "Host not found",
    "A request is pending",
    "Timeout",
    "No match",
    "The remote host has no endpoint of that number",
    "The remote endpoint is closed",
    "Bad connection key",
    "Bad length of an info value",
    "NIC not found",
    "Bad version of the kernel interface",
    "Bad version of the library interface",
    "The interface is gone",
    "This request cannot be cancelled",
    "An endpoint cannot be closed in the unexpected handler",
    "The mask does not contain the context id",
    "Not supported with a context id",
};

static const char *const statuses[] = {
    "Success",
    "Pending",
    "Buffered",
    "Rejected",
    "Timeout",
    "Truncated",
    "Cancelled",
    "Remote endpoint is unknown",
    "Remote endpoint is closed",
    "Remote endpoint is unreachable",
    "Bad session",
    "Bad connection key",
    "Bad endpoint id",
    "Bad RDMA window",
    "Aborted",
    "Event queue is full",
    "Not enough resources",
};

static const char *text_of(const char *const *texts, size_t count, unsigned number, const char *unknown)
{
    return number < count ? texts[number] : unknown;
}

EXPORTED const char *mx_strerror(mx_return_t code)
{
    return text_of(errors, sizeof errors / sizeof *errors, (unsigned)code, "Unknown return code");
}

EXPORTED const char *mx_strstatus(mx_status_code_t code)
{
    return text_of(statuses, sizeof statuses / sizeof *statuses, (unsigned)code, "Unknown status");
}
