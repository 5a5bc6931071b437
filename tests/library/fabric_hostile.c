/* A plain MX program sends hostile messages to an endpoint of the provider mx in the same process: random headers, match
 * information, lengths, keys and ranges, grants and replies for what was never sent, bulks without a grant. It is also the
 * partner of long messages and accesses, and answers them wrongly, or not at all. In between, the endpoint exchanges
 * honest messages and accesses with itself, which have to arrive unharmed. "SEED COUNT". */

#include "fabric_partner.h"

enum { REGION = 77, MEMORY = 50000, BORDER = 4096 };
static char memory[BORDER + MEMORY + BORDER], out[LONGEST], in[LONGEST];
static char honest; /* context of what has to succeed */
static uint64_t state;

static uint64_t random_number(void)
{
    return shuffle(&state);
}

/* A number near a limit, small, or random. */
static uint64_t any_number(void)
{
    static const uint64_t limits[] = {0, 1, 24, 32, 40, 48, 88, 0x7fff, 0x8000, MEMORY, 0x7fffffff, UINT32_MAX};
    uint64_t limit = limits[random_number() % (sizeof limits / sizeof *limits)];
    switch (random_number() % 4) {
    case 0:
        return limit + random_number() % 3 - 1;
    case 1:
        return random_number() % 64;
    case 2:
        return -limit;
    default:
        return random_number();
    }
}

static uint64_t any_match(void)
{
    uint64_t kind = random_number() % 10;
    if (kind < 8)
        return MATCH(kind) | (kind == 1 || kind > 5 ? random_number() & 0x7fff : 0);
    return kind == 8 ? UINT64_C(0xfe) << 56 | random_number() >> 8 : random_number() % 4;
}

/* The words of an access: flags, data, key, address, length, number, operation and type; of an envelope: flags, data, tag,
 * length, number. */
static void send_hostile(void)
{
    static uint64_t words[5000];
    uint64_t lengths[] = {0, 8, 15, 16, 17, 24, 32, 40, 40 + random_number() % 88, 56, 56 + random_number() % 200,
                          random_number() % sizeof words};
    for (size_t place = 0; place < 8; place++)
        words[place] = any_number();
    words[0] = random_number() % 8 ? UINT64_C(1) << random_number() % 6 : any_number();
    if (random_number() % 2)
        words[2] = REGION;
    if (random_number() % 4 == 0)
        words[3] = random_number() % MEMORY;
    uint32_t length = (uint32_t)lengths[random_number() % (sizeof lengths / sizeof *lengths)];
    if (random_number() % 4 == 0 && length >= 56)
        words[4] = length - 56;
    if (random_number() % 4 == 0) {
        words[0] = UINT64_C(16) | (random_number() & 5);
        words[6] = (random_number() % 20) | random_number() % 12 << 16;
        words[4] = length >= 56 ? (length - 56) / (1 + random_number() % 2) : 0;
    }
    if (random_number() % 4 == 0 && length >= 40)
        words[3] = length - 40;
    mx_segment_t segment = {words, length};
    mx_request_t request;
    uint32_t done;
    mx_status_t status;
    REQUIRE(mx_isend(partner, &segment, 1, target, any_match(), NULL, &request) == MX_SUCCESS);
    for (int polls = 0; polls < 100; polls++) {
        REQUIRE(mx_test(partner, &request, &status, &done) == MX_SUCCESS);
        if (done)
            return;
        empty(rx);
    }
    mx_forget(partner, &request);
}

