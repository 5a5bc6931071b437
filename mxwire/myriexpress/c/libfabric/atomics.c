/* Atomic operations on remote memory: the calls of fi_atomic.h, and the arithmetic at the target.
 *
 * Theory of operation
 * -------------------
 * They are accesses (remote_access.c) whose message has the operands behind its header, and is performed by the target's
 * handler in its memory (regions.c). The lock of the target's process makes one atomic for all others of the provider, but
 * not for the processor: while others may change a value, its own program has to use the provider, too.
 *
 * An operation has at most ATOMIC_BYTES of values, so that MX always has its message, and its reply with the former values,
 * as a whole. The handler performs operations one after the other, in the order in which they were started. Values are
 * integers of 1 to 8 bytes, float and double. Integers are computed in 64 bits and then cut, floats in double, which
 * rounds as float would. */

#include "provider.h"

enum kind { SIGNED, UNSIGNED, REAL };

static const struct {
    size_t size;
    enum kind kind;
} types[] = {
    [FI_INT8] = {1, SIGNED},    [FI_UINT8] = {1, UNSIGNED}, [FI_INT16] = {2, SIGNED},  [FI_UINT16] = {2, UNSIGNED},
    [FI_INT32] = {4, SIGNED},   [FI_UINT32] = {4, UNSIGNED}, [FI_INT64] = {8, SIGNED}, [FI_UINT64] = {8, UNSIGNED},
    [FI_FLOAT] = {4, REAL},     [FI_DOUBLE] = {8, REAL},
};
#define TYPES (sizeof types / sizeof *types)
_Static_assert(sizeof(struct mxf_access) + 2 * ATOMIC_BYTES <= WHOLE, "MX has an operation as a whole");

union value {
    uint64_t bits;
    int64_t integer;
    double real;
};

static int compares(uint32_t operation)
{
    return operation >= FI_CSWAP && operation <= FI_MSWAP;
}

size_t mxf_operands(uint32_t operation)
{
    return operation == FI_ATOMIC_READ ? 0 : compares(operation) ? 2 : 1;
}

size_t mxf_atomic_size(uint32_t operation, uint32_t type)
{
    int bitwise = operation == FI_BOR || operation == FI_BAND || operation == FI_BXOR || operation == FI_MSWAP;
    return type >= TYPES || operation > FI_MSWAP || (bitwise && types[type].kind == REAL) ? 0 : types[type].size;
}

static union value load(const char *from, uint32_t type)
{
    union value value = {0};
    float single;
    memcpy(&value, from, types[type].size);
    if (type == FI_FLOAT) {
        memcpy(&single, from, sizeof single);
        value.real = single;
    } else if (types[type].kind == SIGNED) {
        unsigned unused = 64 - 8 * (unsigned)types[type].size;
        value.integer = (int64_t)(value.bits << unused) >> unused;
    }
    return value;
}

/* The first bytes of an integer are its low ones. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "integers are cut");

static void store(char *to, uint32_t type, union value value)
{
    float single = (float)(type == FI_FLOAT ? value.real : 0);
    memcpy(to, type == FI_FLOAT ? (void *)&single : (void *)&value, types[type].size);
}

/* -1, 0 or 1 as one is less than, equal to or greater than the other; 2: not a number. */
static int order(enum kind kind, union value one, union value other)
{
    if (kind == REAL)
        return one.real < other.real ? -1 : one.real > other.real ? 1 : one.real == other.real ? 0 : 2;
    if (kind == SIGNED)
        return (one.integer > other.integer) - (one.integer < other.integer);
    return (one.bits > other.bits) - (one.bits < other.bits);
}

