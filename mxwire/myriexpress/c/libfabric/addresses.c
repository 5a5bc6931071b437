/* Address vectors, and the text of addresses.
 *
 * An address is the NIC id of a board, the number of an endpoint and its key. Inserting one only stores it: a send
 * connects, and fails if there is no such host or endpoint. The places of removed addresses are not used again, since
 * connections (sends.c) are entered by place.
 *
 * The source of each message is looked up by a hash table of addresses with open addressing. It leads to the place where
 * an address was inserted first, even if that was removed since; there is the first place that has it now. */

#include <inttypes.h>
#include <stdio.h>

#include "provider.h"

int mxf_same(const struct mxf_address *one, const struct mxf_address *other)
{
    return one->nic_id == other->nic_id && one->number == other->number;
}

int mxf_known(const struct mxf_av *av, fi_addr_t place)
{
    return av && place < av->count && !av->entries[place].removed;
}

/* Where the place of an address is, or would be, in the table: a place plus 1, or 0. */
static size_t *cell_of(const struct mxf_av *av, const struct mxf_address *address)
{
    uint64_t hash = (address->nic_id ^ (uint64_t)address->number << 48) * UINT64_C(0x9e3779b97f4a7c15);
    size_t cell = (size_t)(hash >> 32) % (2 * av->room);
    while (av->table[cell] && !mxf_same(&av->entries[av->table[cell] - 1].address, address))
        cell = (cell + 1) % (2 * av->room);
    return &av->table[cell];
}

fi_addr_t mxf_find(const struct mxf_av *av, const struct mxf_address *address)
{
    size_t found = av ? *cell_of(av, address) : 0;
    return found && av->entries[found - 1].count ? av->entries[found - 1].present : FI_ADDR_NOTAVAIL;
}

int mxf_read_service(const char *service, uint32_t *number)
{
    char *end;
    unsigned long value = strtoul(service, &end, 0);
    if (end == service || *end)
        return -FI_EINVAL;
    /* Programs name ports of IP, of which there are more than endpoints. */
    *number = (uint32_t)(value % ENDPOINT_NUMBERS);
    return 0;
}

/* Address of "host[:board]", or of the text that straddr writes; without a service, its number stays. */
int mxf_resolve(const char *node, const char *service, struct mxf_address *address)
{
    char name[MX_MAX_HOSTNAME_LEN];
    if (service && mxf_read_service(service, &address->number))
        return -FI_EINVAL;
    if (sscanf(node, "fi_addr_mx://%" SCNx64 ":%" SCNu32 ":%" SCNx32, &address->nic_id, &address->number,
               &address->key) == 3)
        return 0;
    if (strlen(node) >= sizeof name)
        return -FI_EINVAL;
    strcpy(name, node);
    int error = mxf_use_mx();
    if (error)
        return error;
    mx_return_t code = mx_hostname_to_nic_id(name, &address->nic_id);
    mxf_release_mx();
    return code == MX_SUCCESS ? 0 : -FI_ENODATA;
}

/* Make room for addresses. */
static int grow(struct mxf_av *av, size_t room)
{
    struct mxf_entry *more = realloc(av->entries, room * sizeof *more);
    size_t *table = calloc(2 * room, sizeof *table);
    if (more)
        av->entries = more;
    if (!more || !table) {
        free(table);
        return -FI_ENOMEM;
    }
    free(av->table);
    av->table = table;
    av->room = room;
    for (size_t place = 0; place < av->count; place++)
        if (av->entries[place].first == place)
            *cell_of(av, &av->entries[place].address) = place + 1;
    return 0;
}

static int add(struct mxf_av *av, const struct mxf_address *address)
{
    int error = av->count == av->room ? grow(av, 2 * av->room) : 0;
    if (error)
        return error;
    size_t place = av->count++, *cell = cell_of(av, address);
    av->entries[place] = (struct mxf_entry){.address = *address, .first = *cell ? *cell - 1 : place};
    *cell = av->entries[place].first + 1;
    struct mxf_entry *first = &av->entries[av->entries[place].first];
    if (!first->count++)
        first->present = place;
    return 0;
}

static void drop(struct mxf_av *av, size_t place)
{
    struct mxf_entry *entry = &av->entries[place], *first = &av->entries[entry->first];
    entry->removed = 1;
    if (!--first->count || first->present != place)
        return;
    do
        first->present++;
    while (av->entries[first->present].removed || av->entries[first->present].first != entry->first);
}

