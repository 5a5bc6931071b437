/* fi_getinfo.
 *
 * Every program with libfabric calls it, several times, whether it wants this provider or not. It must therefore not start
 * Python: mx__boards reads interfaces and permission, and only names of hosts, for programs that name this provider, need
 * mx_init. Programs do not fall back once fi_getinfo has succeeded, so it fails if fi_domain would.
 *
 * Hints that no attribute here meets are refused as a whole; others are met, with all capabilities that they ask for or
 * imply. Structures are longer than those of the headers, since later versions of libfabric append members. */

#include <stdio.h>

#include "provider.h"

#define ADDRESS_FORMAT (FI_PROV_SPECIFIC | 0x6d78)
#define PROTOCOL (FI_PROV_SPECIFIC | 0x6d78)
#define FABRIC "MX"
#define BOARDS 16
#define QUEUE_SIZE 1024
#define COUNTERS 256
/* Of sends, and of atomic operations. */
#define ORDERS                                                                                                         \
    (FI_ORDER_SAS | FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW)
/* Later versions of libfabric have longer structures. */
#define GROWTH 256

#pragma weak mx__boards
#pragma weak mx__progresses

/* NIC ids of the boards that fi_domain can open. */
static int find_boards(uint64_t *nic_ids, uint32_t *count)
{
    char reason[256] = "";
    if (mx__boards) {
        mx_return_t code = mx__boards(nic_ids, BOARDS, count, reason, sizeof reason);
        if (code != MX_SUCCESS)
            WARN("%s", reason);
        return code == MX_SUCCESS && *count ? 0 : -FI_ENODATA;
    }
    /* Another implementation of MX. */
    if (mxf_use_mx())
        return -FI_ENODATA;
    for (*count = 0; *count < BOARDS && mx_board_number_to_nic_id(*count, &nic_ids[*count]) == MX_SUCCESS;)
        ++*count;
    mxf_release_mx();
    return *count ? 0 : -FI_ENODATA;
}

static int progresses(void)
{
    return mx__progresses && mx__progresses();
}

static int bad_domain(const struct fi_domain_attr *hints)
{
    int automatic = hints && (hints->control_progress == FI_PROGRESS_AUTO || hints->data_progress == FI_PROGRESS_AUTO);
    return hints && ((automatic && !progresses()) || hints->cq_data_size > sizeof(uint64_t) || hints->mr_key_size > sizeof(uint64_t) ||
                     hints->cntr_cnt > COUNTERS || hints->caps & ~(uint64_t)(FI_LOCAL_COMM | FI_REMOTE_COMM) ||
                     hints->max_ep_tx_ctx > 1 || hints->max_ep_rx_ctx > 1 || hints->max_ep_stx_ctx ||
                     hints->max_ep_srx_ctx || hints->auth_key_size);
}

static int bad_endpoint(const struct fi_ep_attr *hints)
{
    return hints && ((hints->type != FI_EP_UNSPEC && hints->type != FI_EP_RDM) ||
                     (hints->protocol && hints->protocol != PROTOCOL) || hints->max_msg_size > MESSAGE_MAXIMUM ||
                     hints->max_order_raw_size || hints->max_order_war_size || hints->max_order_waw_size ||
                     hints->tx_ctx_cnt > 1 || hints->rx_ctx_cnt > 1 || hints->auth_key_size);
}

static int bad_transmit(const struct fi_tx_attr *hints)
{
    return hints && (hints->caps & ~(uint64_t)CAPABILITIES || hints->op_flags & ~(uint64_t)OPERATION_FLAGS ||
                     hints->msg_order & ~(uint64_t)ORDERS || hints->comp_order ||
                     hints->inject_size > INJECT_MAXIMUM || hints->size > QUEUE_SIZE || hints->iov_limit > SEGMENTS ||
                     hints->rma_iov_limit > 1);
}

static int bad_receive(const struct fi_rx_attr *hints)
{
    return hints && (hints->caps & ~(uint64_t)CAPABILITIES || hints->op_flags & ~(uint64_t)OPERATION_FLAGS ||
                     hints->msg_order & ~(uint64_t)ORDERS || hints->comp_order || hints->size > QUEUE_SIZE ||
                     hints->iov_limit > SEGMENTS);
}

/* Return whether a provider with these attributes cannot do what the hints ask for. */
static int refused(const struct fi_info *hints)
{
    return hints &&
           (hints->caps & ~(uint64_t)CAPABILITIES || (hints->addr_format && hints->addr_format != ADDRESS_FORMAT) ||
            (hints->fabric_attr && hints->fabric_attr->name && strcmp(hints->fabric_attr->name, FABRIC)) ||
            bad_domain(hints->domain_attr) || bad_endpoint(hints->ep_attr) || bad_transmit(hints->tx_attr) ||
            bad_receive(hints->rx_attr));
}

