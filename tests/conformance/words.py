"""The words that describe the calls of an application: those of ``ptool``, with which most recordings were made.

``-e`` is the endpoint, ``-k`` the key; lengths are decimal, match information, masks and keys hexadecimal::

    -e 5 -k 11112222 connect:vm2/0:3:11112222 isend:8:1 waitall
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

REPEATED = {"isend": 4, "issend": 4, "irecv": 5}
"""Number of parts of a word that has a repeat count."""
QUIET = ("progress", "sleep", "waitall")
"""Calls that cause no frame."""
AT_ONCE = ("irecv", "ivrecv", "cancel", "recv", "waitall")
"""Calls whose time no frame shows; an application that does not wait makes them at once."""
SENDING = ("connect", "connectback", "iconnect", "isend", "issend", "send", "ssend", "vsend", "echo")
"""Calls that frames follow from."""
LEAVING = (*QUIET, "close", "end")
"""Calls between the last frame that an application sends and its end."""


@dataclass(frozen=True)
class Program:
    """One run of an application: endpoint, key and its calls."""

    endpoint: int
    key: int
    calls: tuple[str, ...]


def programs(texts: Iterable[str]) -> list[Program]:
    """The programs that one host ran, one after the other."""
    found = []
    for text in texts:
        words = deque(text.split())
        options = {"-e": "0", "-k": "12345678"}
        while words and words[0].startswith("-"):
            option = words.popleft()
            options[option] = words.popleft()
        calls = tuple(call for word in words for call in expand(word))
        found.append(Program(int(options["-e"]), int(options["-k"], 16), calls))
    return found


def expand(word: str) -> Iterator[str]:
    """The calls of a word, which may stand for several."""
    name, *arguments = word.split(":")
    if name in ("pong", "pong0"):
        count, maximum = arguments
        for place in range(int(count)):
            yield f"recv:{maximum}:0:0"
            if not place and name == "pong":
                yield "connectback"
            yield "echo"
        return
    times = int(arguments.pop()) if len(arguments) + 1 == REPEATED.get(name) else 1
    for _ in range(times):
        yield ":".join([name, *arguments])


def pattern(match: int, length: int) -> bytes:
    """The payload of ``ptool``: byte i is (match + 7 i + (i >> 8)) modulo 256."""
    places = np.arange(length, dtype=np.int64)
    return ((match + 7 * places + (places >> 8)) & 0xFF).astype(np.uint8).tobytes()