static int insert(struct fid_av *fid, const void *addresses, size_t count, fi_addr_t *places, uint64_t flags,
                  void *context)
{
    struct mxf_av *av = OWNER(fid, mxf_av, fid);
    int inserted = 0, *errors = flags & FI_SYNC_ERR ? context : NULL;
    mxf_enter();
    for (size_t place = 0; place < count; place++) {
        struct mxf_address address;
        memcpy(&address, (const char *)addresses + place * sizeof address, sizeof address);
        int error = address.nic_id == GONE ? -FI_EINVAL : add(av, &address);
        if (places)
            places[place] = error ? FI_ADDR_NOTAVAIL : av->count - 1;
        if (errors)
            errors[place] = -error;
        inserted += !error;
    }
    mxf_leave();
    return inserted;
}

static int insert_service(struct fid_av *fid, const char *node, const char *service, fi_addr_t *place, uint64_t flags,
                          void *context)
{
    struct mxf_address address = {0, 0, KEY};
    if (!node)
        return -FI_EINVAL;
    int error = mxf_resolve(node, service, &address);
    return error ? error : insert(fid, &address, 1, place, flags, context);
}

static int remove_(struct fid_av *fid, fi_addr_t *places, size_t count, uint64_t flags)
{
    struct mxf_av *av = OWNER(fid, mxf_av, fid);
    int result = 0;
    (void)flags;
    mxf_enter();
    for (size_t place = 0; place < count; place++) {
        if (mxf_known(av, places[place]))
            drop(av, places[place]);
        else
            result = -FI_EINVAL;
    }
    mxf_leave();
    return result;
}

static int lookup(struct fid_av *fid, fi_addr_t place, void *address, size_t *length)
{
    struct mxf_av *av = OWNER(fid, mxf_av, fid);
    mxf_enter();
    int known = mxf_known(av, place);
    if (known)
        memcpy(address, &av->entries[place].address, *length < sizeof(struct mxf_address) ? *length : sizeof(struct mxf_address));
    *length = sizeof(struct mxf_address);
    mxf_leave();
    return known ? 0 : -FI_EINVAL;
}

static const char *straddr(struct fid_av *fid, const void *bytes, char *buffer, size_t *length)
{
    struct mxf_address address;
    (void)fid;
    memcpy(&address, bytes, sizeof address);
    int written = snprintf(buffer, *length, "fi_addr_mx://%" PRIx64 ":%" PRIu32 ":%" PRIx32, address.nic_id,
                           address.number, address.key);
    *length = (size_t)written + 1;
    return buffer;
}

static int av_close(struct fid *fid)
{
    struct mxf_av *av = OWNER(fid, mxf_av, fid.fid);
    mxf_enter();
    int result = av->users ? -FI_EBUSY : 0;
    if (!result) {
        av->domain->users--;
        free(av->table);
        free(av->entries);
        free(av);
    }
    mxf_leave();
    return result;
}

static int bind_event_queue(struct fid *fid, struct fid *other, uint64_t flags)
{
    (void)fid, (void)flags;
    return other->fclass == FI_CLASS_EQ ? 0 : -FI_EINVAL;
}

static struct fi_ops fid_ops = {sizeof fid_ops, av_close,    bind_event_queue, UNSUPPORTED,
                                UNSUPPORTED,    UNSUPPORTED, UNSUPPORTED};
static struct fi_ops_av av_ops = {sizeof av_ops, insert, insert_service, UNSUPPORTED,
                                  remove_,       lookup, straddr,        UNSUPPORTED};

int mxf_av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **result, void *context)
{
    if (attr && (attr->name || attr->rx_ctx_bits || attr->flags & FI_EVENT))
        return -FI_ENOSYS;
    struct mxf_av *av = calloc(1, sizeof *av);
    if (!av)
        return -FI_ENOMEM;
    /* It grows, and the count that programs name is a guess. */
    if (grow(av, 64)) {
        free(av->entries);
        free(av);
        return -FI_ENOMEM;
    }
    av->domain = OWNER(domain, mxf_domain, fid);
    av->fid.fid = (struct fid){FI_CLASS_AV, context, &fid_ops};
    av->fid.ops = &av_ops;
    if (attr && attr->type == FI_AV_UNSPEC)
        attr->type = FI_AV_TABLE;
    mxf_enter();
    av->domain->users++;
    mxf_leave();
    *result = &av->fid;
    return 0;
}
