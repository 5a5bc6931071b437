/* The peers of benchmarks/curve.py: bare frames, UDP and TCP do the work of mxwire's hosts without its protocol.
 *
 *     curve_peers frames INTERFACE PEER_ADDRESS   active|passive trip|rate LENGTH COUNT WINDOW PAYLOAD HEADER
 *     curve_peers udp|tcp OWN_ADDRESS PEER_ADDRESS active|passive trip|rate LENGTH COUNT WINDOW 0 0
 *
 * "trip" exchanges messages of LENGTH bytes and prints half the round trip in seconds; "rate" sends COUNT messages, of
 * which WINDOW are answered together, and prints messages per second. Both sides poll. The passive side prints "ready".
 *
 * Frames carry PAYLOAD bytes each behind HEADER bytes, as the packets of the protocol do. Of a message of many frames,
 * BURST are sent before the receiver has confirmed those before, as a puller requests blocks: a veth pair drops frames
 * beyond its backlog. */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BURST 64
#define ETHERTYPE 0x88B5 /* for local experiments */
#define SHORTEST 60
#define PATIENCE 20.0

static int descriptor, streams;
static size_t length, payload, header;
static uint8_t head[64], *memory, *scratch;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

/* Poll until a datagram, a frame or a part of a stream has arrived. */
static size_t poll_for(void *into, size_t room)
{
    for (unsigned polls = 1;; polls++) {
        ssize_t found = recv(descriptor, into, room, MSG_DONTWAIT);
        if (found > 0)
            return (size_t)found;
        static double end;
        if (polls == 1 << 16)
            end = now() + PATIENCE;
        if (polls > 1 << 16 && !(polls & 0xFFFF) && now() > end) {
            fputs("nothing arrives\n", stderr);
            exit(1);
        }
    }
}

static void send_frames(size_t from, size_t frames)
{
    static struct mmsghdr messages[BURST];
    static struct iovec pieces[BURST][2];
    static uint8_t padding[SHORTEST];
    for (size_t each = 0; each < frames; each++) {
        size_t start = (from + each) * payload, size = start < length ? length - start : 0;
        size = size < payload ? size : payload;
        pieces[each][0] = (struct iovec){head, header};
        pieces[each][1] = (struct iovec){memory + start, size};
        if (header + size < SHORTEST)
            pieces[each][1] = (struct iovec){padding, SHORTEST - header};
        messages[each].msg_hdr = (struct msghdr){.msg_iov = pieces[each], .msg_iovlen = 2};
    }
    for (size_t done = 0; done < frames;) {
        int sent = sendmmsg(descriptor, messages + done, (unsigned)(frames - done), 0);
        if (sent < 0)
            fail("sendmmsg");
        done += (size_t)sent;
    }
}

static void receive_frames(size_t from, size_t frames)
{
    for (size_t each = 0; each < frames; each++) {
        size_t found = poll_for(scratch, payload + header + SHORTEST);
        size_t start = (from + each) * payload;
        if (start < length && found > header)
            memcpy(memory + start, scratch + header, found - header < length - start ? found - header : length - start);
    }
}

static void confirm(void)
{
    uint8_t frame[SHORTEST] = {0};
    memcpy(frame, head, 14);
    if (send(descriptor, frame, sizeof frame, 0) < 0)
        fail("send");
}

static void send_message(void)
{
    if (header) {
        size_t frames = length ? (length + payload - 1) / payload : 1;
        for (size_t from = 0, unconfirmed = 0; from < frames; from += BURST) {
            if (unconfirmed++)
                poll_for(scratch, SHORTEST);
            send_frames(from, frames - from < BURST ? frames - from : BURST);
        }
        return;
    }
    for (size_t done = 0, whole = length ? length : 1; done < whole;) {
        ssize_t sent = send(descriptor, memory + done, whole - done, 0);
        if (sent < 0)
            fail("send");
        done += (size_t)sent;
    }
}

