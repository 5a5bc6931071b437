"""The cost model: hosts in virtual time whose processors, copies, interrupts and links take times from a table.

The engine is unchanged: a step of a host is a call of its node, and the model charges for the frames, bytes, events and
calls of that step. ``tables.py`` has the machines, ``processor.py`` the cores, ``hosts.py`` hosts of mxwire on a link,
``streams.py`` hosts that use TCP, ``ranks.py`` programs of ranks on either, and ``calibration.py`` the table of this
machine.

A value of a table is *given* by a paper, *derived* from its numbers, *fitted* so that a number of the paper results, or
a *guess*. Numbers that were fitted are not evidence for a claim.
"""
