/* Messages of one process to itself, with marks by which a tracer counts their copies: SIZE, COUNT, MARK. */

#include "cases.h"

#include <sys/syscall.h>

#define KEY 7

static unsigned char out[100000], in[100000];

int main(int argc, char **argv)
{
    uint32_t size = atoi(argv[1]), count = atoi(argv[2]), result;
    long mark = strtol(argv[argc - 1], NULL, 16);
    mx_endpoint_t ends[2];
    mx_endpoint_addr_t own, target;
    uint64_t nic_id;
    uint32_t number;
    MUST(mx_init());
    for (int place = 0; place < 2; place++)
        MUST(mx_open_endpoint(0, place, KEY, NULL, 0, &ends[place]));
    MUST(mx_get_endpoint_addr(ends[1], &own));
    MUST(mx_decompose_endpoint_addr(own, &nic_id, &number));
    MUST(mx_connect(ends[0], nic_id, 1, KEY, 10000, &target));
    for (uint32_t trip = 0; trip < count + 1; trip++) {
        mx_segment_t from = {out, size}, to = {in, size};
        mx_request_t sent, received;
        mx_status_t status;
        if (trip)
            syscall(SYS_getppid, out, size, mark);
        MUST(mx_irecv(ends[1], &to, 1, 0, 0, NULL, &received));
        MUST(mx_isend(ends[0], &from, 1, target, 0, NULL, &sent));
        MUST(mx_wait(ends[0], &sent, MX_INFINITE, &status, &result));
        MUST(mx_wait(ends[1], &received, MX_INFINITE, &status, &result));
    }
    syscall(SYS_getppid, out, size, mark);
    return 0;
}
