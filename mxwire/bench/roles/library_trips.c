/* Ping-pong of a user of libmyriexpress with the host beta, whose system calls and copies are counted by tracing.
 *
 *     library_trips SIZE COUNT WARM
 *
 * WARM round trips come first. A call with MARK as its third argument surrounds each counted one; it also has the place
 * and the length of the message. The compiler's command line has KEY, the key of both endpoints, and MARK. */

#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <myriexpress.h>

#define MUST(call) if ((call) != MX_SUCCESS) { fprintf(stderr, "%s\n", #call); return 1; }

static char *out, *in;
static mx_endpoint_t endpoint;
static mx_endpoint_addr_t partner;

static int trip(uint32_t size)
{
    mx_segment_t from = {out, size}, to = {in, size};
    mx_request_t sent, received;
    mx_status_t status;
    uint32_t result;
    MUST(mx_irecv(endpoint, &to, 1, 0, 0, NULL, &received));
    MUST(mx_isend(endpoint, &from, 1, partner, 0, NULL, &sent));
    MUST(mx_wait(endpoint, &sent, MX_INFINITE, &status, &result));
    MUST(mx_wait(endpoint, &received, MX_INFINITE, &status, &result));
    return 0;
}

int main(int argc, char **argv)
{
    uint32_t size = atoi(argv[1]), count = atoi(argv[2]), warm = atoi(argv[argc - 1]);
    uint64_t nic_id;
    out = calloc(1, size + 64);
    in = calloc(1, size + 64);
    MUST(mx_init());
    MUST(mx_open_endpoint(0, 0, KEY, NULL, 0, &endpoint));
    MUST(mx_hostname_to_nic_id("beta:0", &nic_id));
    MUST(mx_connect(endpoint, nic_id, 0, KEY, 10000, &partner));
    if (trip(0))
        return 1;
    for (uint32_t number = 0; number < warm + count; number++) {
        if (number >= warm)
            syscall(SYS_getppid, out, size, MARK);
        if (trip(size))
            return 1;
    }
    syscall(SYS_getppid, out, size, MARK);
    if (trip(0))
        return 1;
    mx_close_endpoint(endpoint);
    mx_finalize();
    return 0;
}