static union value compute(uint32_t operation, enum kind kind, union value old, union value operand, union value compare)
{
    union value zero = {0}, result = old;
    int real = kind == REAL, first = order(kind, old, zero) != 0, second = order(kind, operand, zero) != 0, truth = -1;
    int against = order(kind, compare, old), swaps = -1;
    switch (operation) {
    case FI_MIN:
        return order(kind, operand, old) == -1 ? operand : old;
    case FI_MAX:
        return order(kind, operand, old) == 1 ? operand : old;
    case FI_SUM:
        return real ? (union value){.real = old.real + operand.real} : (union value){.bits = old.bits + operand.bits};
    case FI_PROD:
        return real ? (union value){.real = old.real * operand.real} : (union value){.bits = old.bits * operand.bits};
    case FI_LOR:
        truth = first || second;
        break;
    case FI_LAND:
        truth = first && second;
        break;
    case FI_LXOR:
        truth = first != second;
        break;
    case FI_BOR:
        return (union value){.bits = old.bits | operand.bits};
    case FI_BAND:
        return (union value){.bits = old.bits & operand.bits};
    case FI_BXOR:
        return (union value){.bits = old.bits ^ operand.bits};
    case FI_ATOMIC_WRITE:
        return operand;
    case FI_CSWAP:
        swaps = against == 0;
        break;
    case FI_CSWAP_NE:
        swaps = against != 0;
        break;
    case FI_CSWAP_LE:
        swaps = against == 0 || against == -1;
        break;
    case FI_CSWAP_LT:
        swaps = against == -1;
        break;
    case FI_CSWAP_GE:
        swaps = against == 0 || against == 1;
        break;
    case FI_CSWAP_GT:
        swaps = against == 1;
        break;
    case FI_MSWAP:
        return (union value){.bits = (operand.bits & compare.bits) | (old.bits & ~compare.bits)};
    default:
        break;
    }
    if (truth >= 0)
        result = real ? (union value){.real = truth} : (union value){.bits = (uint64_t)truth};
    return swaps == 1 ? operand : result;
}

void mxf_compute(uint32_t operation, uint32_t type, size_t length, char *values, const char *operands)
{
    for (size_t place = 0; place < length; place += types[type].size) {
        union value operand = {0}, compare = {0}, old = load(values + place, type);
        if (mxf_operands(operation))
            operand = load(operands + place, type);
        if (compares(operation))
            compare = load(operands + length + place, type);
        store(values + place, type, compute(operation, types[type].kind, old, operand, compare));
    }
}

/* The calls. An operation without results has none of their segments. */

/* Append values to some bytes; return their length, or an error. */
static ssize_t gather(char *bytes, const struct fi_ioc *values, size_t count, size_t size)
{
    size_t length = 0;
    if (count > SEGMENTS)
        return -FI_EINVAL;
    for (size_t place = 0; place < count; place++) {
        if (values[place].count > (ATOMIC_BYTES - length) / size)
            return -FI_EMSGSIZE;
        if (values[place].count)
            memcpy(bytes + length, values[place].addr, values[place].count * size);
        length += values[place].count * size;
    }
    return (ssize_t)length;
}

static size_t count_all(const struct fi_ioc *values, size_t count)
{
    size_t all = 0;
    for (size_t place = 0; place < count && place < SEGMENTS; place++)
        all += values[place].count;
    return all;
}

