/* The limit to measure against: one loop over libpcap that reads every field of every frame into a sum.
   fields.inc is generated from mxwire's formats: a case for each packet type, a READ for each field. */

#include <arpa/inet.h>
#include <pcap/pcap.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define TYPE_OFFSET 16
#define READ_1(offset) frame[offset]
#define READ_2(offset) ntohs(load_2(frame + (offset)))
#define READ_4(offset) ntohl(load_4(frame + (offset)))
#define READ_6(offset) ((uint64_t)READ_2(offset) << 32 | READ_4((offset) + 2))

static inline uint16_t load_2(const u_char *at) { uint16_t value; memcpy(&value, at, 2); return value; }
static inline uint32_t load_4(const u_char *at) { uint32_t value; memcpy(&value, at, 4); return value; }

static uint64_t sum_of_fields(const u_char *frame, uint32_t captured)
{
    if (captured <= TYPE_OFFSET)
        return 0;
    switch (frame[TYPE_OFFSET]) {
#include "fields.inc"
    }
    return 0;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

int main(int count, char **arguments)
{
    char error[PCAP_ERRBUF_SIZE];
    struct pcap_pkthdr *header;
    const u_char *frame;
    uint64_t frames = 0, sum = 0;
    double start = now();

    if (count != 2)
        return 2;
    pcap_t *capture = pcap_open_offline_with_tstamp_precision(arguments[1], PCAP_TSTAMP_PRECISION_NANO, error);
    if (capture == NULL) {
        fprintf(stderr, "%s\n", error);
        return 1;
    }
    while (pcap_next_ex(capture, &header, &frame) == 1) {
        frames++;
        sum += header->ts.tv_sec * 1000000000ull + header->ts.tv_usec + header->len;
        sum += sum_of_fields(frame, header->caplen);
    }
    pcap_close(capture);
    printf("%llu %llu %.9f\n", (unsigned long long)frames, (unsigned long long)sum, now() - start);
    return 0;
}
