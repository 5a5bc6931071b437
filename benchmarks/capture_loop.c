/* The limits to measure against: loops that read every field of every frame.
 *
 *   capture_loop libpcap FILE     over libpcap, into a sum
 *   capture_loop mapped FILE      over a mapped file (pcap, little-endian, nanoseconds), into an array per field
 *
 * Prints the number of frames, the sum of all fields, and the seconds of the loop.
 * fields.inc is generated from mxwire's formats: a case for each packet type, a FIELD for each field, and an END. */

#include <arpa/inet.h>
#include <fcntl.h>
#include <pcap/pcap.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#define TYPE_OFFSET 16
#define BLOCKS 128
#define PLACES 24
#define READ_1(offset) frame[offset]
#define READ_2(offset) ntohs(load_2(frame + (offset)))
#define READ_4(offset) ntohl(load_4(frame + (offset)))
#define READ_6(offset) ((uint64_t)READ_2(offset) << 32 | READ_4((offset) + 2))
#define ARRAY_1 uint8_t
#define ARRAY_2 uint16_t
#define ARRAY_4 uint32_t
#define ARRAY_6 uint64_t

static uint64_t sum;
static void *arrays[BLOCKS][PLACES];
static uint32_t counts[BLOCKS];
static uint8_t widths[BLOCKS][PLACES];

static inline uint16_t load_2(const u_char *at) { uint16_t value; memcpy(&value, at, 2); return value; }
static inline uint32_t load_4(const u_char *at) { uint32_t value; memcpy(&value, at, 4); return value; }

#define FIELD(block, place, size, offset) sum += READ_##size(offset);
#define END(block)
static void add_fields(const u_char *frame, uint32_t captured)
{
    if (captured <= TYPE_OFFSET)
        return;
    switch (frame[TYPE_OFFSET]) {
#include "fields.inc"
    }
}

#undef FIELD
#undef END
#define FIELD(block, place, size, offset) ((ARRAY_##size *)arrays[block][place])[counts[block]] = READ_##size(offset);
#define END(block) counts[block]++;
static void store_fields(const u_char *frame, uint32_t captured)
{
    if (captured <= TYPE_OFFSET)
        return;
    switch (frame[TYPE_OFFSET]) {
#include "fields.inc"
    }
}

/* Space for as many frames of each type as the file may have; memory that is not written is not used. */
static void allocate(size_t most)
{
#define ARRAY(block, place, size) \
    arrays[block][place] = malloc(most * sizeof(ARRAY_##size)), widths[block][place] = sizeof(ARRAY_##size);
#include "arrays.inc"
}

static void sum_arrays(void)
{
    for (int block = 0; block < BLOCKS; block++)
        for (int place = 0; place < PLACES; place++)
            for (uint32_t each = 0; arrays[block][place] != NULL && each < counts[block]; each++)
                switch (widths[block][place]) {
                case 1: sum += ((uint8_t *)arrays[block][place])[each]; break;
                case 2: sum += ((uint16_t *)arrays[block][place])[each]; break;
                case 4: sum += ((uint32_t *)arrays[block][place])[each]; break;
                case 8: sum += ((uint64_t *)arrays[block][place])[each]; break;
                }
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static uint64_t over_libpcap(const char *path)
{
    char error[PCAP_ERRBUF_SIZE];
    struct pcap_pkthdr *header;
    const u_char *frame;
    uint64_t frames = 0;
    pcap_t *capture = pcap_open_offline_with_tstamp_precision(path, PCAP_TSTAMP_PRECISION_NANO, error);
    if (capture == NULL) {
        fprintf(stderr, "%s\n", error);
        exit(1);
    }
    while (pcap_next_ex(capture, &header, &frame) == 1) {
        frames++;
        sum += header->ts.tv_sec * 1000000000ull + header->ts.tv_usec + header->len;
        add_fields(frame, header->caplen);
    }
    pcap_close(capture);
    return frames;
}

/* A record begins with seconds, nanoseconds, captured length and length. */
static uint64_t over_map(const char *path, uint64_t **times, uint32_t **lengths)
{
    struct stat status;
    int file = open(path, O_RDONLY);
    if (file < 0 || fstat(file, &status) < 0) {
        perror(path);
        exit(1);
    }
    const u_char *at = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file, 0);
    const u_char *end = at + status.st_size;
    uint32_t head[4];
    uint64_t frames = 0;
    size_t most = (size_t)status.st_size / (sizeof head + 1);
    if (at == MAP_FAILED || status.st_size < 24 || (memcpy(head, at, 4), head[0]) != 0xA1B23C4D) {
        fprintf(stderr, "%s: not a pcap file with nanoseconds\n", path);
        exit(1);
    }
    *times = malloc(most * sizeof **times);
    *lengths = malloc(most * sizeof **lengths);
    allocate(most);
    for (at += 24; (size_t)(end - at) >= sizeof head; at += head[2]) {
        memcpy(head, at, sizeof head);
        at += sizeof head;
        if ((size_t)(end - at) < head[2])
            break;
        (*times)[frames] = head[0] * 1000000000ull + head[1];
        (*lengths)[frames++] = head[3];
        store_fields(at, head[2]);
    }
    return frames;
}

int main(int count, char **words)
{
    uint64_t frames, *times = NULL;
    uint32_t *lengths = NULL;
    if (count != 3)
        return 2;
    double start = now();
    int mapped = !strcmp(words[1], "mapped");
    frames = mapped ? over_map(words[2], &times, &lengths) : over_libpcap(words[2]);
    double seconds = now() - start;
    if (mapped)
        sum_arrays();
    for (uint64_t each = 0; mapped && each < frames; each++)
        sum += times[each] + lengths[each];
    printf("%llu %llu %.9f\n", (unsigned long long)frames, (unsigned long long)sum, seconds);
    return 0;
}
