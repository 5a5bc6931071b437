"""Channels: messages between two sides over mxwire's hosts, TCP, UDP or bare frames, with one API for all studies.

``channel.py`` has that API, and ``carriers.py`` opens a channel by the name of its carrier. Each other module has the
channels of some carriers.

Both sides know the size of each message, so carriers without message boundaries (TCP, frames) need no header that would
slow them down. Bare frames and UDP are the baseline: the same frames and calls without a protocol. They do not recover
from losses: a side that waits without success for ``SILENCE`` seconds raises ``SilenceError``, and the round is
repeated and marked.
"""
