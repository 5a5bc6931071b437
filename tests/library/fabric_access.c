/* Reads and writes of remote memory. Without arguments: all calls on one endpoint, and refused accesses. "target": print
 * address and key of a region, then make no call until the standard input ends. "initiator ADDRESS KEY": access it. */

#include <unistd.h>

#include "fabric_endpoint.h"

enum { MEMORY = 3000000, KEY = 77 };
static char out[MEMORY], in[MEMORY], memory[MEMORY];
static const size_t lengths[] = {0, 1, 8, 200, 208, 209, 4000, 4096, 20000, 32712, 32713, LONGEST, MEMORY - 1000};
enum { LENGTHS = sizeof lengths / sizeof *lengths };

static void fill(size_t length, int seed)
{
    for (size_t place = 0; place < length; place++)
        out[place] = (char)(place * 7 + place / 251 + (size_t)seed);
    memset(in, 0, sizeof in);
}

static void succeeds(uint64_t kind, void *context)
{
    struct fi_cq_tagged_entry entry = next(tx);
    REQUIRE(entry.op_context == context && entry.flags == (FI_RMA | kind));
}

static void fails(int error)
{
    struct fi_cq_err_entry entry = failed(tx);
    REQUIRE(entry.err == error && entry.flags & FI_RMA);
}

/* Write and read each length at a partner. */
static void write_and_read(fi_addr_t partner, uint64_t base, uint64_t key)
{
    for (size_t place = 0; place < LENGTHS; place++) {
        size_t length = lengths[place], offset = place * 7;
        fill(length, (int)place);
        REQUIRE(!fi_write(ep, out, length, NULL, partner, base + offset, key, out));
        succeeds(FI_WRITE, out);
        REQUIRE(!fi_read(ep, in, length, NULL, partner, base + offset, key, in));
        succeeds(FI_READ, in);
        REQUIRE(!memcmp(in, out, length) && !in[length]);
    }
}

static void refused(fi_addr_t partner, uint64_t base, uint64_t key)
{
    static const uint64_t outside[][2] = {{MEMORY, 1}, {MEMORY - 7, 8}, {UINT64_MAX, 1}, {UINT64_MAX - 3, 8}, {0, MEMORY + 1}};
    static char longer[MEMORY + 1];
    for (size_t place = 0; place < sizeof outside / sizeof *outside; place++) {
        REQUIRE(!fi_write(ep, longer, outside[place][1], NULL, partner, base + outside[place][0], key, NULL));
        fails(FI_EACCES);
        REQUIRE(!fi_read(ep, longer, outside[place][1], NULL, partner, base + outside[place][0], key, NULL));
        fails(FI_EACCES);
    }
    REQUIRE(!fi_write(ep, out, LONGEST, NULL, partner, base, key + 1, NULL));
    fails(FI_EACCES);
    REQUIRE(!fi_inject_write(ep, out, 8, partner, base, key + 1));
    fails(FI_EACCES);
    REQUIRE(!fi_write(ep, out, 0, NULL, partner, base + MEMORY, key, NULL));
    succeeds(FI_WRITE, NULL);
}