static void receive_message(void)
{
    if (header) {
        size_t frames = length ? (length + payload - 1) / payload : 1;
        for (size_t from = 0; from < frames; from += BURST) {
            receive_frames(from, frames - from < BURST ? frames - from : BURST);
            if (from + BURST < frames)
                confirm();
        }
        return;
    }
    for (size_t done = 0, whole = length ? length : 1; done < whole;)
        done += poll_for(memory + done, whole - done);
}

static void acknowledge(void)
{
    if (header)
        confirm();
    else if (send(descriptor, "a", 1, 0) < 0)
        fail("send");
}

static void open_frames(const char *interface, const char *peer)
{
    struct ifreq request = {0};
    struct sockaddr_ll own = {.sll_family = AF_PACKET, .sll_protocol = htons(ETHERTYPE)};
    int bytes = 64 << 20;
    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", interface);
    descriptor = socket(AF_PACKET, SOCK_RAW, htons(ETHERTYPE));
    own.sll_ifindex = (int)if_nametoindex(interface);
    if (descriptor < 0 || bind(descriptor, (struct sockaddr *)&own, sizeof own) < 0)
        fail("packet socket");
    setsockopt(descriptor, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes);
    setsockopt(descriptor, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof bytes);
    setsockopt(descriptor, SOL_PACKET, PACKET_IGNORE_OUTGOING, &(int){1}, sizeof(int));
    if (ioctl(descriptor, SIOCGIFHWADDR, &request) < 0)
        fail(interface);
    sscanf(peer, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", head, head + 1, head + 2, head + 3, head + 4, head + 5);
    memcpy(head + 6, request.ifr_hwaddr.sa_data, 6);
    head[12] = ETHERTYPE >> 8;
    head[13] = ETHERTYPE & 0xFF;
}

static void open_inet(const char *own, const char *peer, int passive)
{
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons((uint16_t)(7000 + passive))}, there = here;
    there.sin_port = htons((uint16_t)(7000 + !passive));
    inet_pton(AF_INET, own, &here.sin_addr);
    inet_pton(AF_INET, peer, &there.sin_addr);
    descriptor = socket(AF_INET, streams ? SOCK_STREAM : SOCK_DGRAM, 0);
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    if (bind(descriptor, (struct sockaddr *)&here, sizeof here) < 0)
        fail("bind");
    if (streams && passive) {
        int listener = descriptor;
        listen(listener, 1);
        puts("ready");
        fflush(stdout);
        descriptor = accept(listener, NULL, NULL);
    } else if (connect(descriptor, (struct sockaddr *)&there, sizeof there) < 0)
        fail("connect");
    if (streams)
        setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    else
        setsockopt(descriptor, SOL_SOCKET, SO_RCVBUFFORCE, &(int){64 << 20}, sizeof(int));
}

int main(int count, char **words)
{
    if (count != 11)
        return 2;
    int passive = !strcmp(words[4], "passive"), rate = !strcmp(words[5], "rate");
    long times = atol(words[7]), window = atol(words[8]);
    length = strtoul(words[6], NULL, 10);
    payload = strtoul(words[9], NULL, 10);
    header = strtoul(words[10], NULL, 10);
    memory = calloc(1, length + payload + 1);
    scratch = malloc(payload + header + SHORTEST);
    streams = !strcmp(words[1], "tcp");
    if (header)
        open_frames(words[2], words[3]);
    else
        open_inet(words[2], words[3], passive);
    if (passive && !streams) {
        puts("ready");
        fflush(stdout);
    }
    uint8_t answer[SHORTEST];
    double start = now();
    long warm = rate ? 0 : times / 10 + 1;
    for (long each = -warm; each < times; each++) {
        if (each == 0)
            start = now();
        if (passive)
            receive_message();
        else
            send_message();
        if (rate && (each + 1) % window)
            continue;
        if (!passive && rate)
            poll_for(answer, sizeof answer);
        else if (!passive)
            receive_message();
        else if (rate)
            acknowledge();
        else
            send_message();
    }
    double seconds = now() - start;
    if (!passive)
        printf("%.9g\n", rate ? times / seconds : seconds / times / 2);
    else
        usleep(1000);
    return 0;
}
