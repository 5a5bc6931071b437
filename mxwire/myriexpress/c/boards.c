/* The boards that mx_init would open, without Python: for callers that only ask, such as the provider of libfabric. */

#define _GNU_SOURCE
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "internal.h"

#define ETHERNET 1 /* ARPHRD_ETHER */
#define PACKETS 17 /* AF_PACKET */

/* MTU that the longest frame of the dialect needs, as in mxwire/host/mtu.py. */
#define MTU_MXOE 4130
#define MTU_OMX 9000
#define MTU_UNUSED 14
/* Of a host without an interface: the first address of mxwire/link/memory.py. */
#define NIC_ID_ALONE UINT64_C(0x020000000001)

static int needed_mtu(void)
{
    const char *dialect = getenv("MXWIRE_DIALECT");
    if (!dialect || strncasecmp(dialect, "omx", 3))
        return MTU_MXOE;
    return (dialect[3] == ':' ? atoi(dialect + 4) : MTU_OMX) - MTU_UNUSED;
}

struct board {
    uint64_t nic_id;
    int up, mtu;
};

/* Return 0 if an interface is not an Ethernet interface. */
static int examine(int descriptor, const char *name, struct board *board)
{
    struct ifreq request = {0};
    if (strlen(name) >= sizeof request.ifr_name)
        return 0;
    strcpy(request.ifr_name, name);
    if (ioctl(descriptor, SIOCGIFHWADDR, &request) || request.ifr_hwaddr.sa_family != ETHERNET)
        return 0;
    board->nic_id = 0;
    for (int place = 0; place < 6; place++)
        board->nic_id = board->nic_id << 8 | (uint8_t)request.ifr_hwaddr.sa_data[place];
    board->up = !ioctl(descriptor, SIOCGIFFLAGS, &request) && request.ifr_flags & IFF_UP;
    board->mtu = ioctl(descriptor, SIOCGIFMTU, &request) ? 0 : request.ifr_mtu;
    return 1;
}

static mx_return_t refuse(char *reason, size_t room, const char *name, const char *why)
{
    snprintf(reason, room, "%s%s%s", name, *name ? ": " : "", why);
    return MX_NO_DEV;
}

static mx_return_t add(const char *name, const struct board *board, uint64_t *nic_ids, uint32_t room, uint32_t *count,
                       char *reason, size_t length)
{
    if (!board->up)
        return refuse(reason, length, name, "the interface is down");
    if (board->mtu < needed_mtu())
        return refuse(reason, length, name, "its MTU is too small for the dialect");
    if (*count < room)
        nic_ids[(*count)++] = board->nic_id;
    return MX_SUCCESS;
}

static mx_return_t add_named(int descriptor, const char *names, uint64_t *nic_ids, uint32_t room, uint32_t *count,
                             char *reason, size_t length)
{
    char *copy = strdup(names), *rest = copy;
    mx_return_t code = copy ? MX_SUCCESS : MX_NO_RESOURCES;
    for (char *name; code == MX_SUCCESS && (name = strsep(&rest, ","));) {
        struct board board;
        name += strspn(name, " ");
        name[strcspn(name, " ")] = 0;
        if (!*name)
            continue;
        code = examine(descriptor, name, &board) ? add(name, &board, nic_ids, room, count, reason, length)
                                                 : refuse(reason, length, name, "no Ethernet interface");
    }
    free(copy);
    return code;
}

/* The only interface that is up and has the MTU of the dialect. */
static mx_return_t add_only(int descriptor, uint64_t *nic_ids, uint32_t room, uint32_t *count, char *reason,
                            size_t length)
{
    struct if_nameindex *all = if_nameindex();
    uint32_t usable = 0;
    for (struct if_nameindex *each = all; each && each->if_name; each++) {
        struct board board;
        if (examine(descriptor, each->if_name, &board) && board.up && board.mtu >= needed_mtu() && ++usable == 1 && room)
            nic_ids[0] = board.nic_id;
    }
    if_freenameindex(all);
    *count = usable == 1;
    if (usable == 1)
        return MX_SUCCESS;
    return refuse(reason, length, "", usable ? "there are several Ethernet interfaces: choose with MXWIRE_INTERFACE"
                                             : "no Ethernet interface is up and has the MTU of the dialect");
}

/* A socket whose creation needs the permission that the engine's sockets need. They are of another family; but closing
 * one of these takes 10 ms, since the kernel waits until no processor uses it. */
static int privileged_socket(void)
{
    int descriptor = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW);
    return descriptor < 0 && errno != EPERM ? socket(PACKETS, SOCK_RAW | SOCK_CLOEXEC, 0) : descriptor;
}

EXPORTED mx_return_t mx__boards(uint64_t *nic_ids, uint32_t room, uint32_t *count, char *reason, size_t length)
{
    const char *names = getenv("MXWIRE_INTERFACE"), *alone = getenv("MX_NO_MYRINET");
    *count = 0;
    if (alone && *alone && strcmp(alone, "0") && room) {
        nic_ids[(*count)++] = NIC_ID_ALONE;
        return MX_SUCCESS;
    }
    int descriptor = privileged_socket();
    if (descriptor < 0) {
        refuse(reason, length, "", "no permission to open interfaces (CAP_NET_RAW)");
        return MX_NO_PERM;
    }
    mx_return_t code = names && *names ? add_named(descriptor, names, nic_ids, room, count, reason, length)
                                       : add_only(descriptor, nic_ids, room, count, reason, length);
    close(descriptor);
    return code;
}
