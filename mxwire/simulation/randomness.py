"""All randomness of a run comes from its seed, in one stream a concern.

So the draws of one fault do not depend on whether another one is switched on, nor on the order of the hosts.
"""

from __future__ import annotations

from hashlib import sha256, shake_128
from random import Random


def stream(seed: int, *names: str | int) -> Random:
    """The generator of one concern, named by words and numbers."""
    return Random(int.from_bytes(sha256("/".join(map(str, (seed, *names))).encode()).digest()[:8], "big"))


def payload(seed: int, message: int, length: int) -> bytes:
    """The bytes of a message."""
    return shake_128(f"{seed}/payload/{message}".encode()).digest(length)
