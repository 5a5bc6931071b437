"""A program of mpi4py: the sum over all ranks."""

from mpi4py import MPI

print(MPI.COMM_WORLD.allreduce(MPI.COMM_WORLD.rank + 1), flush=True)