static void segments(uint64_t key)
{
    struct iovec local[2] = {{out, 100}, {out + 50000, 50000}}, back = {in, 50100};
    struct fi_rma_iov remote = {10, 50100, key}, wrong = {10, 50099, key};
    struct fi_msg_rma message = {local, NULL, 2, self, &remote, 1, out, 5};
    fill(LONGEST, 9);
    REQUIRE(!fi_writemsg(ep, &message, FI_DELIVERY_COMPLETE | FI_COMPLETION | FI_REMOTE_CQ_DATA));
    succeeds(FI_WRITE, out);
    struct fi_cq_tagged_entry entry = next(rx);
    REQUIRE(entry.data == 5 && entry.flags == (FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA) && entry.len == 50100);
    message.rma_iov = &wrong;
    REQUIRE(fi_writemsg(ep, &message, 0) == -FI_EINVAL);
    message.rma_iov = &remote;
    message.msg_iov = &back;
    message.iov_count = 1;
    REQUIRE(fi_readmsg(ep, &message, FI_FENCE) == -FI_EOPNOTSUPP);
    REQUIRE(!fi_readmsg(ep, &message, FI_COMPLETION));
    succeeds(FI_READ, out);
    REQUIRE(!memcmp(in, out, 100) && !memcmp(in + 100, out + 50000, 50000));
    memset(in, 0, sizeof in);
    struct iovec parts[3] = {{in + 1, 1}, {in + 3, 40000}, {in + 60000, 10099}};
    REQUIRE(!fi_readv(ep, parts, NULL, 3, self, 10, key, in));
    succeeds(FI_READ, in);
    REQUIRE(in[1] == out[0] && !in[2] && !memcmp(in + 3, out + 1, 99) && !memcmp(in + 60000, out + 50000 + 39901, 10099));
    REQUIRE(!fi_writev(ep, parts, NULL, 2, self, 5, key, in));
    succeeds(FI_WRITE, in);
    REQUIRE(memory[5] == in[1] && !memcmp(memory + 6, in + 3, 40000));
}

static void data_and_counters(struct fid_mr *region, uint64_t key)
{
    struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP};
    struct fid_cntr *writes;
    uint64_t before = fi_cntr_read(sent);
    REQUIRE(!fi_cntr_open(domain, &attr, &writes, NULL));
    REQUIRE(!fi_mr_bind(region, &writes->fid, FI_REMOTE_WRITE) && !fi_mr_enable(region));
    REQUIRE(!fi_inject_write(ep, "abc", 3, self, 100, key) && !fi_inject_writedata(ep, "def", 3, 42, self, 103, key));
    REQUIRE(next(rx).data == 42 && !fi_cntr_wait(writes, 2, WAIT_MS) && !fi_cntr_wait(sent, before + 2, WAIT_MS));
    REQUIRE(!memcmp(memory + 100, "abcdef", 6) && empty(tx));
    REQUIRE(!fi_writedata(ep, out, LONGEST, NULL, 43, self, 0, key, out));
    succeeds(FI_WRITE, out);
    REQUIRE(next(rx).data == 43 && fi_cntr_read(writes) == 3 && fi_close(&writes->fid) == -FI_EBUSY);
    REQUIRE(fi_inject_write(ep, out, 4097, self, 0, key) == -FI_EMSGSIZE);
    REQUIRE(!fi_close(&region->fid) && !fi_close(&writes->fid));
}

/* Rights, keys, and a region of two segments. */
static void regions(void)
{
    struct fid_mr *region, *second;
    struct iovec halves[2] = {{memory + 1000, 50}, {memory, 1000}};
    REQUIRE(!fi_mr_reg(domain, memory, MEMORY, FI_REMOTE_READ, 0, 5, 0, &region, NULL) && fi_mr_key(region) == 5);
    REQUIRE(fi_mr_reg(domain, memory, MEMORY, FI_REMOTE_READ, 0, 5, 0, &second, NULL) == -FI_ENOKEY);
    REQUIRE(!fi_mr_regv(domain, halves, 2, FI_REMOTE_WRITE, 0, 5 + 1024, 0, &second, NULL));
    REQUIRE(!fi_write(ep, out, 8, NULL, self, 0, 5, NULL));
    fails(FI_EACCES);
    REQUIRE(!fi_read(ep, in, 8, NULL, self, 0, 5 + 1024, NULL));
    fails(FI_EACCES);
    fill(60, 4);
    REQUIRE(!fi_write(ep, out, 60, NULL, self, 40, 5 + 1024, NULL));
    succeeds(FI_WRITE, NULL);
    REQUIRE(!memcmp(memory + 1040, out, 10) && !memcmp(memory, out + 10, 50));
    REQUIRE(!fi_close(&region->fid));
    REQUIRE(!fi_read(ep, in, 8, NULL, self, 0, 5, NULL));
    fails(FI_EACCES);
    REQUIRE(!fi_close(&second->fid));
}

