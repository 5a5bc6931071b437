"""A live host of mxwire as a process: it echoes, or makes calls. It reports events as one JSON object per line.

Run it as ``python -m tests.live.host_process``, from the root of the repository.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from mxwire.host import Endpoint, Host

from .independent.peer import messages

PATIENCE = 60.0


def say(event: str, **what: Any) -> None:
    print(json.dumps({"event": event, **what}), flush=True)


def echo(endpoint: Endpoint, count: int) -> None:
    """Send ``count`` messages back."""
    for _ in range(count):
        message = endpoint.receive(timeout=PATIENCE)
        assert message.partner is not None
        endpoint.send(message.partner, message.data, message.match_info, timeout=PATIENCE)
        say("echoed", bytes=len(message), match=message.match_info)
    endpoint.flush(PATIENCE)


def call(endpoint: Endpoint, to: str, number: int, kinds: list[str]) -> None:
    """Send messages to an endpoint, and compare their echoes."""
    partner = endpoint.connect(to, number, timeout=PATIENCE)
    for kind in kinds:
        sent = messages()[kind]
        send = endpoint.ssend if sent.synchronous else endpoint.send
        send(partner, sent.data, sent.match, timeout=PATIENCE)
        answer = endpoint.receive(sent.match, timeout=PATIENCE)
        say("answered", kind=kind, same=bytes(answer) == sent.data)
    endpoint.flush(PATIENCE)


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--interface", required=True)
    options.add_argument("--name", required=True)
    options.add_argument("--dialect", required=True)
    options.add_argument("--endpoint", type=int, default=0)
    options.add_argument("--echo", type=int, metavar="COUNT")
    options.add_argument("--call", metavar="HOST")
    options.add_argument("--to-endpoint", type=int, default=0)
    options.add_argument("--kinds", type=lambda text: text.split(","))
    given = options.parse_args()
    with (
        Host.open(given.interface, name=given.name, dialect=given.dialect) as host,
        host.open_endpoint(given.endpoint) as endpoint,
    ):
        say("ready", name=host.name)
        if given.echo:
            echo(endpoint, given.echo)
        else:
            call(endpoint, given.call, given.to_endpoint, given.kinds)
        say("end")


if __name__ == "__main__":
    main()
