"""``bench intranode``: how processes of one machine can hand each other data, and what each mechanism costs.

Theory of operation
-------------------
Buntinas, Mercier and Gropp (2006) compared five mechanisms in a common frame: open, register, copy on the source's
side, copy on the destination's side. Here a :class:`~mxwire.bench.intranode.mechanism.Mechanism` is that frame:
``give`` is the source's part of a message, ``take`` the destination's. A one-sided mechanism also moves data without
the other side (``move``); its ``give`` and ``take`` add the flags that notify the other side.

Each mechanism is a class in a file of this package, with a twin of the same name in ``mechanisms.c``: the twin is the
limit of the mechanism, and the ratio of both the cost of Python. A trial, a message of one byte, shows whether this
machine permits a mechanism, and the reason if not (``pair_starter.py``).

**A pair** (``pair.py``) is a program of two processes, one forked from the other after the mechanism was opened, each
pinned to its processor. Flags are words in anonymous shared memory, one per cache line. Only x86-64 makes the stores of
one processor visible in order to another one without a fence, so other machines are refused. A side that waits for a
flag polls it, and yields its processor from time to time: with a single processor, or on a busy machine, the other side
could otherwise not run. The study sends a pair one line per role, and gets one line with the values of both sides.

**Two methods.** *Round trips* halve the time of a message there and back. *Operations* are the paper's: a barrier, the
operation, and the time of barriers alone taken off; the destination measures it for mechanisms whose both sides act,
the initiator for others. The paper does not say whether its latencies contain the barrier; both are reported.

**Warm and cold.** ``warm`` uses the same buffers for every message, ``paper`` buffers that move on by a cache line
through more than eight times the second-level cache, ``cold`` buffers that move on by their length and a page through
more than four times the last-level cache.

**The other side.** A mechanism that one side carries out leaves the other its processor, in part: the kernel may stop
it, or use its memory. The slowdown is what a message adds to the time of a loop of the other side; a side that must act
itself takes its part of the message between two runs of the loop. An initiator moves and pauses in turns of less than
1 ms, so that the load of the machine is the same in what is compared.
"""
