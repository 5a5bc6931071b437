/* An endpoint of the provider mx with its queues, for tests in C. */

#ifndef FABRIC_ENDPOINT_H
#define FABRIC_ENDPOINT_H

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <string.h>

#include "require.h"

enum { LONGEST = 100000, WAIT_MS = 20000, ADDRESS = 16 };
static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_av *av;
static struct fid_ep *ep;
static struct fid_cq *tx, *rx;
static struct fid_cntr *sent;
static enum fi_wait_obj wait_object = FI_WAIT_UNSPEC;
static char own[ADDRESS];
static fi_addr_t self;

static inline struct fi_cq_tagged_entry next(struct fid_cq *cq)
{
    struct fi_cq_tagged_entry entry;
    fi_addr_t source;
    ssize_t count = fi_cq_sreadfrom(cq, &entry, 1, &source, NULL, WAIT_MS);
    REQUIRE(count == 1);
    REQUIRE(cq == tx || entry.flags & FI_MULTI_RECV || source == self);
    return entry;
}

static inline struct fi_cq_err_entry failed(struct fid_cq *cq)
{
    struct fi_cq_tagged_entry entry;
    struct fi_cq_err_entry error = {0};
    ssize_t count = fi_cq_sread(cq, &entry, 1, NULL, WAIT_MS);
    REQUIRE(count == -FI_EAVAIL);
    REQUIRE(fi_cq_readerr(cq, &error, 0) == 1);
    return error;
}

static inline int empty(struct fid_cq *cq)
{
    struct fi_cq_tagged_entry entry;
    return fi_cq_read(cq, &entry, 1) == -FI_EAGAIN;
}

/* Open an endpoint; with hints of the program or NULL, and a counter of events. */
static inline void open_endpoint(struct fi_info *hints, uint64_t counted)
{
    struct fi_info *all = hints ? hints : fi_allocinfo();
    size_t length = sizeof own;
    all->fabric_attr->prov_name = strdup("mx");
    REQUIRE(!fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, all, &info));
    fi_freeinfo(all);
    REQUIRE(!fi_fabric(info->fabric_attr, &fabric, NULL) && !fi_domain(fabric, info, &domain, NULL));
    REQUIRE(!fi_endpoint(domain, info, &ep, NULL));
    struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_TAGGED, .size = 4, .wait_obj = wait_object};
    struct fi_av_attr av_attr = {.type = FI_AV_TABLE};
    struct fi_cntr_attr counter_attr = {.events = FI_CNTR_EVENTS_COMP};
    REQUIRE(!fi_cq_open(domain, &cq_attr, &tx, NULL) && !fi_cq_open(domain, &cq_attr, &rx, NULL));
    REQUIRE(!fi_av_open(domain, &av_attr, &av, NULL) && !fi_cntr_open(domain, &counter_attr, &sent, NULL));
    REQUIRE(!fi_ep_bind(ep, &tx->fid, FI_TRANSMIT) && !fi_ep_bind(ep, &rx->fid, FI_RECV));
    REQUIRE(!fi_ep_bind(ep, &av->fid, 0) && !fi_ep_bind(ep, &sent->fid, counted));
    REQUIRE(!fi_enable(ep) && !fi_getname(&ep->fid, own, &length) && length == ADDRESS);
    REQUIRE(fi_av_insert(av, own, 1, &self, 0, NULL) == 1);
}

static inline void close_endpoint(void)
{
    REQUIRE(fi_close(&domain->fid) == -FI_EBUSY);
    REQUIRE(!fi_close(&ep->fid) && !fi_close(&tx->fid) && !fi_close(&rx->fid) && !fi_close(&sent->fid));
    REQUIRE(!fi_close(&av->fid) && !fi_close(&domain->fid) && !fi_close(&fabric->fid));
    fi_freeinfo(info);
}

#endif
