"""Analysis of captures: conclusions from decoded frames, collected batch by batch. Nothing is printed here.

``inventory.py`` collects hosts, endpoints and packets (``mxwire info``). ``conversations/follower.py`` follows every
message from its first frame to its last. ``conversations/frame_marks.py`` lists the marks of frames, such as
"retransmission" and "duplicate"; ``conversations/numbered_packets.py`` decides them for messages and
``conversations/pulls.py`` for PULLs and PULL_REPLYs. ``timing/`` measures, ``verification.py`` applies the rules, and
``diagnosis/`` finds causes: each finding is made in a module of ``diagnosis/troubles/``, such as ``frames-lost`` in
``diagnosis/troubles/loss.py``.
``selection.py`` is the filter of all commands, with the expressions of ``--where`` in ``frame_expression.py``.
``merging/`` joins captures of the two ends of a path, ``compatibility/`` compares the builds of hosts, ``table.py``
turns frames into rows, and ``data_frames.py`` reads a capture into a data frame by one call.
"""
