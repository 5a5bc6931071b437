"""Message patterns and collectives of MPI benchmarks over a small communicator, and the columns of IMB and OSU.

``communicator.py`` is the API that patterns use: ranks exchange buffers by ``isend`` and ``irecv``, and a program is a
generator that yields the operations it waits for. A program therefore runs unchanged over live endpoints, over TCP and
in virtual time. ``collectives.py`` has the algorithms, each by its name; ``patterns.py`` the benchmarks of IMB;
``columns.py`` the output of IMB and OSU; ``carriers.py`` live communicators, and ``rank.py`` the process of a rank.
``push.py`` and ``signals.py`` are ways of progress of ``bench overlap``, which runs programs of its own.
"""
