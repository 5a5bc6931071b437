/* A condition of an MPI program, without which its job ends. */

#include <mpi.h>
#include <stdio.h>

static void require(int condition, const char *what)
{
    int rank;
    if (condition)
        return;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    fprintf(stderr, "rank %d: %s\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}
