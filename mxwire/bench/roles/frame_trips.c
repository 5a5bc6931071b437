/* Ping-pong of bare frames through packet sockets: the null model, which has neither a protocol nor an interpreter.
 *
 *     frame_trips INTERFACE ETHERTYPE OWN OTHER active|passive SIZE COUNT
 *
 * Both sides poll. The active side prints the ns of each round trip. It repeats the first frame until it is answered,
 * since the passive side may not listen yet. */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#define HEADER 14
#define SHORTEST 60
#define PATIENCE 5000000000LL
#define GREETING 20000000LL

static int descriptor;
static uint8_t out[65536 + HEADER], in[65536 + HEADER];

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

/* Poll for a frame, and return its number; -1 if none arrives in time. */
static int64_t next_frame(int64_t patience)
{
    int64_t end = 0;
    for (unsigned polls = 1;; polls++) {
        if (recv(descriptor, in, sizeof in, MSG_DONTWAIT) >= HEADER + 4) {
            uint32_t number;
            memcpy(&number, in + HEADER, 4);
            return number;
        }
        if (polls % 1024 == 0) {
            int64_t time = now();
            if (!end)
                end = time + patience;
            else if (time > end)
                return -1;
        }
    }
}

static void send_frame(uint32_t number, size_t size)
{
    memcpy(out + HEADER, &number, 4);
    if (send(descriptor, out, HEADER + size < SHORTEST ? SHORTEST : HEADER + size, 0) < 0)
        fail("send");
}

int main(int argc, char **argv)
{
    if (argc != 8)
        return 2;
    unsigned type = (unsigned)strtoul(argv[2], NULL, 0);
    size_t size = strtoul(argv[6], NULL, 0);
    uint32_t count = (uint32_t)strtoul(argv[7], NULL, 0);
    for (int byte = 0; byte < 6; byte++) {
        unsigned own, other;
        if (sscanf(argv[3] + 2 * byte, "%2x", &own) != 1 || sscanf(argv[4] + 2 * byte, "%2x", &other) != 1)
            return 2;
        out[byte] = (uint8_t)other;
        out[6 + byte] = (uint8_t)own;
    }
    out[12] = (uint8_t)(type >> 8);
    out[13] = (uint8_t)type;
    if (size < 4 || size > sizeof out - HEADER)
        return 2;
    struct sockaddr_ll place = {.sll_family = AF_PACKET, .sll_protocol = htons((uint16_t)type)};
    place.sll_ifindex = (int)if_nametoindex(argv[1]);
    if (!place.sll_ifindex)
        fail(argv[1]);
    descriptor = socket(AF_PACKET, SOCK_RAW, htons((uint16_t)type));
    if (descriptor < 0 || bind(descriptor, (struct sockaddr *)&place, sizeof place))
        fail("socket");
    if (strcmp(argv[5], "active")) {
        for (int64_t number = 0; number < count;) {
            if ((number = next_frame(PATIENCE)) < 0)
                return 3;
            send_frame((uint32_t)number, size);
        }
        return 0;
    }
    int64_t end = now() + PATIENCE;
    do {
        if (now() > end)
            return 3;
        send_frame(0, size);
    } while (next_frame(GREETING) < 0);
    for (uint32_t number = 1; number <= count; number++) {
        int64_t begun = now(), found;
        send_frame(number, size);
        while ((found = next_frame(PATIENCE)) != number)
            if (found < 0)
                return 3;
        printf("%lld\n", (long long)(now() - begun));
    }
    return 0;
}
