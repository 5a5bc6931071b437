/* Probes of partners for which operations wait, so that these end if the partner has died.
 *
 * Theory of operation
 * -------------------
 * MX detects that a partner has gone when it retransmits to it. An operation may wait although there is nothing to
 * retransmit: for a grant, a reply, the bulk that was granted, or a long message that the partner pulls. So once per
 * PROBE_MS, each partner for which a send waits, or for which a receive or an access to a region has waited since the last
 * time, is probed by another connect to it. MX answers that without the program, and even without its provider.
 *
 * The connect to a partner that is dead, or stopped, fails as that of a first send does: when its host reports that the
 * endpoint is closed, or after the retransmissions of MX. The operations that wait for it then fail, too. A partner that
 * was opened again answers with another session, and knows nothing of these operations.
 *
 * Only polls probe, since only they show a program that an operation has ended. */

#include "provider.h"

struct mxf_probe {
    struct mxf_work work;
    struct mxf_probe *previous, *next;
    struct mxf_endpoint *endpoint;
    struct mxf_address address;
};

int mxf_waits(const struct mxf_endpoint *endpoint)
{
    return endpoint->unsent || endpoint->granted.first || endpoint->visits.first;
}

int mxf_is_lost(const struct mxf_loss *loss, mx_endpoint_addr_t partner)
{
    struct mxf_address address = {0};
    uint32_t session = 0;
    return mx_decompose_endpoint_addr2(partner, &address.nic_id, &address.number, &session) == MX_SUCCESS &&
           mxf_same(&address, &loss->address) && !(loss->reopened && session == loss->session);
}

static void lose(struct mxf_endpoint *endpoint, const struct mxf_loss *loss)
{
    for (size_t place = 0; place < endpoint->connection_room; place++) {
        struct mxf_connection *connection = endpoint->connections[place];
        if (!connection || connection->state != MXF_CONNECTED || !mxf_is_lost(loss, connection->partner))
            continue;
        connection->state = MXF_UNCONNECTED;
        mxf_lose_sends(connection, mxf_error(loss->status.code));
        /* It also ends what MX would continue: long messages that the partner has begun to pull. */
        if (!loss->reopened)
            mx_disconnect(endpoint->mx, connection->partner);
    }
    mxf_lose_messages(endpoint, loss);
    mxf_lose_visits(endpoint, loss);
}

static void ended(struct mxf_work *work, const mx_status_t *status)
{
    struct mxf_probe *probe = OWNER(work, mxf_probe, work);
    struct mxf_endpoint *endpoint = probe->endpoint;
    struct mxf_loss loss = {.address = probe->address, .reopened = status->code == MX_STATUS_SUCCESS, .status = *status};
    REMOVE(&endpoint->probes, probe);
    mxf_free(endpoint, probe);
    if (loss.reopened) {
        mx_decompose_endpoint_addr2(status->source, &loss.address.nic_id, &loss.address.number, &loss.session);
        loss.status.code = MX_STATUS_BAD_SESSION;
    }
    if (mxf_gone(loss.status.code))
        lose(endpoint, &loss);
}

void mxf_probe_partner(struct mxf_endpoint *endpoint, const struct mxf_address *address)
{
    struct mxf_probe *probe = endpoint->probes.first;
    mx_request_t request;
    while (probe && !mxf_same(&probe->address, address))
        probe = probe->next;
    if (probe || !(probe = mxf_allocate(endpoint, sizeof *probe)))
        return;
    *probe = (struct mxf_probe){.work.ended = ended, .endpoint = endpoint, .address = *address};
    APPEND(&endpoint->probes, probe);
    mx_return_t code =
        mx_iconnect(endpoint->mx, address->nic_id, address->number, KEY, 0, &probe->work, &request);
    if (code != MX_SUCCESS) {
        REMOVE(&endpoint->probes, probe);
        mxf_free(endpoint, probe);
    }
}

void mxf_probe(struct mxf_endpoint *endpoint)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    uint64_t milliseconds = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
    if (milliseconds - endpoint->probed < PROBE_MS)
        return;
    endpoint->probed = milliseconds;
    for (size_t place = 0; place < endpoint->connection_room; place++) {
        struct mxf_connection *connection = endpoint->connections[place];
        if (connection && connection->unsent && connection->state == MXF_CONNECTED)
            mxf_probe_partner(endpoint, &connection->address);
    }
    mxf_probe_messages(endpoint);
    mxf_probe_visits(endpoint);
}
