"""The classic libraries for user-space communication as runnable models, side by side on one link.

Theory of operation
===================

Araki and others (1998) compared Active Messages (GAM; AM-II by its description), BIP, Fast Messages, PM and VMMC-2 on
Myrinet. Their tables say what each promises and how it moves data. Here each is a layer: calls, frames and the time
in; frames and deadlines out (``layer.py``). A layer has no socket and no clock, so the same code runs on a seeded wire
in memory (``wire.py``), on a real link inside the calls of a process, with an adapter that is another process
(``mxwire/bench/channels/cards.py``), and in virtual time on hosts whose adapters do their part
(``mxwire/bench/cost/libraries.py``).

All layers have one header of 32 bytes (``header.py``), so that no model has shorter frames::

     0  model 1 | kind 1 | flags 2          8  sequence number 4       16  buffer, tag or handler 4    24  length 4
     4  source port 2 | target port 2      12  ack or credit 4         20  offset 4                    28  key 4

A process is a port of a node. The sender's node is the address of the frame on the link, and not in the header. Every
field of a received frame is checked before it is used, except where a library trusted its partner: then a forged frame
is its catastrophe.

Data move in three manners, which are counted apart: *copied* by a processor in the library, *written* by a processor to
the adapter or *read* from it (programmed I/O), and *transferred* by the adapter (DMA), which needs the physical address
of user memory if that is where the data are (*translated*). In Python all are the same assignment; only the first two
cost a processor's time on the real machines. A program may produce and consume its data where the library wants them
(in place), or elsewhere (copied).

Frames between two ports are numbered, and an order (``order.py``) decides about numbers that do not follow: the network
is not checked at all (null, U-Net), a wrong number ends the layer with a named catastrophe (GAM, BIP, FM, PM, Portals),
or frames are retransmitted (AM-II, VMMC-2, GM). A lost credit or token leaves a layer waiting in silence: only the wire
detects this, as work left with no event due.

A row of the tables 1 to 3 of Araki and others is ``ModelFacts``. The tables are printed from it. ``behaviour.py`` plays
the models to find the value of each cell of tables 1 and 2; tests compare it with the facts for the libraries of the
paper, and claims are judged by it. GM (Myricom), Portals 3.0 (Maccabe and others, 2002) and U-Net (von Eicken and
others, 1995) are models, too; mx, TCP and UDP are rows, and exist elsewhere as channels; FM 1.x and the
Myricom API are rows without code.

Begin with ``layer.py``, then ``gam.py``; ``port.py`` is the face of all models for benchmarks, ``catalogue.py`` has
them by name, and ``comparison.py`` measures them through ``mxwire/bench/channels/models.py``.
"""
