/* One-sided communication: fences, puts, gets and accumulates of all lengths between all ranks, and passive targets, also
 * of all ranks at once. */

#include <stdlib.h>

#include "mpi_require.h"

enum { LONGEST = 40000 };
static const int lengths[] = {1, 13, 500, 4100, LONGEST};

int main(int count, char **words)
{
    int rank, ranks;
    long long *window, *local = malloc(LONGEST * sizeof *local);
    MPI_Win win;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
    MPI_Win_allocate(LONGEST * sizeof *window, sizeof *window, MPI_INFO_NULL, MPI_COMM_WORLD, &window, &win);
    for (size_t place = 0; place < sizeof lengths / sizeof *lengths; place++) {
        int length = lengths[place];
        MPI_Win_fence(0, win);
        for (int each = 0; each < length; each++)
            local[each] = rank * 1000000LL + each;
        MPI_Put(local, length, MPI_LONG_LONG, right, 0, length, MPI_LONG_LONG, win);
        MPI_Win_fence(0, win);
        for (int each = 0; each < length; each++)
            require(window[each] == left * 1000000LL + each, "put");
        MPI_Win_fence(0, win);
        MPI_Get(local, length, MPI_LONG_LONG, right, 0, length, MPI_LONG_LONG, win);
        MPI_Win_fence(0, win);
        for (int each = 0; each < length; each++)
            require(local[each] == rank * 1000000LL + each, "get");
        for (int each = 0; each < length; each++)
            local[each] = 1;
        for (int target = 0; target < ranks; target++)
            MPI_Accumulate(local, length, MPI_LONG_LONG, target, 0, length, MPI_LONG_LONG, MPI_SUM, win);
        MPI_Win_fence(0, win);
        for (int each = 0; each < length; each++)
            require(window[each] == left * 1000000LL + each + ranks, "accumulate");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    window[0] = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    for (int times = 0; times < 10; times++) {
        long long one = 1, before;
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        MPI_Fetch_and_op(&one, &before, MPI_LONG_LONG, 0, 0, MPI_SUM, win);
        MPI_Win_unlock(0, win);
    }
    MPI_Win_lock_all(0, win);
    for (int times = 0; times < 20; times++) {
        long long one = 1, before;
        MPI_Fetch_and_op(&one, &before, MPI_LONG_LONG, 0, 0, MPI_SUM, win);
        MPI_Win_flush(0, win);
        MPI_Accumulate(&one, 1, MPI_LONG_LONG, 0, 0, 1, MPI_LONG_LONG, MPI_SUM, win);
    }
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
    require(rank || window[0] == 50 * ranks, "lock");
    MPI_Win_unlock(rank, win);
    MPI_Win_free(&win);
    MPI_Finalize();
    if (!rank)
        puts("done");
    free(local);
    return 0;
}
