/* Sends one frame through AF_XDP as fast as possible: the limit for generators, without stamps and checks.
 *
 *     cc -O2 -o xdp_send xdp_send.c
 *     xdp_send INTERFACE DESTINATION BYTES SECONDS
 *
 * Only the sequence number after the Ethernet header changes. Prints frames, seconds and seconds of processor time. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_xdp.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#ifndef XDP_USE_SG
#define XDP_USE_SG (1 << 4)
#endif
#ifndef XDP_PKT_CONTD
#define XDP_PKT_CONTD (1 << 0)
#endif
#define TX_BUDGET 9 /* XDP_MAX_TX_SKB_BUDGET, Linux 6.18 */
#define BATCH 64
#define HEAD 64  /* bytes in the first of several descriptors: the kernel makes it linear, and the others pages */
#define LINEAR 3500

static void fail(const char *what) { perror(what); exit(1); }

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec * 1e-9;
}

static double processor(void) {
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return used.ru_utime.tv_sec + used.ru_stime.tv_sec + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6;
}

int main(int argc, char **argv) {
    if (argc != 5) { fprintf(stderr, "usage: xdp_send INTERFACE DESTINATION BYTES SECONDS\n"); return 2; }
    uint32_t size = atoi(argv[3]), pieces = 1;
    double duration = atof(argv[4]);
    uint32_t lengths[8] = {size};
    if (size > LINEAR) {
        lengths[0] = HEAD;
        for (uint32_t at = HEAD; at < size; at += 4096) lengths[pieces++] = size - at < 4096 ? size - at : 4096;
    }
    /* A power of two of descriptors per frame, so that a slot always has the same ones. */
    while (pieces & (pieces - 1)) { lengths[pieces - 1] /= 2; lengths[pieces] = size; for (uint32_t i = 0; i < pieces; i++) lengths[pieces] -= lengths[i]; pieces++; }
    uint32_t stride = (size + 63) / 64 * 64, slots = 1024 / pieces;
    while (slots > 2 * BATCH && (uint64_t)slots * stride > 1 << 19) slots /= 2;
    uint32_t ring = slots * pieces;
    size_t bytes = ((size_t)slots * stride + 4095) / 4096 * 4096;
    uint8_t *memory = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    int fd = socket(AF_XDP, SOCK_RAW, 0);
    if (fd < 0) fail("AF_XDP");
    struct xdp_umem_reg umem = {.addr = (uint64_t)(uintptr_t)memory, .len = bytes, .chunk_size = 4096, .flags = XDP_UMEM_UNALIGNED_CHUNK_FLAG};
    if (setsockopt(fd, SOL_XDP, XDP_UMEM_REG, &umem, sizeof umem)) fail("umem");
    uint32_t fill = 64;
    if (setsockopt(fd, SOL_XDP, XDP_UMEM_FILL_RING, &fill, sizeof fill) ||
        setsockopt(fd, SOL_XDP, XDP_UMEM_COMPLETION_RING, &ring, sizeof ring) ||
        setsockopt(fd, SOL_XDP, XDP_TX_RING, &ring, sizeof ring)) fail("rings");
    setsockopt(fd, SOL_XDP, TX_BUDGET, &ring, sizeof ring);
    struct xdp_mmap_offsets where;
    socklen_t length = sizeof where;
    if (getsockopt(fd, SOL_XDP, XDP_MMAP_OFFSETS, &where, &length)) fail("offsets");
    uint8_t *tx = mmap(0, where.tx.desc + ring * sizeof(struct xdp_desc), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, XDP_PGOFF_TX_RING);
    uint8_t *done = mmap(0, where.cr.desc + ring * 8, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, XDP_UMEM_PGOFF_COMPLETION_RING);
    if (tx == MAP_FAILED || done == MAP_FAILED) fail("mmap");
    struct sockaddr_xdp address = {.sxdp_family = AF_XDP, .sxdp_ifindex = if_nametoindex(argv[1]), .sxdp_flags = XDP_COPY | XDP_USE_NEED_WAKEUP | (pieces > 1 ? XDP_USE_SG : 0)};
    if (bind(fd, (struct sockaddr *)&address, sizeof address)) fail("bind");
    struct ifreq request = {0};
    strncpy(request.ifr_name, argv[1], IFNAMSIZ - 1);
    int query = socket(AF_UNIX, SOCK_DGRAM, 0);
    if (ioctl(query, SIOCGIFHWADDR, &request)) fail("address");
    struct xdp_desc *descriptors = (struct xdp_desc *)(tx + where.tx.desc);
    for (uint32_t slot = 0; slot < slots; slot++) {
        uint8_t *frame = memory + (size_t)slot * stride;
        unsigned octets[6] = {0};
        sscanf(argv[2], "%x:%x:%x:%x:%x:%x", octets, octets + 1, octets + 2, octets + 3, octets + 4, octets + 5);
        for (int i = 0; i < 6; i++) frame[i] = octets[i];
        memcpy(frame + 6, request.ifr_hwaddr.sa_data, 6);
        frame[12] = 0x86; frame[13] = 0xdf;
        uint64_t at = (uint64_t)slot * stride;
        for (uint32_t i = 0; i < pieces; at += lengths[i++])
            descriptors[slot * pieces + i] = (struct xdp_desc){at, lengths[i], i + 1 < pieces ? XDP_PKT_CONTD : 0};
    }
    uint32_t *producer = (uint32_t *)(tx + where.tx.producer), *consumer = (uint32_t *)(tx + where.tx.consumer);
    uint32_t *completed = (uint32_t *)(done + where.cr.producer), *taken = (uint32_t *)(done + where.cr.consumer);
    uint32_t index = 0;
    uint64_t sent = 0;
    double begun = seconds(), used = processor();
    while (seconds() - begun < duration) {
        *taken = __atomic_load_n(completed, __ATOMIC_ACQUIRE);
        if (ring - (index - __atomic_load_n(consumer, __ATOMIC_ACQUIRE)) >= BATCH * pieces) {
            for (int i = 0; i < BATCH; i++, sent++) memcpy(memory + sent % slots * stride + 14, &sent, 8);
            index += BATCH * pieces;
            __atomic_store_n(producer, index, __ATOMIC_RELEASE);
        }
        if (sendto(fd, 0, 0, MSG_DONTWAIT, 0, 0) < 0 && errno != EAGAIN && errno != EBUSY && errno != ENOBUFS) fail("send");
    }
    sent -= (index - __atomic_load_n(consumer, __ATOMIC_ACQUIRE)) / pieces;
    printf("%llu %.6f %.6f\n", (unsigned long long)sent, seconds() - begun, processor() - used);
    return 0;
}
