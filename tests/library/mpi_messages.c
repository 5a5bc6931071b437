/* An MPI program for two or more ranks: unexpected messages in another order, probes, cancels, collectives, one-sided
 * transfers. It prints a line per part, and ends with code 1 at the first wrong byte. */

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;

static void fill(char *data, int length, int seed)
{
    for (int place = 0; place < length; place++)
        data[place] = (char)(place * 7 + place / 251 + seed);
}

static void require(int condition, const char *what)
{
    if (!condition) {
        fprintf(stderr, "rank %d: %s\n", rank, what);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static void verify(const char *data, int length, int seed, const char *what)
{
    for (int place = 0; place < length; place++)
        require(data[place] == (char)(place * 7 + place / 251 + seed), what);
}

static void done(const char *part)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (!rank)
        printf("%s\n", part);
}

/* Every rank sends messages of all kinds with one tag; rank 0 receives them in reverse order of rank. */
static void reverse(void)
{
    static const int lengths[] = {0, 1, 200, 300, 4096, 10000, 32752, 32753, 300000};
    static char data[300000];
    for (size_t kind = 0; kind < sizeof lengths / sizeof *lengths; kind++) {
        int length = lengths[kind];
        if (rank) {
            fill(data, length, rank);
            MPI_Request request;
            MPI_Isend(data, length, MPI_BYTE, 0, 7, MPI_COMM_WORLD, &request);
            MPI_Ssend(NULL, 0, MPI_BYTE, 0, 8, MPI_COMM_WORLD);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else {
            for (int from = 1; from < size; from++)
                MPI_Recv(NULL, 0, MPI_BYTE, from, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (int from = size - 1; from > 0; from--) {
                MPI_Recv(data, sizeof data, MPI_BYTE, from, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                verify(data, length, from, "a message in reverse order is wrong");
            }
        }
    }
    done("reverse");
}

static void probe(int length)
{
    char *data = malloc(2 * (size_t)length);
    fill(data, length, rank);
    if (rank) {
        for (int tag = 1; tag <= 2; tag++)
            MPI_Send(data, length, MPI_BYTE, 0, tag, MPI_COMM_WORLD);
    } else {
        for (int left = 2 * (size - 1); left; left--) {
            MPI_Status status;
            MPI_Message message;
            int count;
            MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
            MPI_Mprobe(status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD, &message, &status);
            MPI_Get_count(&status, MPI_BYTE, &count);
            require(count == length, "a probe gives the wrong length");
            MPI_Mrecv(data + length, length, MPI_BYTE, &message, MPI_STATUS_IGNORE);
            verify(data + length, length, status.MPI_SOURCE, "a probed message is wrong");
        }
    }
    free(data);
    done("probe");
}

static void cancel(void)
{
    char data[8];
    MPI_Request request;
    MPI_Status status;
    int cancelled;
    MPI_Irecv(data, sizeof data, MPI_BYTE, MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &cancelled);
    require(cancelled, "a receive is not cancelled");
    done("cancel");
}

static void collective(void)
{
    enum { EACH = 240000 };
    char *from = malloc((size_t)size * EACH), *to = malloc((size_t)size * EACH);
    for (int rank_to = 0; rank_to < size; rank_to++)
        fill(from + rank_to * EACH, EACH, rank * 16 + rank_to);
    MPI_Alltoall(from, EACH, MPI_BYTE, to, EACH, MPI_BYTE, MPI_COMM_WORLD);
    for (int sender = 0; sender < size; sender++)
        verify(to + sender * EACH, EACH, sender * 16 + rank, "a part of Alltoall is wrong");
    free(from);
    free(to);
    done("collective");
}

static void many(void)
{
    enum { COUNT = 2000 };
    static MPI_Request requests[2 * COUNT];
    static int sent[COUNT], received[COUNT];
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    for (int place = 0; place < COUNT; place++) {
        sent[place] = place * size + rank;
        MPI_Irecv(&received[place], 1, MPI_INT, left, place, MPI_COMM_WORLD, &requests[place]);
    }
    for (int place = COUNT; place-- > 0;)
        MPI_Isend(&sent[place], 1, MPI_INT, right, place, MPI_COMM_WORLD, &requests[COUNT + place]);
    MPI_Waitall(2 * COUNT, requests, MPI_STATUSES_IGNORE);
    for (int place = 0; place < COUNT; place++)
        require(received[place] == place * size + left, "one of many messages is wrong");
    done("many");
}

static void derived(void)
{
    static int from[2][3000], to[2][3000];
    MPI_Datatype column;
    MPI_Type_vector(1000, 1, 3, MPI_INT, &column);
    MPI_Type_commit(&column);
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    for (int place = 0; place < 3000; place++)
        from[0][place] = place + rank;
    MPI_Sendrecv(from[0], 1, column, right, 3, to[0], 1, column, left, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int place = 0; place < 3000; place++)
        require(to[0][place] == (place % 3 || place >= 2998 ? 0 : place + left), "a column is wrong");
    MPI_Type_free(&column);
    done("derived");
}

int main(int count, char **words)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    reverse();
    probe(100);
    probe(20000);
    probe(100000);
    cancel();
    collective();
    many();
    derived();
    MPI_Finalize();
    return 0;
}