static ssize_t start(struct fid_ep *fid, const struct fi_msg_atomic *message, const struct fi_ioc *comparands,
                     size_t comparand_count, const struct fi_ioc *results, size_t result_count, uint64_t flags)
{
    char content[2 * ATOMIC_BYTES];
    size_t size = mxf_atomic_size(message->op, message->datatype), operands = mxf_operands(message->op);
    struct iovec memory[SEGMENTS], data = {content, 0};
    struct mxf_access access = {.header.data = message->data};
    if (!size || (operands == 2) != !!comparands || (!operands && !results))
        return -FI_EOPNOTSUPP;
    if (message->rma_iov_count != 1 || result_count > SEGMENTS || flags & FI_FENCE)
        return flags & FI_FENCE ? -FI_EOPNOTSUPP : -FI_EINVAL;
    ssize_t length = operands ? gather(content, message->msg_iov, message->iov_count, size) : 0;
    if (length >= 0 && operands == 2 && gather(content + length, comparands, comparand_count, size) != length)
        return -FI_EINVAL;
    if (length < 0 || message->rma_iov->count > ATOMIC_BYTES / size)
        return length < 0 ? length : -FI_EMSGSIZE;
    access.length = message->rma_iov->count * size;
    if ((operands && (size_t)length != access.length) ||
        (results && count_all(results, result_count) != message->rma_iov->count))
        return -FI_EINVAL;
    for (size_t place = 0; place < result_count; place++)
        memory[place] = (struct iovec){results[place].addr, results[place].count * size};
    data.iov_len = operands * access.length;
    access.address = message->rma_iov->addr;
    access.key = message->rma_iov->key;
    access.operation = (uint16_t)message->op;
    access.type = (uint16_t)message->datatype;
    access.header.flags = HEADER_ATOMIC | (results ? HEADER_READ : 0) | (flags & FI_REMOTE_CQ_DATA ? HEADER_DATA : 0);
    return mxf_start_atomic(fid, &access,
                            &(struct mxf_operation){&data, 1, message->addr, 0, 0, 0, flags | FI_INJECT, message->context},
                            memory, result_count);
}

static uint64_t defaults(struct fid_ep *fid)
{
    return OWNER(fid, mxf_endpoint, fid)->default_flags[MXF_SEND];
}

/* The usual calls make a message of their arguments. */
#define MESSAGE(values, number, all)                                                                                   \
    struct fi_rma_ioc remote = {address, all, key};                                                                    \
    struct fi_msg_atomic message = {values, NULL, number, to, &remote, 1, type, operation, context, 0}

static ssize_t compwritev(struct fid_ep *fid, const struct fi_ioc *values, void **desc, size_t count,
                          const struct fi_ioc *comparands, void **compare_desc, size_t comparand_count,
                          struct fi_ioc *results, void **result_desc, size_t result_count, fi_addr_t to,
                          uint64_t address, uint64_t key, enum fi_datatype type, enum fi_op operation, void *context)
{
    (void)desc, (void)compare_desc, (void)result_desc;
    MESSAGE(values, count, results ? count_all(results, result_count) : count_all(values, count));
    return start(fid, &message, comparands, comparand_count, results, result_count, defaults(fid));
}

static ssize_t compwrite(struct fid_ep *fid, const void *buffer, size_t count, void *desc, const void *compare,
                         void *compare_desc, void *result, void *result_desc, fi_addr_t to, uint64_t address, uint64_t key,
                         enum fi_datatype type, enum fi_op operation, void *context)
{
    struct fi_ioc values = {(void *)buffer, count}, comparands = {(void *)compare, count}, results = {result, count};
    return compwritev(fid, &values, &desc, 1, &comparands, &compare_desc, 1, &results, &result_desc, 1, to, address, key,
                      type, operation, context);
}

static ssize_t compwritemsg(struct fid_ep *fid, const struct fi_msg_atomic *message, const struct fi_ioc *comparands,
                            void **compare_desc, size_t comparand_count, struct fi_ioc *results, void **result_desc,
                            size_t result_count, uint64_t flags)
{
    (void)compare_desc, (void)result_desc;
    return start(fid, message, comparands, comparand_count, results, result_count, flags & ~QUIET);
}

static ssize_t readwritev(struct fid_ep *fid, const struct fi_ioc *values, void **desc, size_t count,
                          struct fi_ioc *results, void **result_desc, size_t result_count, fi_addr_t to,
                          uint64_t address, uint64_t key, enum fi_datatype type, enum fi_op operation, void *context)
{
    return compwritev(fid, values, desc, count, NULL, NULL, 0, results, result_desc, result_count, to, address, key, type,
                      operation, context);
}