/* Resolving a name starts Python, and services may be those of IP: only for programs that ask for this provider. */
static int wanted(const struct fi_info *hints)
{
    const char *chosen = getenv("FI_PROVIDER");
    if (chosen && strstr(chosen, "mx"))
        return 1;
    return hints && (hints->addr_format == ADDRESS_FORMAT ||
                     (hints->fabric_attr && ((hints->fabric_attr->prov_name && strstr(hints->fabric_attr->prov_name, "mx")) ||
                                             hints->fabric_attr->name)) ||
                     (hints->domain_attr && hints->domain_attr->name));
}

static void *zeros(size_t size)
{
    return calloc(1, size + GROWTH);
}

static void free_information(struct fi_info *info)
{
    while (info) {
        struct fi_info *next = info->next;
        if (info->domain_attr)
            free(info->domain_attr->name);
        if (info->fabric_attr)
            free(info->fabric_attr->name);
        free(info->src_addr);
        free(info->dest_addr);
        free(info->tx_attr);
        free(info->rx_attr);
        free(info->ep_attr);
        free(info->domain_attr);
        free(info->fabric_attr);
        free(info);
        info = next;
    }
}

static struct fi_info *allocate(uint32_t board)
{
    char name[16];
    struct fi_info *info = zeros(sizeof *info);
    if (!info)
        return NULL;
    snprintf(name, sizeof name, "mx%u", board);
    info->src_addr = malloc(sizeof(struct mxf_address));
    info->tx_attr = zeros(sizeof *info->tx_attr);
    info->rx_attr = zeros(sizeof *info->rx_attr);
    info->ep_attr = zeros(sizeof *info->ep_attr);
    info->domain_attr = zeros(sizeof *info->domain_attr);
    info->fabric_attr = zeros(sizeof *info->fabric_attr);
    if (info->domain_attr)
        info->domain_attr->name = strdup(name);
    if (info->fabric_attr)
        info->fabric_attr->name = strdup(FABRIC);
    if (info->src_addr && info->tx_attr && info->rx_attr && info->ep_attr && info->domain_attr && info->fabric_attr &&
        info->domain_attr->name && info->fabric_attr->name)
        return info;
    free_information(info);
    return NULL;
}

/* Capabilities of a direction, with those that others imply. */
static uint64_t implied(uint64_t asked)
{
    uint64_t caps = asked ? asked | FI_LOCAL_COMM | FI_REMOTE_COMM : CAPABILITIES;
    if (!(caps & (FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC)))
        caps |= FI_MSG | FI_TAGGED;
    if (caps & (FI_RMA | FI_ATOMIC) && !(caps & ACCESSES))
        caps |= ACCESSES;
    if (!(caps & (FI_SEND | FI_RECV)))
        caps |= FI_SEND | FI_RECV;
    return caps;
}

/* Programs that know only the modes of the first versions get one of these. */
static int region_mode(uint32_t version, const struct fi_domain_attr *hints)
{
    int asked = hints ? hints->mr_mode : FI_MR_UNSPEC;
    if (asked == FI_MR_BASIC || asked == FI_MR_SCALABLE)
        return asked;
    return FI_VERSION_LT(version, FI_VERSION(1, 5)) ? FI_MR_BASIC : 0;
}

