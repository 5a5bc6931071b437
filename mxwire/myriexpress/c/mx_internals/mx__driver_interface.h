/* Internal calls of MX that Open MPI uses: the state of the mapper, and the cache of registered memory. */

#ifndef MX__DRIVER_INTERFACE_H
#define MX__DRIVER_INTERFACE_H

#include "mx_internals/mx__fops.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    uint32_t board_number;
    uint8_t mapper_mac[6];
    uint16_t iport;
    uint32_t map_version;
    uint32_t num_hosts;
    uint32_t network_configured;
    uint32_t routes_valid;
    uint32_t level;
    uint32_t flags;
} mx_mapper_state_t;

mx_return_t mx__get_mapper_state(mx_endpt_handle_t handle, mx_mapper_state_t *state);
int mx__regcache_clean(void *ptr, size_t len);

#ifdef __cplusplus
}
#endif

#endif
