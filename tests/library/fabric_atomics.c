/* Atomic operations of the provider mx on memory of its own endpoint: each operation on each type, against C's own
 * arithmetic on that type; several segments, and what is refused. */

#include "fabric_endpoint.h"

enum { KEY = 77, COUNT = 3 };
static char memory[4096] __attribute__((aligned(8))), results[64], operands[64], comparands[64];
static struct fid_mr *region;

#define LOGICAL(type)                                                                                                  \
    case FI_MIN:                                                                                                       \
        return b < a ? b : a;                                                                                          \
    case FI_MAX:                                                                                                       \
        return b > a ? b : a;                                                                                          \
    case FI_LOR:                                                                                                       \
        return a || b;                                                                                                 \
    case FI_LAND:                                                                                                      \
        return a && b;                                                                                                 \
    case FI_LXOR:                                                                                                      \
        return !a != !b;                                                                                               \
    case FI_ATOMIC_READ:                                                                                               \
        return a;                                                                                                      \
    case FI_ATOMIC_WRITE:                                                                                              \
        return b;                                                                                                      \
    case FI_CSWAP:                                                                                                     \
        return c == a ? b : a;                                                                                         \
    case FI_CSWAP_NE:                                                                                                  \
        return c != a ? b : a;                                                                                         \
    case FI_CSWAP_LE:                                                                                                  \
        return c <= a ? b : a;                                                                                         \
    case FI_CSWAP_LT:                                                                                                  \
        return c < a ? b : a;                                                                                          \
    case FI_CSWAP_GE:                                                                                                  \
        return c >= a ? b : a;                                                                                         \
    case FI_CSWAP_GT:                                                                                                  \
        return c > a ? b : a;
#define BITWISE(type)                                                                                                  \
    case FI_BOR:                                                                                                       \
        return (type)(a | b);                                                                                          \
    case FI_BAND:                                                                                                      \
        return (type)(a & b);                                                                                          \
    case FI_BXOR:                                                                                                      \
        return (type)(a ^ b);                                                                                          \
    case FI_MSWAP:                                                                                                     \
        return (type)((b & c) | (a & ~c));