static void describe(struct fi_info *info, uint32_t version, const struct fi_info *hints)
{
    static const uint64_t sending = FI_SEND | FI_READ | FI_WRITE;
    static const uint64_t receiving =
        FI_RECV | FI_DIRECTED_RECV | FI_MULTI_RECV | FI_SOURCE | FI_REMOTE_READ | FI_REMOTE_WRITE | FI_RMA_EVENT;
    const struct fi_domain_attr *domain = hints ? hints->domain_attr : NULL;
    enum fi_progress progress = progresses() ? FI_PROGRESS_AUTO : FI_PROGRESS_MANUAL;
    info->caps = implied(hints ? hints->caps : 0);
    info->addr_format = ADDRESS_FORMAT;
    *info->tx_attr = (struct fi_tx_attr){.caps = info->caps & ~receiving,
                                         .op_flags = hints && hints->tx_attr ? hints->tx_attr->op_flags : 0,
                                         .msg_order = ORDERS,
                                         .inject_size = INJECT_MAXIMUM,
                                         .size = QUEUE_SIZE,
                                         .iov_limit = SEGMENTS,
                                         .rma_iov_limit = 1};
    *info->rx_attr = (struct fi_rx_attr){.caps = info->caps & ~sending,
                                         .op_flags = hints && hints->rx_attr ? hints->rx_attr->op_flags : 0,
                                         .msg_order = ORDERS,
                                         .size = QUEUE_SIZE,
                                         .iov_limit = SEGMENTS};
    *info->ep_attr = (struct fi_ep_attr){.type = FI_EP_RDM,
                                         .protocol = PROTOCOL,
                                         .protocol_version = 1,
                                         .max_msg_size = MESSAGE_MAXIMUM,
                                         .mem_tag_format = 0xaaaaaaaaaaaaaaaa,
                                         .tx_ctx_cnt = 1,
                                         .rx_ctx_cnt = 1};
    struct fi_domain_attr *made = info->domain_attr;
    made->threading = domain && domain->threading != FI_THREAD_UNSPEC ? domain->threading : FI_THREAD_SAFE;
    made->control_progress =
        domain && domain->control_progress != FI_PROGRESS_UNSPEC ? domain->control_progress : progress;
    made->data_progress = domain && domain->data_progress != FI_PROGRESS_UNSPEC ? domain->data_progress : progress;
    made->resource_mgmt = FI_RM_ENABLED;
    made->av_type = domain ? domain->av_type : FI_AV_UNSPEC;
    made->mr_mode = region_mode(version, domain);
    made->mr_key_size = made->cq_data_size = sizeof(uint64_t);
    made->cq_cnt = made->ep_cnt = made->tx_ctx_cnt = made->rx_ctx_cnt = ENDPOINT_NUMBERS;
    made->max_ep_tx_ctx = made->max_ep_rx_ctx = 1;
    made->cntr_cnt = COUNTERS;
    made->mr_iov_limit = SEGMENTS;
    made->caps = FI_LOCAL_COMM | FI_REMOTE_COMM;
    made->mr_cnt = QUEUE_SIZE;
    info->fabric_attr->prov_version = FI_VERSION(1, 0);
    info->fabric_attr->api_version = version;
}

/* The addresses that node, service and hints name. */
static int read_addresses(const char *node, const char *service, uint64_t flags, const struct fi_info *hints,
                          struct mxf_address *source, struct mxf_address *destination)
{
    *source = (struct mxf_address){0, MX_ANY_ENDPOINT, KEY};
    *destination = (struct mxf_address){GONE, 0, KEY};
    if (hints && hints->src_addr && hints->src_addrlen >= sizeof *source)
        memcpy(source, hints->src_addr, sizeof *source);
    if (hints && hints->dest_addr && hints->dest_addrlen >= sizeof *destination)
        memcpy(destination, hints->dest_addr, sizeof *destination);
    if (node) {
        if (!wanted(hints))
            return -FI_ENODATA;
        return mxf_resolve(node, service, flags & FI_SOURCE ? source : destination) ? -FI_ENODATA : 0;
    }
    return service && (!wanted(hints) || mxf_read_service(service, &source->number)) ? -FI_ENODATA : 0;
}

int mxf_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags, const struct fi_info *hints,
                struct fi_info **result)
{
    uint64_t nic_ids[BOARDS];
    uint32_t count = 0;
    struct mxf_address source, destination;
    struct fi_info *first = NULL, **last = &first;
    if (refused(hints))
        return -FI_ENODATA;
    int error = find_boards(nic_ids, &count);
    if (!error)
        error = read_addresses(node, service, flags, hints, &source, &destination);
    for (uint32_t board = 0; !error && board < count; board++) {
        struct fi_info *info = allocate(board);
        if (!info) {
            free_information(first);
            return -FI_ENOMEM;
        }
        const char *name = hints && hints->domain_attr ? hints->domain_attr->name : NULL;
        if ((name && strcmp(name, info->domain_attr->name)) || (source.nic_id && source.nic_id != nic_ids[board])) {
            free_information(info);
            continue;
        }
        describe(info, version, hints);
        struct mxf_address own = {nic_ids[board], source.number, KEY};
        memcpy(info->src_addr, &own, sizeof own);
        info->src_addrlen = sizeof own;
        if (destination.nic_id != GONE && (info->dest_addr = malloc(sizeof destination))) {
            memcpy(info->dest_addr, &destination, sizeof destination);
            info->dest_addrlen = sizeof destination;
        }
        *last = info;
        last = &info->next;
    }
    *result = first;
    return error ? error : first ? 0 : -FI_ENODATA;
}