/* Let the endpoint send something that has to be answered, and answer it with random numbers. */
static void answer_wrongly(void)
{
    static uint64_t words[LONGEST / 8];
    mx_segment_t segment = {words, sizeof words};
    mx_request_t request;
    mx_status_t status;
    uint32_t done = 0;
    uint64_t kind = random_number() % 3;
    ssize_t error = kind == 0   ? fi_tsenddata(ep, out, LONGEST, NULL, UINT64_MAX, other, 1, NULL)
                    : kind == 1 ? fi_write(ep, out, random_number() % LONGEST, NULL, other, 0, 1, NULL)
                                : fi_read(ep, in, random_number() % LONGEST, NULL, other, 0, 1, NULL);
    REQUIRE(!error || error == -FI_EAGAIN);
    REQUIRE(mx_irecv(partner, &segment, 1, 0, 0, NULL, &request) == MX_SUCCESS);
    for (int polls = 0; !done && polls < 1000; polls++) {
        REQUIRE(mx_test(partner, &request, &status, &done) == MX_SUCCESS);
        empty(tx);
    }
    if (!done) {
        mx_cancel(partner, &request, &done);
        return;
    }
    uint64_t number = words[kind == 0 ? 4 : 5], bulk = words[1];
    for (uint64_t answers = random_number() % 4; answers; answers--) {
        uint64_t answer[4] = {random_number() % 8 ? 0 : any_number(), random_number() % 8 ? number : any_number(),
                              random_number() % 2 ? any_number() : LONGEST, any_number()};
        uint64_t matches[] = {MATCH(3), MATCH(5), MATCH(6) | (bulk & 0x7fff)};
        uint64_t match = matches[random_number() % 3];
        send_raw(answer, match == MATCH(5) ? 24 : 32, match);
    }
}

/* Take what the wrongly answered operations end with. */
static void clear(struct fid_cq *cq)
{
    struct fi_cq_tagged_entry entry;
    struct fi_cq_err_entry error;
    for (ssize_t count = 1; count == 1 || count == -FI_EAVAIL;) {
        count = fi_cq_read(cq, &entry, 1);
        if (count == -FI_EAVAIL)
            REQUIRE(fi_cq_readerr(cq, &error, 0) == 1);
    }
}

/* Completions of the endpoint that hostile messages may cause: data of writes to its region. */
static struct fi_cq_tagged_entry expect(struct fid_cq *cq, uint64_t flags)
{
    struct fi_cq_tagged_entry entry;
    ssize_t count;
    struct fi_cq_err_entry error;
    do {
        count = fi_cq_sread(cq, &entry, 1, NULL, WAIT_MS);
        REQUIRE(count == 1 || (count == -FI_EAVAIL && fi_cq_readerr(cq, &error, 0) == 1 && error.op_context != &honest));
    } while (count != 1 || !(entry.flags & flags) || (flags != FI_TAGGED && entry.op_context != &honest));
    return entry;
}

static void exchange(size_t length, uint64_t tag)
{
    for (size_t place = 0; place < length; place++)
        out[place] = (char)random_number();
    REQUIRE(!fi_trecv(ep, in, sizeof in, NULL, self, tag, 0, in));
    REQUIRE(!fi_tsenddata(ep, out, length, NULL, tag, self, tag, &honest));
    struct fi_cq_tagged_entry entry = expect(rx, FI_TAGGED);
    REQUIRE(entry.len == length && entry.data == tag && entry.tag == tag && !memcmp(in, out, length));
    expect(tx, FI_SEND);
    REQUIRE(!fi_write(ep, out, length < MEMORY ? length : MEMORY, NULL, self, 0, REGION, &honest));
    expect(tx, FI_WRITE);
    REQUIRE(!fi_read(ep, in, MEMORY, NULL, self, 0, REGION, &honest));
    expect(tx, FI_READ);
}

int main(int count, char **words)
{
    struct fid_mr *region;
    REQUIRE(count == 3);
    state = strtoull(words[1], NULL, 0) * 2654435761u + 1;
    memset(memory, 0x5a, sizeof memory);
    open_endpoint(NULL, FI_SEND);
    REQUIRE(!fi_mr_reg(domain, memory + BORDER, MEMORY, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, REGION, 0, &region, NULL));
    open_partner();
    for (long left = strtol(words[2], NULL, 0); left; left--) {
        send_hostile();
        if (left % 8 == 0)
            answer_wrongly();
        clear(tx);
        clear(rx);
        if (left % 50 == 0)
            exchange(random_number() % LONGEST, 1000 + (uint64_t)left);
        forget_all();
    }
    for (int place = 0; place < BORDER; place++)
        REQUIRE(memory[place] == 0x5a && memory[BORDER + MEMORY + place] == 0x5a);
    mx_close_endpoint(partner);
    REQUIRE(!fi_close(&region->fid));
    close_endpoint();
    puts("done");
    return 0;
}
