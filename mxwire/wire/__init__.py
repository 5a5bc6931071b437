"""Decoding and encoding of MXoE frames: the formats, written once, and everything derived from them.

``formats.py`` describes every packet, and ``layout.py`` derives the offsets of fields and the lengths of headers from
it. ``numbers.py`` has the numbers of the protocol: limits, masks, and times such as the resend delay. ``codec.py``
decodes one frame, and recognises a malformed one; ``columns.py`` does so for a batch. ``checks.py`` lists a receiver's
checks of a single frame, ``dialect.py`` the sizes of each dialect, and ``detection.py`` finds the dialect of a pair of
hosts.
"""
