/* Calls of libfabric on one endpoint of the provider mx, which sends messages to itself: tags and ignore masks, data for
 * the completion queue, injects, selective completion, counters, multi-receives, peeks, claims, discards, cancels,
 * truncation, and messages that stay in the queue of MX. */

#include "fabric_endpoint.h"

static char out[LONGEST], in[LONGEST];

static void fill(size_t length, int seed)
{
    for (size_t place = 0; place < length; place++)
        out[place] = (char)(place * 7 + place / 251 + (size_t)seed);
    memset(in, 0, sizeof in);
}

static void lengths(void)
{
    static const size_t each[] = {0, 1, 88, 89, 128, 129, 216, 217, 4096, 4097, 20000, 32768, 32769, LONGEST};
    /* That fit the match information of MX with their tag, or not. */
    static const uint64_t data[] = {77, UINT64_C(1) << 31, UINT64_MAX};
    for (size_t place = 0; place < sizeof each / sizeof *each; place++)
        for (int turn = 0; turn < 6; turn++) {
            fill(each[place], (int)place);
            if (turn % 2)
                REQUIRE(!fi_trecv(ep, in, sizeof in, NULL, self, 0x700, 0xff, in));
            REQUIRE(!fi_tsenddata(ep, out, each[place], NULL, data[turn / 2], self, 0x742, out));
            if (turn % 2 == 0)
                REQUIRE(!fi_trecv(ep, in, sizeof in, NULL, FI_ADDR_UNSPEC, 0x700, 0xff, in));
            struct fi_cq_tagged_entry entry = next(rx);
            REQUIRE(entry.op_context == in && entry.len == each[place] && entry.tag == 0x742);
            REQUIRE(entry.data == data[turn / 2]);
            REQUIRE(entry.flags & FI_REMOTE_CQ_DATA && entry.flags & FI_TAGGED && !memcmp(in, out, each[place]));
            REQUIRE(next(tx).op_context == out);
        }
}

/* An injected message may be overwritten at once. */
static int injected(ssize_t result, char *kept, size_t length)
{
    memcpy(kept, out, length);
    memset(out, '?', length);
    return !result;
}

/* Any tag, with any data or none, untagged data, and injects of each. */
static void match_information(void)
{
    static char kept[4096];
    static const uint64_t each[] = {0, 1, 0xff, 0x100, 0xfffffff5, UINT64_C(1) << 40, UINT64_C(0xfeffffff) << 24,
                                    UINT64_C(0xfe) << 56, UINT64_C(0xff) << 56, UINT64_C(0x0102030405060708), UINT64_MAX};
    enum { COUNT = sizeof each / sizeof *each };
    for (int tag = 0; tag < COUNT; tag++)
        for (int data = -1; data < COUNT; data++)
            for (size_t length = 8; length <= 4096; length *= 16) {
                fill(length, tag + data);
                REQUIRE(!fi_trecv(ep, in, sizeof in, NULL, self, each[tag], 0, NULL));
                REQUIRE(injected(data < 0 ? fi_tinject(ep, out, length, self, each[tag])
                                          : fi_tinjectdata(ep, out, length, each[data], self, each[tag]),
                                 kept, length));
                struct fi_cq_tagged_entry entry = next(rx);
                REQUIRE(entry.tag == each[tag] && entry.len == length && !memcmp(in, kept, length));
                REQUIRE(entry.data == (data < 0 ? 0 : each[data]) && !(entry.flags & FI_REMOTE_CQ_DATA) == (data < 0));
                if (tag)
                    continue;
                REQUIRE(!fi_recv(ep, in, sizeof in, NULL, self, NULL));
                REQUIRE(!(data < 0 ? fi_inject(ep, out, length, self) : fi_injectdata(ep, out, length, each[data], self)));
                entry = next(rx);
                REQUIRE(entry.flags & FI_MSG && entry.len == length && entry.data == (data < 0 ? 0 : each[data]));
            }
}