static ssize_t readwrite(struct fid_ep *fid, const void *buffer, size_t count, void *desc, void *result,
                         void *result_desc, fi_addr_t to, uint64_t address, uint64_t key, enum fi_datatype type,
                         enum fi_op operation, void *context)
{
    struct fi_ioc values = {(void *)buffer, count}, results = {result, count};
    return readwritev(fid, &values, &desc, 1, &results, &result_desc, 1, to, address, key, type, operation, context);
}

static ssize_t readwritemsg(struct fid_ep *fid, const struct fi_msg_atomic *message, struct fi_ioc *results,
                            void **result_desc, size_t result_count, uint64_t flags)
{
    return compwritemsg(fid, message, NULL, NULL, 0, results, result_desc, result_count, flags);
}

static ssize_t writev_(struct fid_ep *fid, const struct fi_ioc *values, void **desc, size_t count, fi_addr_t to,
                       uint64_t address, uint64_t key, enum fi_datatype type, enum fi_op operation, void *context)
{
    return readwritev(fid, values, desc, count, NULL, NULL, 0, to, address, key, type, operation, context);
}

static ssize_t write_(struct fid_ep *fid, const void *buffer, size_t count, void *desc, fi_addr_t to, uint64_t address,
                      uint64_t key, enum fi_datatype type, enum fi_op operation, void *context)
{
    return writev_(fid, &(struct fi_ioc){(void *)buffer, count}, &desc, 1, to, address, key, type, operation, context);
}

static ssize_t writemsg(struct fid_ep *fid, const struct fi_msg_atomic *message, uint64_t flags)
{
    return compwritemsg(fid, message, NULL, NULL, 0, NULL, NULL, 0, flags);
}

static ssize_t inject(struct fid_ep *fid, const void *buffer, size_t count, fi_addr_t to, uint64_t address, uint64_t key,
                      enum fi_datatype type, enum fi_op operation)
{
    void *context = NULL;
    struct fi_ioc values = {(void *)buffer, count};
    MESSAGE(&values, 1, count);
    return start(fid, &message, NULL, 0, NULL, 0, QUIET);
}

/* The number of values that one operation may have. */
static int valid(uint32_t type, uint32_t operation, int supported, size_t *count)
{
    size_t size = mxf_atomic_size(operation, type);
    if (!size || !supported)
        return -FI_EOPNOTSUPP;
    *count = ATOMIC_BYTES / size;
    return 0;
}

static int writevalid(struct fid_ep *fid, enum fi_datatype type, enum fi_op operation, size_t *count)
{
    (void)fid;
    return valid(type, operation, mxf_operands(operation) == 1, count);
}

static int readwritevalid(struct fid_ep *fid, enum fi_datatype type, enum fi_op operation, size_t *count)
{
    (void)fid;
    return valid(type, operation, mxf_operands(operation) < 2, count);
}

static int compwritevalid(struct fid_ep *fid, enum fi_datatype type, enum fi_op operation, size_t *count)
{
    (void)fid;
    return valid(type, operation, mxf_operands(operation) == 2, count);
}

int mxf_query_atomic(struct fid_domain *domain, enum fi_datatype type, enum fi_op operation, struct fi_atomic_attr *attr,
                     uint64_t flags)
{
    (void)domain;
    size_t operands = mxf_operands(operation);
    int supported = flags == FI_COMPARE_ATOMIC ? operands == 2 : flags == FI_FETCH_ATOMIC ? operands < 2 : operands == 1;
    attr->size = mxf_atomic_size(operation, type);
    return flags & ~(uint64_t)(FI_COMPARE_ATOMIC | FI_FETCH_ATOMIC) ? -FI_EINVAL
                                                                    : valid(type, operation, supported, &attr->count);
}

struct fi_ops_atomic mxf_atomic_ops = {
    sizeof mxf_atomic_ops, write_,    writev_,    writemsg,     inject,     readwrite,      readwritev,
    readwritemsg,          compwrite, compwritev, compwritemsg, writevalid, readwritevalid, compwritevalid};