/* Outstanding accesses in large numbers. */
static void many(uint64_t key)
{
    enum { COUNT = 2000, LENGTH = 64 };
    fill(COUNT * LENGTH, 1);
    for (size_t number = 0; number < COUNT; number++)
        REQUIRE(!fi_write(ep, out + number * LENGTH, LENGTH, NULL, self, number * LENGTH, key, NULL));
    for (size_t number = 0; number < COUNT; number++)
        succeeds(FI_WRITE, NULL);
    for (size_t number = COUNT; number--;)
        REQUIRE(!fi_read(ep, in + number * LENGTH, LENGTH, NULL, self, number * LENGTH, key, NULL));
    for (size_t number = 0; number < COUNT; number++)
        succeeds(FI_READ, NULL);
    REQUIRE(!memcmp(in, out, COUNT * LENGTH));
}

static void alone(void)
{
    struct fid_mr *region;
    uint64_t rights = FI_REMOTE_READ | FI_REMOTE_WRITE;
    open_endpoint(NULL, FI_WRITE | FI_READ);
    REQUIRE(!fi_mr_reg(domain, memory, MEMORY, rights, 0, KEY, 0, &region, NULL) && fi_mr_key(region) == KEY);
    write_and_read(self, 0, KEY);
    refused(self, 0, KEY);
    segments(KEY);
    many(KEY);
    data_and_counters(region, KEY);
    regions();
    close_endpoint();
    struct fi_info *hints = fi_allocinfo();
    hints->domain_attr->mr_mode = FI_MR_BASIC;
    hints->caps = FI_RMA;
    open_endpoint(hints, FI_WRITE);
    REQUIRE(info->domain_attr->mr_mode == FI_MR_BASIC);
    REQUIRE(!fi_mr_reg(domain, memory, MEMORY, rights, 0, KEY, 0, &region, NULL));
    write_and_read(self, (uintptr_t)memory, fi_mr_key(region));
    refused(self, (uintptr_t)memory, fi_mr_key(region));
    REQUIRE(!fi_close(&region->fid));
    close_endpoint();
}

static void be_target(void)
{
    struct fid_mr *region;
    open_endpoint(NULL, FI_REMOTE_WRITE);
    REQUIRE(info->domain_attr->data_progress == FI_PROGRESS_AUTO);
    REQUIRE(!fi_mr_reg(domain, memory, MEMORY, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY, 0, &region, NULL));
    for (int place = 0; place < ADDRESS; place++)
        printf("%02x", (unsigned char)own[place]);
    printf(" %d\n", KEY);
    fflush(stdout);
    while (read(STDIN_FILENO, in, sizeof in) > 0) {
    }
    REQUIRE(fi_cntr_read(sent) == LENGTHS + 1 && !fi_close(&region->fid));
    close_endpoint();
}

static void be_initiator(const char *address, uint64_t key)
{
    char name[ADDRESS];
    fi_addr_t partner;
    open_endpoint(NULL, FI_WRITE);
    for (int place = 0; place < ADDRESS; place++)
        REQUIRE(sscanf(address + 2 * place, "%2hhx", (unsigned char *)&name[place]) == 1);
    REQUIRE(fi_av_insert(av, name, 1, &partner, 0, NULL) == 1);
    write_and_read(partner, 0, key);
    refused(partner, 0, key);
    uint64_t one = 1, before = 0;
    for (int times = 0; times < 100; times++) {
        REQUIRE(!fi_fetch_atomic(ep, &one, 1, NULL, &before, NULL, partner, 0, key, FI_UINT64, FI_SUM, NULL));
        REQUIRE(next(tx).flags == (FI_ATOMIC | FI_READ));
    }
    REQUIRE(!fi_read(ep, in, sizeof one, NULL, partner, 0, key, NULL));
    succeeds(FI_READ, NULL);
    REQUIRE(!memcmp(in, &(uint64_t){before + 1}, sizeof one));
    close_endpoint();
}

int main(int count, char **words)
{
    if (count > 3)
        be_initiator(words[2], strtoull(words[3], NULL, 0));
    else if (count > 1)
        be_target();
    else
        alone();
    puts("done");
    return 0;
}
