/* A plain MX endpoint in the process of an endpoint of the provider mx, as its partner: it can send what no provider does,
 * and leave unanswered what it is sent. */

#ifndef FABRIC_PARTNER_H
#define FABRIC_PARTNER_H

#include <mx_extensions.h>
#include <myriexpress.h>

#include "fabric_endpoint.h"

enum { PROVIDER_KEY = 0x6d7b };
/* Match information of each kind: messages, those with data, envelopes, grants, accesses, replies, bulks. */
#define MATCH(kind) ((UINT64_C(0xff00) + (kind)) << 48)
static mx_endpoint_t partner;
static mx_endpoint_addr_t target; /* the endpoint of the provider, for the partner */
static fi_addr_t other;           /* the partner, for the endpoint of the provider */

static inline void open_partner(void)
{
    uint64_t nic_id;
    uint32_t number;
    char name[ADDRESS];
    mx_endpoint_addr_t address;
    mx_set_error_handler(MX_ERRORS_RETURN);
    REQUIRE(mx_open_endpoint(0, MX_ANY_ENDPOINT, PROVIDER_KEY, NULL, 0, &partner) == MX_SUCCESS);
    memcpy(&nic_id, own, sizeof nic_id);
    memcpy(&number, own + sizeof nic_id, sizeof number);
    REQUIRE(mx_connect(partner, nic_id, number, PROVIDER_KEY, MX_INFINITE, &target) == MX_SUCCESS);
    memcpy(name, own, ADDRESS);
    mx_get_endpoint_addr(partner, &address);
    mx_decompose_endpoint_addr(address, &nic_id, &number);
    memcpy(name, &nic_id, sizeof nic_id);
    memcpy(name + sizeof nic_id, &number, sizeof number);
    REQUIRE(fi_av_insert(av, name, 1, &other, 0, NULL) == 1);
}

/* Take what has ended, of requests that nobody waits for. */
static inline void forget_all(void)
{
    mx_status_t status;
    uint32_t found = 1;
    while (found && mx_test_any(partner, 0, 0, &status, &found) == MX_SUCCESS) {
    }
}

/* Send a message to the endpoint of the provider, and do not wait for its end. */
static inline void send_raw(const void *data, size_t length, uint64_t match)
{
    mx_segment_t segment = {(void *)data, (uint32_t)length};
    mx_request_t request;
    REQUIRE(mx_isend(partner, &segment, 1, target, match, NULL, &request) == MX_SUCCESS);
    mx_forget(partner, &request);
}

#endif
