/* What the provider mx refuses, with a code, at once or in time: hints, addresses of hosts and endpoints that do not
 * exist, a plain MX program as a partner, calls in a wrong state. */

#include <mx_extensions.h>
#include <myriexpress.h>

#include "fabric_endpoint.h"

static char byte;

/* The result of fi_getinfo with hints that differ from the default in one assignment. */
#define ASKED(assignment)                                                                                              \
    ({                                                                                                                 \
        struct fi_info *hints = fi_allocinfo(), *found = NULL;                                                         \
        hints->fabric_attr->prov_name = strdup("mx");                                                                  \
        assignment;                                                                                                    \
        int result = fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &found);                                      \
        fi_freeinfo(hints);                                                                                            \
        fi_freeinfo(found);                                                                                            \
        result;                                                                                                        \
    })
#define REFUSED(assignment) REQUIRE(ASKED(assignment) == -FI_ENODATA)
#define ACCEPTED(assignment) REQUIRE(ASKED(assignment) == 0)

static void set_source(struct fi_info *hints, uint64_t nic_id)
{
    uint64_t address[2] = {nic_id, 0};
    hints->src_addr = malloc(hints->src_addrlen = sizeof address);
    memcpy(hints->src_addr, address, sizeof address);
}

static void hints(void)
{
    REFUSED(hints->caps = FI_MULTICAST);
    REFUSED(hints->caps = FI_MSG | FI_HMEM);
    REFUSED(hints->caps = FI_MSG | FI_FENCE);
    REFUSED(hints->ep_attr->type = FI_EP_MSG);
    REFUSED(hints->ep_attr->type = FI_EP_DGRAM);
    REFUSED(hints->ep_attr->protocol = FI_PROTO_SOCK_TCP);
    REFUSED(hints->ep_attr->max_msg_size = UINT64_C(1) << 31);
    REFUSED(hints->ep_attr->tx_ctx_cnt = 2);
    REFUSED(hints->ep_attr->max_order_waw_size = 8);
    REFUSED(hints->addr_format = FI_SOCKADDR_IN);
    REFUSED(hints->fabric_attr->name = strdup("other"));
    REFUSED(hints->domain_attr->name = strdup("mx7"));
    REFUSED(hints->domain_attr->cq_data_size = 9);
    REFUSED(hints->domain_attr->mr_key_size = 9);
    REFUSED(hints->domain_attr->cntr_cnt = 100000);
    REFUSED(hints->tx_attr->op_flags = FI_FENCE);
    REFUSED(hints->tx_attr->msg_order = FI_ORDER_RAW);
    REFUSED(hints->tx_attr->comp_order = FI_ORDER_STRICT);
    REFUSED(hints->tx_attr->inject_size = 4097);
    REFUSED(hints->tx_attr->iov_limit = 5);
    REFUSED(hints->tx_attr->rma_iov_limit = 2);
    REFUSED(hints->rx_attr->iov_limit = 5);
    REFUSED(hints->rx_attr->size = 1025);
    REFUSED(set_source(hints, 0x1234));
    ACCEPTED(hints->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC);
    ACCEPTED(hints->domain_attr->data_progress = FI_PROGRESS_MANUAL);
    ACCEPTED(hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_PROV_KEY | FI_MR_ALLOCATED);
    setenv("MX_MONOTHREAD", "1", 1);
    REFUSED(hints->domain_attr->data_progress = FI_PROGRESS_AUTO);
    ACCEPTED(hints->domain_attr->data_progress = FI_PROGRESS_MANUAL);
    unsetenv("MX_MONOTHREAD");
}

/* The number of the endpoint of fi_getinfo for a service, or an error. */
static int endpoint_of(const char *service)
{
    struct fi_info *hints = fi_allocinfo(), *found = NULL;
    uint32_t number;
    hints->fabric_attr->prov_name = strdup("mx");
    int error = fi_getinfo(FI_VERSION(1, 17), NULL, service, FI_SOURCE, hints, &found);
    if (!error)
        memcpy(&number, (char *)found->src_addr + 8, sizeof number);
    fi_freeinfo(hints);
    fi_freeinfo(found);
    return error ? error : (int)number;
}

