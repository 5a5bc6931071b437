/* Operations whose partner has acknowledged all that it was sent, and then dies. "partner SIGNAL": print the address of a
 * plain MX endpoint that lets a message wait for its bulk, answers nothing, and then raises a signal, or with 0 opens the
 * endpoint again. "survivor ADDRESS": start operations of every kind with it, and sleep in poll until each has failed. */

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "fabric_partner.h"

enum { TAG = 5, LAST = 99 };
static char out[LONGEST], in[4][LONGEST];

static void die(int number)
{
    mx_endpoint_addr_t address;
    mx_status_t status;
    mx_request_t request;
    uint64_t nic_id, envelope[5] = {2, 0, TAG, LONGEST, 7};
    uint32_t endpoint, done;
    mx_segment_t segment = {envelope, sizeof envelope};
    REQUIRE(mx_init() == MX_SUCCESS);
    REQUIRE(mx_open_endpoint(0, MX_ANY_ENDPOINT, PROVIDER_KEY, NULL, 0, &partner) == MX_SUCCESS);
    mx_get_endpoint_addr(partner, &address);
    mx_decompose_endpoint_addr(address, &nic_id, &endpoint);
    printf("%llx:%u\n", (unsigned long long)nic_id, endpoint);
    fflush(stdout);
    REQUIRE(mx_irecv(partner, NULL, 0, LAST, MX_MATCH_MASK_NONE, NULL, &request) == MX_SUCCESS);
    REQUIRE(mx_wait(partner, &request, 100000, &status, &done) == MX_SUCCESS && done);
    REQUIRE(mx_isend(partner, &segment, 1, status.source, MATCH(2), NULL, &request) == MX_SUCCESS);
    /* Until all is acknowledged. */
    REQUIRE(mx_wait(partner, &request, 100000, &status, &done) == MX_SUCCESS && done);
    for (int times = 0; times < 10; times++)
        mx_peek(partner, 100, &request, &done);
    if (number)
        raise(number);
    mx_close_endpoint(partner);
    REQUIRE(mx_open_endpoint(0, endpoint, PROVIDER_KEY, NULL, 0, &partner) == MX_SUCCESS);
    pause();
}

static void fails_in_time(struct fid_cq *cq)
{
    struct fi_cq_tagged_entry entry;
    struct fi_cq_err_entry error = {0};
    struct pollfd readable = {.events = POLLIN};
    struct fid *fid = &cq->fid;
    ssize_t count;
    REQUIRE(!fi_control(fid, FI_GETWAIT, &readable.fd));
    while ((count = fi_cq_read(cq, &entry, 1)) == -FI_EAGAIN)
        if (!fi_trywait(fabric, &fid, 1))
            REQUIRE(poll(&readable, 1, WAIT_MS) == 1);
    REQUIRE(count == -FI_EAVAIL && fi_cq_readerr(cq, &error, 0) == 1);
    REQUIRE(error.err == FI_ECONNREFUSED || error.err == FI_EHOSTUNREACH);
}

static void survive(const char *address)
{
    unsigned long long nic_id;
    uint32_t number;
    char name[ADDRESS];
    struct iovec segment = {out, 8};
    struct fi_msg_tagged delivered = {.msg_iov = &segment, .iov_count = 1, .tag = 1, .context = out};
    wait_object = FI_WAIT_FD;
    open_endpoint(NULL, FI_SEND);
    REQUIRE(sscanf(address, "%llx:%u", &nic_id, &number) == 2);
    memcpy(name, own, ADDRESS);
    memcpy(name, &nic_id, sizeof nic_id);
    memcpy(name + sizeof nic_id, &number, sizeof number);
    REQUIRE(fi_av_insert(av, name, 1, &other, 0, NULL) == 1);
    delivered.addr = other;
    REQUIRE(!fi_trecv(ep, in[0], LONGEST, NULL, other, TAG, 0, in));
    REQUIRE(!fi_write(ep, out, 8, NULL, other, 0, 1, NULL) && !fi_write(ep, out, LONGEST, NULL, other, 0, 1, NULL));
    REQUIRE(!fi_read(ep, in[1], 8, NULL, other, 0, 1, NULL) && !fi_read(ep, in[2], LONGEST, NULL, other, 0, 1, NULL));
    REQUIRE(!fi_tsend(ep, out, LONGEST, NULL, other, 1, NULL) && !fi_tsend(ep, out, LONGEST, NULL, other, UINT64_MAX, NULL));
    REQUIRE(!fi_tsendmsg(ep, &delivered, FI_DELIVERY_COMPLETE | FI_COMPLETION));
    REQUIRE(!fi_tinject(ep, NULL, 0, other, LAST));
    fails_in_time(rx);
    for (int left = 7; left; left--)
        fails_in_time(tx);
    REQUIRE(empty(tx) && empty(rx));
    close_endpoint();
    puts("done");
}

int main(int count, char **words)
{
    REQUIRE(count == 3);
    if (*words[1] == 's')
        survive(words[2]);
    else
        die(atoi(words[2]));
    return 0;
}
