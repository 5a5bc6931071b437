/* Calls of libfabric on one endpoint of the provider mx, which sends messages to itself: tags and ignore masks, data for
 * the completion queue, injects, selective completion, counters, multi-receives, peeks, claims, discards, cancels,
 * truncation, and messages that stay in the queue of MX. It prints the number of the first line that fails. */

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUIRE(condition)                                                                                             \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            printf("line %d: %s\n", __LINE__, #condition);                                                             \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

enum { LONGEST = 100000 };
static struct fid_ep *ep;
static struct fid_cq *tx, *rx;
static struct fid_cntr *sent;
static fi_addr_t self;
static char out[LONGEST], in[LONGEST];

static struct fi_cq_tagged_entry next(struct fid_cq *cq)
{
    struct fi_cq_tagged_entry entry;
    fi_addr_t source;
    ssize_t count = fi_cq_sreadfrom(cq, &entry, 1, &source, NULL, 10000);
    REQUIRE(count == 1);
    REQUIRE(cq == tx || entry.flags & FI_MULTI_RECV || source == self);
    return entry;
}

static struct fi_cq_err_entry failed(struct fid_cq *cq)
{
    struct fi_cq_tagged_entry entry;
    struct fi_cq_err_entry error = {0};
    ssize_t count = fi_cq_sread(cq, &entry, 1, NULL, 10000);
    REQUIRE(count == -FI_EAVAIL);
    REQUIRE(fi_cq_readerr(cq, &error, 0) == 1);
    return error;
}

static int empty(struct fid_cq *cq)
{
    struct fi_cq_tagged_entry entry;
    return fi_cq_read(cq, &entry, 1) == -FI_EAGAIN;
}

static void fill(size_t length, int seed)
{
    for (size_t place = 0; place < length; place++)
        out[place] = (char)(place * 7 + place / 251 + (size_t)seed);
    memset(in, 0, sizeof in);
}

static void lengths(void)
{
    static const size_t each[] = {0, 1, 16, 112, 240, 241, 4080, 4096, 20000, 32752, 32753, LONGEST};
    for (size_t place = 0; place < sizeof each / sizeof *each; place++)
        for (int late = 0; late < 2; late++) {
            fill(each[place], (int)place);
            if (!late)
                REQUIRE(!fi_trecv(ep, in, sizeof in, NULL, self, 0x700, 0xff, in));
            REQUIRE(!fi_tsenddata(ep, out, each[place], NULL, 77 + place, self, 0x742, out));
            if (late)
                REQUIRE(!fi_trecv(ep, in, sizeof in, NULL, FI_ADDR_UNSPEC, 0x700, 0xff, in));
            struct fi_cq_tagged_entry entry = next(rx);
            REQUIRE(entry.op_context == in && entry.len == each[place] && entry.tag == 0x742 && entry.data == 77 + place);
            REQUIRE(entry.flags & FI_REMOTE_CQ_DATA && entry.flags & FI_TAGGED && !memcmp(in, out, each[place]));
            REQUIRE(next(tx).op_context == out);
        }
}

static void tags(void)
{
    REQUIRE(fi_tsend(ep, out, 1, NULL, self, 0xffffffffffff0001, NULL) == -FI_EINVAL);
    REQUIRE(fi_tsend(ep, out, 1, NULL, 1000, 1, NULL) == -FI_EINVAL);
    REQUIRE(fi_tinject(ep, out, 4097, self, 1) == -FI_EMSGSIZE);
    for (uint64_t tag = 1; tag <= 3; tag++) {
        memset(out, (int)tag, 8);
        REQUIRE(!fi_tinject(ep, out, 8, self, tag << 40));
    }
    for (uint64_t tag = 3; tag >= 1; tag--) {
        REQUIRE(!fi_trecv(ep, in, 8, NULL, self, tag << 40, 0, NULL));
        REQUIRE(next(rx).tag == tag << 40 && in[7] == (char)tag);
    }
    REQUIRE(empty(tx) && fi_cntr_read(sent) >= 3);
}

static void truncation(void)
{
    static const size_t each[] = {100, 20000, LONGEST};
    for (int place = 0; place < 3; place++) {
        fill(each[place], place);
        REQUIRE(!fi_trecv(ep, in, 50, NULL, self, 5, 0, in));
        REQUIRE(!fi_tsend(ep, out, each[place], NULL, self, 5, NULL));
        struct fi_cq_err_entry error = failed(rx);
        REQUIRE(error.err == FI_ETRUNC && error.len == 50 && error.olen == each[place] - 50 && !memcmp(in, out, 50));
        REQUIRE(!in[50]);
        next(tx);
    }
}

static void cancels(void)
{
    REQUIRE(!fi_trecv(ep, in, 50, NULL, self, 5, 0, in));
    REQUIRE(!fi_cancel(&ep->fid, in));
    struct fi_cq_err_entry error = failed(rx);
    REQUIRE(error.err == FI_ECANCELED && error.op_context == in);
    REQUIRE(fi_cancel(&ep->fid, in) == -FI_ENOENT);
}

static void peeks(size_t length)
{
    struct fi_context first, second;
    struct iovec segment = {in, sizeof in};
    struct fi_msg_tagged peek = {&segment, NULL, 1, self, 9, 0, &first, 0}, all = peek;
    all.context = &second;
    REQUIRE(!fi_trecvmsg(ep, &peek, FI_PEEK));
    struct fi_cq_err_entry error = failed(rx);
    REQUIRE(error.err == FI_ENOMSG && error.op_context == &first);
    fill(length, 3);
    for (uint64_t data = 1; data <= 3; data++)
        REQUIRE(!fi_tsenddata(ep, out, length, NULL, data, self, 9, NULL));
    REQUIRE(!fi_trecvmsg(ep, &peek, FI_PEEK | FI_CLAIM));
    struct fi_cq_tagged_entry entry = next(rx);
    REQUIRE(entry.op_context == &first && entry.len == length && entry.data == 1 && entry.tag == 9);
    REQUIRE(!fi_trecvmsg(ep, &all, FI_PEEK | FI_DISCARD));
    REQUIRE(next(rx).data == 2);
    REQUIRE(!fi_trecvmsg(ep, &all, FI_PEEK));
    REQUIRE(next(rx).data == 3);
    REQUIRE(!fi_trecv(ep, in, sizeof in, NULL, self, 9, 0, NULL));
    REQUIRE(next(rx).data == 3 && !memcmp(in, out, length));
    memset(in, 0, sizeof in);
    REQUIRE(fi_trecvmsg(ep, &all, FI_CLAIM) == -FI_EINVAL);
    REQUIRE(!fi_trecvmsg(ep, &peek, FI_CLAIM));
    entry = next(rx);
    REQUIRE(entry.data == 1 && entry.op_context == &first && !memcmp(in, out, length));
    /* Within a host, sends may end only when they are received. */
    for (int left = 3; left; left--)
        next(tx);
    REQUIRE(empty(rx) && empty(tx));
}

static void multi_receive(void)
{
    size_t least = 1000;
    struct iovec segment = {in, 10000};
    struct fi_msg message = {&segment, NULL, 1, FI_ADDR_UNSPEC, in, 0};
    REQUIRE(!fi_setopt(&ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, sizeof least));
    fill(4000, 1);
    REQUIRE(!fi_send(ep, out, 4000, NULL, self, NULL));
    REQUIRE(!fi_recvmsg(ep, &message, FI_MULTI_RECV));
    REQUIRE(!fi_send(ep, out, 3000, NULL, self, NULL));
    struct fi_cq_tagged_entry entry = next(rx);
    REQUIRE(entry.buf == in && entry.len == 4000 && !(entry.flags & FI_MULTI_RECV) && entry.flags & FI_MSG);
    entry = next(rx);
    REQUIRE(entry.buf == in + 4000 && entry.len == 3000 && !memcmp(in + 4000, out, 3000));
    /* It does not fit: the memory is returned, and the message waits for another receive. */
    REQUIRE(!fi_send(ep, out, 4000, NULL, self, NULL));
    entry = next(rx);
    REQUIRE(entry.flags & FI_MULTI_RECV && !entry.len);
    REQUIRE(!fi_recvmsg(ep, &message, FI_MULTI_RECV));
    REQUIRE(next(rx).len == 4000);
    REQUIRE(!fi_send(ep, out, 5500, NULL, self, NULL));
    REQUIRE(next(rx).flags & FI_MULTI_RECV);
    for (int left = 4; left; left--)
        next(tx);
    REQUIRE(empty(rx) && empty(tx));
}

/* Many unexpected messages with few tags, received in another order. */
static void crowd(void)
{
    enum { COUNT = 60, LENGTH = 9000 };
    static char each[COUNT][LENGTH];
    for (int number = 0; number < COUNT; number++) {
        fill(LENGTH, number);
        memcpy(each[number], out, LENGTH);
        REQUIRE(!fi_tsenddata(ep, each[number], LENGTH, NULL, (uint64_t)number, self, (uint64_t)(number % 3), NULL));
    }
    for (int tag = 2; tag >= 0; tag--)
        for (int number = tag; number < COUNT; number += 3) {
            REQUIRE(!fi_trecv(ep, in, sizeof in, NULL, self, (uint64_t)tag, 0, NULL));
            REQUIRE(next(rx).data == (uint64_t)number && !memcmp(in, each[number], LENGTH));
        }
    for (int number = 0; number < COUNT; number++)
        next(tx);
}

int main(void)
{
    struct fi_info *hints = fi_allocinfo(), *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av *av;
    char name[16];
    size_t length = sizeof name;
    hints->fabric_attr->prov_name = strdup("mx");
    hints->caps = FI_RMA;
    REQUIRE(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info) == -FI_ENODATA);
    hints->caps = 0;
    REQUIRE(!fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info));
    REQUIRE(!fi_fabric(info->fabric_attr, &fabric, NULL) && !fi_domain(fabric, info, &domain, NULL));
    REQUIRE(!fi_endpoint(domain, info, &ep, NULL));
    struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_TAGGED, .size = 4, .wait_obj = FI_WAIT_UNSPEC};
    struct fi_av_attr av_attr = {.type = FI_AV_TABLE};
    struct fi_cntr_attr counter_attr = {.events = FI_CNTR_EVENTS_COMP};
    REQUIRE(!fi_cq_open(domain, &cq_attr, &tx, NULL) && !fi_cq_open(domain, &cq_attr, &rx, NULL));
    REQUIRE(!fi_av_open(domain, &av_attr, &av, NULL) && !fi_cntr_open(domain, &counter_attr, &sent, NULL));
    REQUIRE(!fi_ep_bind(ep, &tx->fid, FI_TRANSMIT) && !fi_ep_bind(ep, &rx->fid, FI_RECV));
    REQUIRE(!fi_ep_bind(ep, &av->fid, 0) && !fi_ep_bind(ep, &sent->fid, FI_SEND));
    REQUIRE(!fi_enable(ep) && !fi_getname(&ep->fid, name, &length) && length == 16);
    REQUIRE(fi_av_insert(av, name, 1, &self, 0, NULL) == 1);
    lengths();
    tags();
    truncation();
    cancels();
    peeks(100);
    peeks(20000);
    peeks(LONGEST);
    multi_receive();
    crowd();
    REQUIRE(fi_close(&domain->fid) == -FI_EBUSY);
    REQUIRE(!fi_close(&ep->fid) && !fi_close(&tx->fid) && !fi_close(&rx->fid) && !fi_close(&sent->fid));
    REQUIRE(!fi_close(&av->fid) && !fi_close(&domain->fid) && !fi_close(&fabric->fid));
    fi_freeinfo(info);
    fi_freeinfo(hints);
    puts("done");
    return 0;
}