/* Try an operation on values of a type; more: the cases that it has beside those of all. */
#define TYPE(name, number, type, sum, product, more)                                                                   \
    static type expect_##name(enum fi_op operation, type a, type b, type c)                                            \
    {                                                                                                                  \
        switch ((int)operation) {                                                                                      \
            LOGICAL(type)                                                                                              \
            more(type)                                                                                                 \
        case FI_SUM:                                                                                                   \
            return sum;                                                                                                \
        case FI_PROD:                                                                                                  \
            return product;                                                                                            \
        }                                                                                                              \
        REQUIRE(!"an operation");                                                                                      \
        return a;                                                                                                      \
    }                                                                                                                  \
    static void name(enum fi_op operation)                                                                             \
    {                                                                                                                  \
        static const double each[] = {0, 1, -1, 5, 5, 100, -100, 3.5, 120};                                            \
        enum { VALUES = sizeof each / sizeof *each };                                                                  \
        type *values = (type *)memory, *read = (type *)results, *given = (type *)operands, *with = (type *)comparands; \
        for (int first = 0; first < VALUES * VALUES; first++) {                                                        \
            type before[COUNT];                                                                                        \
            for (int place = 0; place < COUNT; place++) {                                                              \
                before[place] = values[1 + place] = (type)(long long)each[(first + place) % VALUES];                   \
                given[place] = (type)(long long)each[first / VALUES];                                                  \
                with[place] = (type)(long long)each[(first * 5 + place) % VALUES];                                     \
            }                                                                                                          \
            values[0] = values[1 + COUNT] = 77;                                                                        \
            int reads = perform(operation, number, sizeof(type), first);                                               \
            for (int place = 0; place < COUNT; place++) {                                                              \
                REQUIRE(!reads || read[place] == before[place]);                                                       \
                REQUIRE(values[1 + place] == expect_##name(operation, before[place], given[place], with[place]));      \
            }                                                                                                          \
            REQUIRE(values[0] == 77 && values[1 + COUNT] == 77);                                                       \
        }                                                                                                              \
    }

static int is_valid(enum fi_op operation, enum fi_datatype type, int kind)
{
    size_t count = 0;
    int error = kind == 0   ? fi_atomicvalid(ep, type, operation, &count)
                : kind == 1 ? fi_fetch_atomicvalid(ep, type, operation, &count)
                            : fi_compare_atomicvalid(ep, type, operation, &count);
    struct fi_atomic_attr attr = {0};
    uint64_t flags[] = {0, FI_FETCH_ATOMIC, FI_COMPARE_ATOMIC};
    REQUIRE(fi_query_atomic(domain, type, operation, &attr, flags[kind]) == error);
    REQUIRE(error == -FI_EOPNOTSUPP || (!error && count * attr.size == 32 && attr.count == count));
    return !error;
}

static void completes(uint64_t kind)
{
    struct fi_cq_tagged_entry entry = next(tx);
    REQUIRE(entry.flags == (FI_ATOMIC | kind) && entry.op_context == operands);
}

/* Perform an operation by one of its calls; return whether it reads. */
static int perform(enum fi_op operation, enum fi_datatype type, size_t size, int turn)
{
    if (is_valid(operation, type, 2)) {
        REQUIRE(!fi_compare_atomic(ep, operands, COUNT, NULL, comparands, NULL, results, NULL, self, size, KEY, type,
                                   operation, operands));
        completes(FI_READ);
        return 1;
    }
    if (turn % 2 || !is_valid(operation, type, 0)) {
        REQUIRE(!fi_fetch_atomic(ep, operation == FI_ATOMIC_READ ? NULL : operands, COUNT, NULL, results, NULL, self, size,
                                 KEY, type, operation, operands));
        completes(FI_READ);
        return 1;
    }
    if (turn % 4) {
        REQUIRE(!fi_atomic(ep, operands, COUNT, NULL, self, size, KEY, type, operation, operands));
        completes(FI_WRITE);
    } else {
        uint64_t before = fi_cntr_read(sent);
        REQUIRE(!fi_inject_atomic(ep, operands, COUNT, self, size, KEY, type, operation));
        REQUIRE(!fi_cntr_wait(sent, before + 1, WAIT_MS) && empty(tx));
    }
    return 0;
}

#define INTEGER(name, number, type, wide) TYPE(name, number, type, (type)((wide)a + (wide)b), (type)((wide)a * (wide)b), BITWISE)
#define NOTHING(type)
INTEGER(int8, FI_INT8, int8_t, uint64_t)
INTEGER(uint8, FI_UINT8, uint8_t, uint64_t)
INTEGER(int16, FI_INT16, int16_t, uint64_t)
INTEGER(uint16, FI_UINT16, uint16_t, uint64_t)
INTEGER(int32, FI_INT32, int32_t, uint64_t)
INTEGER(uint32, FI_UINT32, uint32_t, uint64_t)
INTEGER(int64, FI_INT64, int64_t, uint64_t)
INTEGER(uint64, FI_UINT64, uint64_t, uint64_t)
TYPE(single, FI_FLOAT, float, a + b, a *b, NOTHING)
TYPE(real, FI_DOUBLE, double, a + b, a *b, NOTHING)

static void each_operation(void)
{
    static void (*const types[])(enum fi_op) = {int8, uint8, int16, uint16, int32, uint32, int64, uint64, single, real};
    for (enum fi_datatype type = FI_INT8; type <= FI_DOUBLE; type++)
        for (enum fi_op operation = FI_MIN; operation <= FI_MSWAP; operation++) {
            int bitwise = operation == FI_BOR || operation == FI_BAND || operation == FI_BXOR || operation == FI_MSWAP;
            int compares = operation >= FI_CSWAP, supported = !bitwise || type < FI_FLOAT;
            REQUIRE(is_valid(operation, type, 0) == (supported && !compares && operation != FI_ATOMIC_READ));
            REQUIRE(is_valid(operation, type, 1) == (supported && !compares));
            REQUIRE(is_valid(operation, type, 2) == (supported && compares));
            if (supported)
                types[type](operation);
        }
    REQUIRE(!is_valid(FI_SUM, FI_DOUBLE_COMPLEX, 0) && !is_valid(FI_SUM, FI_LONG_DOUBLE, 1));
}

static void segments(void)
{
    uint64_t first = 5, second[2] = {6, 7}, before[3] = {0}, *values = (uint64_t *)memory;
    struct fi_ioc given[2] = {{&first, 1}, {second, 2}}, read[2] = {{before, 2}, {before + 2, 1}};
    struct fi_rma_ioc remote = {8, 3, KEY};
    struct fi_msg_atomic message = {given, NULL, 2, self, &remote, 1, FI_UINT64, FI_SUM, operands, 9};
    values[1] = 10, values[2] = 20, values[3] = 30;
    REQUIRE(!fi_fetch_atomicmsg(ep, &message, read, NULL, 2, FI_COMPLETION | FI_REMOTE_CQ_DATA));
    completes(FI_READ);
    struct fi_cq_tagged_entry entry = next(rx);
    REQUIRE(entry.data == 9 && entry.flags == (FI_ATOMIC | FI_REMOTE_READ | FI_REMOTE_CQ_DATA));
    REQUIRE(before[0] == 10 && before[1] == 20 && before[2] == 30);
    REQUIRE(values[1] == 15 && values[2] == 26 && values[3] == 37);
    remote.count = 2;
    REQUIRE(fi_fetch_atomicmsg(ep, &message, read, NULL, 2, 0) == -FI_EINVAL);
    REQUIRE(fi_atomicmsg(ep, &message, FI_FENCE) == -FI_EOPNOTSUPP);
}

/* Many are performed in order, also if some have to wait: each reads the number of those before it. */
static void order(void)
{
    enum { MANY = 3000 };
    static uint64_t before[MANY];
    uint64_t one = 1, *value = (uint64_t *)memory;
    *value = 0;
    int ended = 0;
    for (int number = 0; number < MANY; number++) {
        REQUIRE(!fi_fetch_atomic(ep, &one, 1, NULL, &before[number], NULL, self, 0, KEY, FI_UINT64, FI_SUM, operands));
        /* Bursts of 1 to 24, of which two are left. */
        for (int burst = number % 300 / 12; number % (burst + 1) == 0 && ended < number - 1; ended++)
            completes(FI_READ);
    }
    for (; ended < MANY; ended++)
        completes(FI_READ);
    for (uint64_t number = 0; number < MANY; number++)
        REQUIRE(before[number] == number);
}

static void fails_with(ssize_t posted, int error)
{
    REQUIRE(posted == -error || (!posted && failed(tx).err == error));
}

static void refusals(void)
{
    uint64_t value = 1, before = 0, nine[9] = {0};
    struct fid_mr *written;
    REQUIRE(!fi_mr_reg(domain, memory, 16, FI_REMOTE_WRITE, 0, KEY + 1, 0, &written, NULL));
    fails_with(fi_atomic(ep, nine, 9, NULL, self, 0, KEY, FI_UINT64, FI_SUM, NULL), FI_EMSGSIZE);
    fails_with(fi_fetch_atomic(ep, NULL, 9, NULL, nine, NULL, self, 0, KEY, FI_UINT64, FI_ATOMIC_READ, NULL), FI_EMSGSIZE);
    fails_with(fi_atomic(ep, &value, 1, NULL, self, 0, KEY, FI_UINT64, FI_CSWAP, NULL), FI_EOPNOTSUPP);
    fails_with(fi_atomic(ep, &value, 1, NULL, self, 0, KEY, FI_UINT64, FI_ATOMIC_READ, NULL), FI_EOPNOTSUPP);
    fails_with(fi_atomic(ep, &value, 1, NULL, self, 0, KEY, FI_DOUBLE, FI_BXOR, NULL), FI_EOPNOTSUPP);
    fails_with(fi_atomic(ep, &value, 1, NULL, self, sizeof memory - 7, KEY, FI_UINT64, FI_SUM, NULL), FI_EACCES);
    fails_with(fi_atomic(ep, &value, 1, NULL, self, 0, KEY + 2, FI_UINT64, FI_SUM, NULL), FI_EACCES);
    fails_with(fi_fetch_atomic(ep, &value, 1, NULL, &before, NULL, self, 0, KEY + 1, FI_UINT64, FI_SUM, NULL), FI_EACCES);
    REQUIRE(!fi_atomic(ep, &value, 1, NULL, self, 0, KEY + 1, FI_UINT64, FI_SUM, operands));
    completes(FI_WRITE);
    REQUIRE(!before && !fi_close(&written->fid));
}

int main(void)
{
    struct fi_info *hints = fi_allocinfo();
    hints->caps = FI_ATOMIC;
    open_endpoint(hints, FI_WRITE);
    REQUIRE(!fi_mr_reg(domain, memory, sizeof memory, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY, 0, &region, NULL));
    each_operation();
    segments();
    order();
    refusals();
    REQUIRE(!fi_close(&region->fid));
    close_endpoint();
    puts("done");
    return 0;
}
