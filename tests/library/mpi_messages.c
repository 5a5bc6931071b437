/* An MPI program for two or more ranks: unexpected messages in another order, probes, cancels, collectives, persistent
 * requests, threads. It prints a line per part, and ends with code 1 at the first wrong byte. The
 * arguments name the parts; without any, all run. */

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mpi_require.h"

static int rank, size;

static void fill(char *data, int length, int seed)
{
    for (int place = 0; place < length; place++)
        data[place] = (char)(place * 7 + place / 251 + seed);
}

static void verify(const char *data, int length, int seed, const char *what)
{
    for (int place = 0; place < length; place++) {
        char right = (char)(place * 7 + place / 251 + seed);
        if (data[place] != right) {
            fprintf(stderr, "byte %d of %d is %d, not %d\n", place, length, data[place], right);
            require(0, what);
        }
    }
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
    static const int lengths[] = {0, 1, 200, 300, 4096, 10000, 32768, 32769, 300000};
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

static void synchronous(void)
{
    static char from[50000], to[50000];
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    for (int length = 0; length <= 50000; length += 10000) {
        MPI_Request request;
        fill(from, length, rank);
        MPI_Issend(from, length, MPI_BYTE, right, 5, MPI_COMM_WORLD, &request);
        MPI_Barrier(MPI_COMM_WORLD);
        int complete;
        MPI_Test(&request, &complete, MPI_STATUS_IGNORE);
        require(!complete, "a synchronous send ends before its receive");
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Recv(to, length, MPI_BYTE, left, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        verify(to, length, left, "a synchronous message is wrong");
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    done("synchronous");
}

/* Messages that MPI_Improbe finds, and none where there is none. */
static void improbe(void)
{
    static char data[40000];
    MPI_Message message;
    MPI_Status status;
    int found;
    MPI_Improbe(MPI_ANY_SOURCE, 77, MPI_COMM_WORLD, &found, &message, &status);
    require(!found, "a message is found that nobody sent");
    if (rank) {
        fill(data, sizeof data, rank);
        MPI_Send(data, sizeof data, MPI_BYTE, 0, 6, MPI_COMM_WORLD);
    } else {
        for (int left = size - 1; left; left--) {
            do
                MPI_Improbe(MPI_ANY_SOURCE, 6, MPI_COMM_WORLD, &found, &message, &status);
            while (!found);
            MPI_Mrecv(data, sizeof data, MPI_BYTE, &message, MPI_STATUS_IGNORE);
            verify(data, sizeof data, status.MPI_SOURCE, "a claimed message is wrong");
        }
    }
    done("improbe");
}

static void persistent(void)
{
    static char from[100000], to[100000];
    MPI_Request requests[2];
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    MPI_Recv_init(to, sizeof to, MPI_BYTE, left, 4, MPI_COMM_WORLD, &requests[0]);
    MPI_Send_init(from, sizeof from, MPI_BYTE, right, 4, MPI_COMM_WORLD, &requests[1]);
    for (int round = 0; round < 10; round++) {
        fill(from, sizeof from, rank + round);
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        verify(to, sizeof to, left + round, "a persistent receive is wrong");
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    done("persistent");
}

enum { THREADS = 4 };

/* Exchange messages with the same thread of the next rank. */
static void *exchange(void *number)
{
    enum { LONGEST = 60000 };
    int tag = 100 + (int)(size_t)number, right = (rank + 1) % size, left = (rank + size - 1) % size;
    char *from = malloc(LONGEST), *to = malloc(LONGEST);
    for (int round = 0; round < 40; round++) {
        int length = (round * 7919 + tag * 104729) % LONGEST;
        fill(from, length, rank + tag + round);
        MPI_Sendrecv(from, length, MPI_BYTE, right, tag, to, LONGEST, MPI_BYTE, left, tag, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        verify(to, length, left + tag + round, "a message of a thread is wrong");
    }
    free(from);
    free(to);
    return NULL;
}

static void threads(void)
{
    pthread_t made[THREADS];
    for (size_t number = 0; number < THREADS; number++)
        require(!pthread_create(&made[number], NULL, exchange, (void *)number), "a thread cannot start");
    for (int number = 0; number < THREADS; number++)
        pthread_join(made[number], NULL);
    done("threads");
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
    /* More long messages than MX has regions: a short one passes them. */
    enum { LONG = 300, LENGTH = 40000 };
    static char data[LENGTH];
    if (rank) {
        fill(data, LENGTH, 7);
        for (int place = 0; place < LONG; place++)
            MPI_Isend(data, LENGTH, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &requests[place]);
        MPI_Send(NULL, 0, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
        MPI_Waitall(LONG, requests, MPI_STATUSES_IGNORE);
    } else {
        for (int from = 1; from < size; from++)
            MPI_Recv(NULL, 0, MPI_BYTE, from, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int place = 0; place < LONG * (size - 1); place++) {
            memset(data, 0, LENGTH);
            MPI_Recv(data, LENGTH, MPI_BYTE, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            verify(data, LENGTH, 7, "one of many long messages is wrong");
        }
    }
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

static void probes(void)
{
    probe(100);
    probe(20000);
    probe(100000);
}

/* A rank dies after some messages, and the job with it; without the others' help, which wait for it. */
static void die_after(int rounds)
{
    static char data[1000000];
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    for (int round = 0; round <= rounds; round++) {
        if (round == rounds && rank == size - 1)
            raise(SIGKILL);
        MPI_Sendrecv(data, sizeof data, MPI_BYTE, right, 1, data, sizeof data, MPI_BYTE, left, 1, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
    }
}

static void killed_at_first(void)
{
    die_after(0);
}

static void killed(void)
{
    die_after(20);
}

/* With unexpected messages of all lengths, and while the others are in MPI_Finalize. */
static void killed_at_last(void)
{
    static char data[100000];
    MPI_Request request;
    for (int length = 10; length <= 100000; length *= 10)
        MPI_Isend(data, length, MPI_BYTE, (rank + 1) % size, 3, MPI_COMM_WORLD, &request);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == size - 1) {
        usleep(200000);
        raise(SIGKILL);
    }
}

int main(int count, char **words)
{
    static const struct {
        const char *name;
        void (*run)(void);
        int own; /* runs only if it is named */
    } parts[] = {
        {"reverse", reverse, 0},       {"probe", probes, 0},         {"cancel", cancel, 0},
        {"collective", collective, 0}, {"many", many, 0},            {"derived", derived, 0},
        {"improbe", improbe, 0},       {"synchronous", synchronous, 0}, {"persistent", persistent, 0},
        {"threads", threads, 1},       {"killed", killed, 1},
        {"killed-at-first", killed_at_first, 1}, {"killed-at-last", killed_at_last, 1},
    };
    int asked = MPI_THREAD_SINGLE, given;
    for (int word = 1; word < count; word++)
        if (!strcmp(words[word], "threads"))
            asked = MPI_THREAD_MULTIPLE;
    setvbuf(stdout, NULL, _IOLBF, 0);
    MPI_Init_thread(&count, &words, asked, &given);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    require(given >= asked, "MPI does not allow threads");
    for (size_t part = 0; part < sizeof parts / sizeof *parts; part++) {
        int named = count == 1 && !parts[part].own;
        for (int word = 1; word < count; word++)
            named |= !strcmp(words[word], parts[part].name);
        if (named)
            parts[part].run();
    }
    MPI_Finalize();
    return 0;
}
