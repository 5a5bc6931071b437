/* All to all: each of several processes sends a message of its own to each other one, and checks all that it receives.
 *
 * Processes find each other without MPI: process number RANK opens endpoint RANK on its host, and the list of hosts
 * has the host of each process. examples/mx_alltoall.sh starts four of them on two hosts.
 *
 *   mxwire run -i veth0 --name alpha -- ./alltoall RANK alpha:0,alpha:0,beta:0,beta:0 [BYTES]
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "myriexpress.h"

#define KEY 0xa11
#define PROCESSES 64
/* Until all processes have started: a minute. */
#define CONNECT_MS 500
#define PAUSE_US 100000
#define ATTEMPTS 100

static unsigned char content(int from, int to, uint32_t place)
{
    return (unsigned char)(from * 31 + to * 17 + place);
}

int main(int count, char **words)
{
    mx_endpoint_t endpoint;
    mx_endpoint_addr_t partners[PROCESSES];
    mx_request_t sends[PROCESSES], receives[PROCESSES];
    unsigned char *sent[PROCESSES], *received[PROCESSES];
    mx_status_t status;
    uint32_t done, wrong = 0;
    int total = 0;
    if (count < 3) {
        fprintf(stderr, "usage: %s RANK HOST,HOST,… [BYTES]\n", words[0]);
        return 2;
    }
    int rank = atoi(words[1]);
    uint32_t bytes = count > 3 ? (uint32_t)atoi(words[3]) : 100000;
    /* Connects fail until all processes have started. */
    mx_set_error_handler(MX_ERRORS_RETURN);
    if (mx_init() != MX_SUCCESS || mx_open_endpoint(0, (uint32_t)rank, KEY, NULL, 0, &endpoint) != MX_SUCCESS)
        return 1;
    for (char *host = strtok(words[2], ","); host && total < PROCESSES; host = strtok(NULL, ","), total++) {
        uint64_t nic_id;
        mx_return_t code = MX_FAILURE;
        for (int attempt = 0; attempt < ATTEMPTS && code != MX_SUCCESS; attempt++) {
            code = mx_hostname_to_nic_id(host, &nic_id);
            if (code == MX_SUCCESS)
                code = mx_connect(endpoint, nic_id, (uint32_t)total, KEY, CONNECT_MS, &partners[total]);
            if (code != MX_SUCCESS)
                usleep(PAUSE_US);
        }
        if (code != MX_SUCCESS) {
            fprintf(stderr, "process %d cannot connect to process %d: %s\n", rank, total, mx_strerror(code));
            return 1;
        }
    }
    for (int other = 0; other < total; other++) {
        sent[other] = malloc(bytes + 1);
        received[other] = calloc(1, bytes + 1);
        for (uint32_t place = 0; place < bytes; place++)
            sent[other][place] = content(rank, other, place);
        mx_segment_t from = {sent[other], bytes}, to = {received[other], bytes};
        mx_irecv(endpoint, &to, 1, (uint64_t)other, MX_MATCH_MASK_NONE, NULL, &receives[other]);
        mx_isend(endpoint, &from, 1, partners[other], (uint64_t)rank, NULL, &sends[other]);
    }
    for (int other = 0; other < total; other++) {
        for (done = 0; !done;)
            mx_wait(endpoint, &receives[other], MX_INFINITE, &status, &done);
        wrong += status.code != MX_STATUS_SUCCESS || status.xfer_length != bytes;
        for (uint32_t place = 0; place < bytes; place++)
            wrong += received[other][place] != content(other, rank, place);
    }
    for (int other = 0; other < total; other++)
        for (done = 0; !done;)
            mx_wait(endpoint, &sends[other], MX_INFINITE, &status, &done);
    printf("process %d of %d: %u wrong bytes of %u messages\n", rank, total, wrong, total);
    mx_close_endpoint(endpoint);
    mx_finalize();
    return wrong != 0;
}
