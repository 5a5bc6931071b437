"""A process with live hosts that does what a test calls in it, see :mod:`tests.live.far`. It ends when the test does.

Run it as ``python -m tests.live.far_process``, from the root of the repository.
"""

from __future__ import annotations

import argparse
import traceback
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from mxwire.host import Endpoint, Host, HostRequest, Message
from mxwire.host.requests import WaitingMessage
from mxwire.protocol import Partner

from . import hosts
from .far import Arrived, Failed, Found, Place


class Kept:
    """The objects that the test knows by their place."""

    def __init__(self) -> None:
        self.things: list[Any] = []

    def answer(self, place: Place | None, name: str, arguments: list[Any], options: dict[str, Any]) -> Any:
        """The result of a call, or an attribute."""
        try:
            found = getattr(hosts if place is None else self.things[place.number], name)
            return self._told(found(*self._meant(arguments), **options) if callable(found) else found)
        except Exception:
            return Failed(traceback.format_exc())

    def _meant(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._meant(each) for each in value]
        return self.things[value.number] if isinstance(value, Place) else value

    def _told(self, value: Any) -> Any:
        match value:
            case list():
                return [self._told(each) for each in value]
            case Message():
                return Arrived(bytes(value), value.match_info, value.status, hosts.sender_of(value))
            case WaitingMessage():
                return Found(value.match_info, value.length)
            case Host() | Endpoint() | Partner() | HostRequest():
                self.things.append(value)
                return Place(len(self.things) - 1)
        return value


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--interface")
    options.add_argument("--pipe", type=int, required=True)
    pipe, kept = Connection(options.parse_args().pipe), Kept()
    with suppress(EOFError):
        while True:
            pipe.send(kept.answer(*pipe.recv()))
    for each in kept.things:
        if isinstance(each, Host):
            each.close()


if __name__ == "__main__":
    main()
