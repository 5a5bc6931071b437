/* Boards, NIC ids, host names and info keys. */

#include <string.h>

#include "internal.h"

/* Info key of the library itself: the number of known hosts. */
#define KNOWN_HOSTS 0x100

struct lookup {
    char *name;
    uint64_t nic_id;
    int by_name;
    mx_return_t code;
};

static int check_lookup(struct mxw_endpoint *unused, void *argument)
{
    struct lookup *lookup = argument;
    (void)unused;
    lookup->code = mxw_code(lookup->by_name ? mxw_engine.find_host(lookup->name, &lookup->nic_id)
                                            : mxw_engine.find_nic(lookup->nic_id, lookup->name));
    return lookup->code != MX_NOT_COMPLETED;
}

/* Look a host up, and wait for it to be discovered while MX_NOT_COMPLETED is the answer: the engine limits the time. */
static mx_return_t look_up(struct lookup *lookup)
{
    /* Waits belong to an endpoint, of which this one has only the handle. */
    static struct mxw_endpoint host = {.handle = 1};
    if (!check_lookup(NULL, lookup))
        mxw_wait_for(&host, check_lookup, lookup, 0, MXW_STATE);
    return lookup->code == MX_NOT_COMPLETED ? MX_HOST_NOT_FOUND : lookup->code;
}

EXPORTED mx_return_t mx_hostname_to_nic_id(char *hostname, uint64_t *nic_id)
{
    static const char call[] = "mx_hostname_to_nic_id";
    if (!mxw_alive)
        return mxw_fail(NULL, call, MX_NOT_INITIALIZED);
    if (!hostname || !nic_id || !*hostname || !memchr(hostname, 0, MX_MAX_HOSTNAME_LEN))
        return mxw_fail(NULL, call, MX_BAD_HOSTNAME_ARGS);
    struct lookup lookup = {hostname, 0, 1, MX_NOT_COMPLETED};
    mx_return_t code = look_up(&lookup);
    if (code == MX_SUCCESS)
        *nic_id = lookup.nic_id;
    return mxw_fail(NULL, call, code);
}

EXPORTED mx_return_t mx_nic_id_to_hostname(uint64_t nic_id, char *hostname)
{
    static const char call[] = "mx_nic_id_to_hostname";
    char name[MX_MAX_HOSTNAME_LEN] = "";
    if (!mxw_alive || !hostname)
        return mxw_fail(NULL, call, mxw_alive ? MX_BAD_HOSTNAME_ARGS : MX_NOT_INITIALIZED);
    struct lookup lookup = {name, nic_id, 0, MX_NOT_COMPLETED};
    mx_return_t code = look_up(&lookup);
    if (code == MX_SUCCESS)
        strcpy(hostname, name);
    return mxw_fail(NULL, call, code);
}

EXPORTED mx_return_t mx_board_number_to_nic_id(uint32_t board, uint64_t *nic_id)
{
    static const char call[] = "mx_board_number_to_nic_id";
    if (!mxw_alive)
        return mxw_fail(NULL, call, MX_NOT_INITIALIZED);
    return mxw_fail(NULL, call, nic_id ? mxw_code(mxw_engine.board(board, nic_id)) : MX_BAD_NIC);
}

EXPORTED mx_return_t mx_nic_id_to_board_number(uint64_t nic_id, uint32_t *board)
{
    static const char call[] = "mx_nic_id_to_board_number";
    if (!mxw_alive)
        return mxw_fail(NULL, call, MX_NOT_INITIALIZED);
    uint64_t found;
    for (uint32_t place = 0; board && mxw_engine.board(place, &found) == MXW_OK; place++)
        if (found == nic_id) {
            *board = place;
            return MX_SUCCESS;
        }
    return mxw_fail(NULL, call, board ? MX_BOARD_UNKNOWN : MX_BAD_NIC);
}

EXPORTED mx_return_t mx_get_info(mx_endpoint_t handle, mx_get_info_key_t key, void *in, uint32_t in_length, void *out,
                                 uint32_t out_length)
{
    static const char call[] = "mx_get_info";
    uint32_t board = 0;
    if (!mxw_alive)
        return mxw_fail(NULL, call, MX_NOT_INITIALIZED);
    struct mxw_endpoint *endpoint = handle ? mxw_endpoint(handle) : NULL;
    if (handle && !endpoint)
        return mxw_fail_handle(call);
    if (endpoint)
        board = endpoint->board;
    else if (in && in_length >= sizeof board)
        memcpy(&board, in, sizeof board);
    if (!out)
        return mxw_fail(endpoint, call, MX_BAD_INFO_VAL);
    return mxw_fail(endpoint, call, mxw_code(mxw_engine.info(board, key, out, out_length)));
}

/* What Open MPI takes from the internals of MX. */

EXPORTED mx_return_t mx_open_board(int board, mx_endpt_handle_t *handle)
{
    static const char call[] = "mx_open_board";
    uint64_t nic_id;
    if (!mxw_alive)
        return mxw_fail(NULL, call, MX_NOT_INITIALIZED);
    mx_return_t code = board < 0 || !handle ? MX_BOARD_UNKNOWN : mxw_code(mxw_engine.board((uint32_t)board, &nic_id));
    if (handle)
        *handle = code == MX_SUCCESS ? board : MX__INVALID_HANDLE;
    return mxw_fail(NULL, call, code);
}

EXPORTED mx_return_t mx__get_mapper_state(mx_endpt_handle_t handle, mx_mapper_state_t *state)
{
    static const char call[] = "mx__get_mapper_state";
    /* Open MPI takes hosts with the same mapper as those of one network, so it is the same everywhere: a locally
     * administered address. */
    static const uint8_t mapper[] = {0x02, 0x6d, 0x78, 0x77, 0x00, 0x01};
    uint64_t nic_id;
    if (!mxw_alive)
        return mxw_fail(NULL, call, MX_NOT_INITIALIZED);
    if (!state || handle < 0 || mxw_engine.board((uint32_t)handle, &nic_id) != MXW_OK)
        return mxw_fail(NULL, call, MX_BOARD_UNKNOWN);
    memset(state, 0, sizeof *state);
    state->board_number = (uint32_t)handle;
    memcpy(state->mapper_mac, mapper, sizeof mapper);
    mxw_engine.info((uint32_t)handle, KNOWN_HOSTS, &state->num_hosts, sizeof state->num_hosts);
    state->map_version = state->network_configured = state->routes_valid = 1;
    return MX_SUCCESS;
}

EXPORTED int mx__regcache_clean(void *pointer, size_t length)
{
    /* No memory stays registered when a request has ended. */
    (void)pointer, (void)length;
    return 0;
}