static void tags(void)
{
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

/* An address that was inserted again, for which nothing has connected: messages to both places stay in order. */
static void order(void)
{
    fi_addr_t again;
    REQUIRE(fi_av_insert(av, own, 1, &again, 0, NULL) == 1 && again != self);
    for (char turn = 0; turn < 2; turn++)
        REQUIRE(!fi_tinject(ep, &turn, 1, turn ? self : again, 9));
    for (char turn = 0; turn < 2; turn++) {
        REQUIRE(!fi_trecv(ep, in, 1, NULL, FI_ADDR_UNSPEC, 9, 0, in));
        REQUIRE(next(rx).len == 1 && in[0] == turn);
    }
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

static fi_addr_t source_of(void)
{
    struct fi_cq_tagged_entry entry;
    fi_addr_t source = 0;
    REQUIRE(!fi_trecv(ep, in, 1, NULL, FI_ADDR_UNSPEC, 5, 0, NULL));
    REQUIRE(fi_cq_sreadfrom(rx, &entry, 1, &source, NULL, WAIT_MS) == 1);
    return source;
}

/* The source of a message is the first place that has its address when it is received. */
static void addresses(void)
{
    struct {
        uint64_t nic_id;
        uint32_t number, key;
    } other;
    fi_addr_t place, again;
    memcpy(&other, own, sizeof other);
    for (uint32_t number = 0; number < 2000; number++) {
        other.nic_id += number % 3 == 0;
        other.number = number % 3;
        REQUIRE(fi_av_insert(av, &other, 1, &place, 0, NULL) == 1);
    }
    REQUIRE(fi_av_insert(av, own, 1, &again, 0, NULL) == 1);
    fi_addr_t partners[] = {self, place, again};
    for (int turn = 0; turn < 4; turn++)
        REQUIRE(!fi_tinject(ep, out, 1, again, 5));
    REQUIRE(source_of() == self);
    REQUIRE(!fi_av_remove(av, &self, 1, 0) && fi_av_remove(av, &self, 1, 0) == -FI_EINVAL);
    REQUIRE(fi_tinject(ep, out, 1, self, 5) == -FI_EINVAL && source_of() != partners[0]);
    REQUIRE(!fi_av_remove(av, partners + 1, 2, 0) && source_of() == partners[0] + 1);
    self = partners[0] + 1;
    REQUIRE(!fi_av_remove(av, &self, 1, 0) && source_of() == FI_ADDR_NOTAVAIL);
    REQUIRE(fi_av_insert(av, own, 1, &self, 0, NULL) == 1 && !fi_tinject(ep, out, 1, self, 5) && source_of() == self);
}

/* Many unexpected messages with few tags, received in another order; short ones with an envelope, if so. */
static void crowd(size_t length, uint64_t data)
{
    enum { COUNT = 60, LENGTH = 9000 };
    static char each[COUNT][LENGTH];
    for (int number = 0; number < COUNT; number++) {
        fill(length, number);
        memcpy(each[number], out, length);
        REQUIRE(!fi_tsenddata(ep, each[number], length, NULL, data + (uint64_t)number, self, (uint64_t)(number % 3), NULL));
    }
    for (int tag = 2; tag >= 0; tag--)
        for (int number = tag; number < COUNT; number += 3) {
            REQUIRE(!fi_trecv(ep, in, sizeof in, NULL, self, (uint64_t)tag, 0, NULL));
            REQUIRE(next(rx).data == data + (uint64_t)number && !memcmp(in, each[number], length));
        }
    for (int number = 0; number < COUNT; number++)
        next(tx);
}

static void send_delivered(size_t length, uint64_t tag)
{
    struct iovec segment = {out, length};
    struct fi_msg_tagged message = {.msg_iov = &segment, .iov_count = 1, .addr = self, .tag = tag, .context = out};
    REQUIRE(!fi_tsendmsg(ep, &message, FI_DELIVERY_COMPLETE | FI_COMPLETION));
}

/* Delivery is complete when the receive is, whatever the tag and however the message is sent; also if more wait than have
 * regions, and the last is received first. */
static void delivery(void)
{
    static const uint64_t each[] = {7, UINT64_C(0xfe) << 56, UINT64_MAX};
    static const size_t lengths[] = {0, 3, 80, 4000, LONGEST};
    for (int place = 0; place < 15; place++) {
        size_t length = lengths[place / 3];
        fill(length, place);
        for (int posted = 0; posted < 2; posted++) {
            memset(in, 0, sizeof in);
            if (!posted)
                send_delivered(length, each[place % 3]);
            REQUIRE(posted || empty(tx));
            REQUIRE(!fi_trecv(ep, in, LONGEST, NULL, FI_ADDR_UNSPEC, each[place % 3], 0, in));
            if (posted)
                send_delivered(length, each[place % 3]);
            REQUIRE(next(rx).len == length && !memcmp(in, out, length));
            next(tx);
        }
    }
    for (uint64_t tag = 0; tag < 200; tag++)
        send_delivered(5, tag);
    for (uint64_t tag = 200; tag--;) {
        REQUIRE(!fi_trecv(ep, in, LONGEST, NULL, FI_ADDR_UNSPEC, tag, 0, in));
        REQUIRE(next(rx).len == 5);
        next(tx);
    }
}

int main(void)
{
    struct fi_info *impossible = fi_allocinfo(), *found;
    impossible->fabric_attr->prov_name = strdup("mx");
    impossible->caps = FI_MULTICAST;
    REQUIRE(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, impossible, &found) == -FI_ENODATA);
    fi_freeinfo(impossible);
    open_endpoint(NULL, FI_SEND);
    lengths();
    match_information();
    tags();
    order();
    truncation();
    cancels();
    peeks(100);
    peeks(20000);
    peeks(LONGEST);
    multi_receive();
    crowd(9000, 0);
    crowd(50, UINT64_C(1) << 60);
    crowd(0, UINT64_C(1) << 60);
    delivery();
    addresses();
    close_endpoint();
    puts("done");
    return 0;
}
