/* The contestant of benchmarks/mpi.py: messages between two ranks of MPI.
 *
 *   mpi_program KIND LENGTH COUNT WINDOW [KIND LENGTH COUNT WINDOW]...
 *
 * KIND: trip, half a round trip in s, or rate, messages/s with a window of messages that are answered together. Rank 0
 * prints a line per measurement. */

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank;
static char *memory;

static double trip(int length, int count)
{
    int warm = count / 10 + 1;
    double start = 0;
    for (int number = -warm; number < count; number++) {
        if (!number)
            start = MPI_Wtime();
        if (rank) {
            MPI_Recv(memory, length, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(memory, length, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
        } else {
            MPI_Send(memory, length, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
            MPI_Recv(memory, length, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }
    return (MPI_Wtime() - start) / count / 2;
}

static double rate(int length, int count, int window)
{
    MPI_Request *requests = malloc((size_t)window * sizeof *requests);
    double start = MPI_Wtime();
    for (int turn = 0; turn < count / window; turn++) {
        for (int place = 0; place < window; place++) {
            char *data = memory + (size_t)place * (size_t)length;
            if (rank)
                MPI_Irecv(data, length, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &requests[place]);
            else
                MPI_Isend(data, length, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &requests[place]);
        }
        MPI_Waitall(window, requests, MPI_STATUSES_IGNORE);
        if (rank)
            MPI_Send(NULL, 0, MPI_BYTE, 0, 3, MPI_COMM_WORLD);
        else
            MPI_Recv(NULL, 0, MPI_BYTE, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    free(requests);
    return count / (MPI_Wtime() - start);
}

int main(int words, char **word)
{
    MPI_Init(&words, &word);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int place = 1; place + 3 < words; place += 4) {
        int length = atoi(word[place + 1]), count = atoi(word[place + 2]), window = atoi(word[place + 3]);
        memory = calloc((size_t)window + 1, (size_t)length + 1);
        MPI_Barrier(MPI_COMM_WORLD);
        double result = strcmp(word[place], "trip") ? rate(length, count, window) : trip(length, count);
        if (!rank) {
            printf("%.9g\n", result);
            fflush(stdout);
        }
        free(memory);
    }
    MPI_Finalize();
    return 0;
}
