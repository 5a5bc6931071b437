"""All randomness of a run: one stream per purpose, each derived from the seed.

The draws of one fault therefore depend neither on other faults nor on the order of the hosts.
"""

from __future__ import annotations

from hashlib import sha256, shake_128
from random import Random


def stream(seed: int, *names: str | int) -> Random:
    """Return the generator for one purpose, named by words and numbers."""
    return Random(int.from_bytes(sha256("/".join(map(str, (seed, *names))).encode()).digest()[:8], "big"))


def payload(seed: int, message: int, length: int) -> bytes:
    """Return the bytes of a message."""
    return shake_128(f"{seed}/payload/{message}".encode()).digest(length)