/* Programs of libfabric name ports. */
static void services(void)
{
    REQUIRE(endpoint_of("7") == 7 && endpoint_of("9228") == 9228 % 256 && endpoint_of("http") == -FI_ENODATA);
}

static void states(void)
{
    struct fid_ep *unbound;
    struct fid_cntr *counter;
    struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_MUTEX_COND};
    struct iovec five[5] = {{&byte, 1}};
    size_t length = 8;
    char name[8];
    struct fid *fid = &rx->fid;
    int descriptor;
    REQUIRE(!fi_endpoint(domain, info, &unbound, NULL) && fi_enable(unbound) == -FI_ENOCQ);
    REQUIRE(fi_send(unbound, &byte, 1, NULL, 0, NULL) == -FI_EOPBADSTATE && !fi_close(&unbound->fid));
    REQUIRE(fi_cntr_open(domain, &attr, &counter, NULL) == -FI_ENOSYS);
    REQUIRE(fi_trywait(fabric, &fid, 1) == -FI_EINVAL && fi_control(fid, FI_GETWAIT, &descriptor) == -FI_ENODATA);
    REQUIRE(fi_sendv(ep, five, NULL, 5, self, NULL) == -FI_EINVAL && fi_getname(&ep->fid, name, &length) == -FI_ETOOSMALL);
    REQUIRE(fi_recv(ep, &byte, 1, NULL, 99, NULL) == -FI_EINVAL && fi_write(ep, &byte, 1, NULL, 99, 0, 0, NULL) == -FI_EINVAL);
}

static fi_addr_t insert(uint64_t nic_id, uint32_t number)
{
    char name[ADDRESS];
    fi_addr_t place;
    memcpy(name, own, ADDRESS);
    memcpy(name, &nic_id, sizeof nic_id);
    memcpy(name + sizeof nic_id, &number, sizeof number);
    REQUIRE(fi_av_insert(av, name, 1, &place, 0, NULL) == 1);
    return place;
}

static void fails(ssize_t posted, int error)
{
    REQUIRE(posted == -error || (!posted && failed(tx).err == error));
}

/* Each operation with such a partner fails, at once or later. */
static void fails_with(fi_addr_t partner, int error)
{
    static char long_message[LONGEST];
    fails(fi_tsend(ep, &byte, 1, NULL, partner, 1, NULL), error);
    fails(fi_tsend(ep, long_message, LONGEST, NULL, partner, 1, NULL), error);
    fails(fi_tinject(ep, &byte, 1, partner, 1), error);
    fails(fi_write(ep, &byte, 1, NULL, partner, 0, 0, NULL), error);
    fails(fi_read(ep, long_message, LONGEST, NULL, partner, 0, 0, NULL), error);
}

static void partners(void)
{
    uint64_t nic_id;
    mx_endpoint_t plain;
    mx_endpoint_addr_t address;
    uint32_t number;
    memcpy(&nic_id, own, sizeof nic_id);
    REQUIRE(mx_open_endpoint(0, MX_ANY_ENDPOINT, 5, NULL, 0, &plain) == MX_SUCCESS);
    mx_get_endpoint_addr(plain, &address);
    mx_decompose_endpoint_addr(address, &nic_id, &number);
    fi_addr_t stranger = insert(nic_id, number), closed = insert(nic_id, 77), absent = insert(0x020000000099, 0);
    fails_with(stranger, FI_ECONNREFUSED);
    fails_with(closed, FI_ECONNREFUSED);
    fails_with(absent, FI_EHOSTUNREACH);
    REQUIRE(!fi_av_remove(av, &absent, 1, 0) && fi_tsend(ep, &byte, 1, NULL, absent, 1, NULL) == -FI_EINVAL);
    mx_close_endpoint(plain);
}

int main(void)
{
    hints();
    services();
    open_endpoint(NULL, FI_SEND);
    states();
    partners();
    close_endpoint();
    puts("done");
    return 0;
}
