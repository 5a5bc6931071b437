"""A side of a live study: a process that runs roles, controlled by JSON lines on its standard input and output.

Started as ``python -m mxwire.bench.worker`` with a description of the side (:class:`SideSetup`) as its first line, and
answers with ``{"side": …}``. Each further line ``{"role": …, "parameters": …}`` is answered by ``{"ready": true}`` once
the channel is open, and by ``{"result": …}`` or ``{"error": …}`` at the end. The side is a process of its own, so that
nothing else runs in its interpreter, and so that PYTHONPATH selects a compiled mxwire for it.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Final

from mxwire.bench.channels.carriers import check_carrier, open_channel
from mxwire.bench.channels.channel import LARGEST, ChannelSetup
from mxwire.bench.errors import SilenceError
from mxwire.bench.roles import alone, exchanges, patterns, program, tracing
from mxwire.errors import MxwireError
from mxwire.lab.machine import interface_record, pin
from mxwire.lab.namespaces import inside


@dataclass(frozen=True)
class SideSetup:
    """The place of a side."""

    interface: str
    active: bool
    namespace: str | None = None
    processor: int | None = None
    own: str = ""
    """Ethernet address; empty: that of the interface."""
    other: str = ""
    addresses: tuple[str, str] | None = None
    card_processor: int | None = None
    """Processor of a card that is a process of its own."""
    card_polls: bool = False
    """No side runs on that processor."""


def _by_name(*roles: Callable[..., dict[str, Any]]) -> dict[str, Callable[..., dict[str, Any]]]:
    return {each.__name__.replace("_", " "): each for each in roles}


STUDY_ROLES: Final = _by_name(
    *(exchanges.trips, exchanges.flood, exchanges.fragments, exchanges.parametrised, exchanges.arrived),
    *(exchanges.simultaneous, exchanges.spin_error, tracing.traced_trips, alone.hosts_among_frames),
    *(patterns.requests, patterns.bandwidths, patterns.used_data, patterns.central_queue),
)
"""Roles over a channel, which both sides play with the same parameters."""
LONE_ROLES: Final = _by_name(
    *(alone.memory_copy, alone.system_call, alone.engine, alone.hosts),
    *(tracing.traced_engine, program.traced_library, program.frames_in_c),
)
"""Roles without a channel."""
_MOST: Final = 10_000_000
_LONGEST_NS: Final = 10_000_000_000
_LIMITS: Final = {
    **dict.fromkeys(("window", "windows", "depth", "number", "numbers"), 4096),
    **dict.fromkeys(("count", "counts", "repetitions"), _MOST),
    "multiples": 10_000,
    "payload": 65_535,
    "clients": 64,
}
_TIMES: Final = ("work", "gap", "wait", "durations")


class RoleError(MxwireError):
    """A request for a role that does not exist, or with impossible parameters."""


def check_parameters(parameters: dict[str, Any]) -> dict[str, Any]:
    """Check the parameters of a role, which may come from another machine, and return those of its channel.

    They are removed from ``parameters``. Raises :class:`RoleError`.
    """
    for name, value in parameters.items():
        # Names, which are compared with the known ones where they are used.
        if name in ("carrier", "dialect"):
            continue
        most = LARGEST if name in ("size", "sizes") else _LONGEST_NS if name in _TIMES else _LIMITS.get(name, 1)
        values = value if isinstance(value, list) else [value]
        if not all(isinstance(each, int) and 0 <= each <= most for each in values):
            raise RoleError(f"{name} must be from 0 to {most:,}, not {value!r}")
    sizes = parameters.get("sizes", [parameters.get("size", 0)])
    return {
        "carrier": check_carrier(str(parameters.pop("carrier", ""))),
        "spin": bool(parameters.pop("spin", True)),
        "depth": parameters.pop("depth", 2),
        "payload": parameters.pop("payload", 0),
        "clients": parameters.pop("clients", 0),
        "size": max(sizes, default=0),
    }


def run_role(setup: SideSetup, request: dict[str, Any], ready: Callable[[], object], **more: Any) -> dict[str, Any]:
    """Open the channel of a request, call ``ready``, play the role, and return its values.

    ``more`` are further properties of the channel. Raises :class:`RoleError` for bad requests, and
    :class:`~mxwire.bench.errors.SilenceError` if messages were lost.
    """
    name, parameters = request.get("role"), dict(request.get("parameters") or {})
    if name in LONE_ROLES:
        ready()
        return LONE_ROLES[name](**parameters)
    if name not in STUDY_ROLES:
        raise RoleError(f"there is no role {name!r}")
    channel_parameters = check_parameters(parameters)
    same = ("interface", "active", "addresses", "card_processor", "card_polls")
    more |= {each: getattr(setup, each) for each in same}
    own, other = bytes.fromhex(setup.own), bytes.fromhex(setup.other)
    channel = open_channel(ChannelSetup(own=own, other=other, **channel_parameters, **more))
    try:
        ready()
        return STUDY_ROLES[name](channel, **parameters)
    finally:
        channel.close()


def answer(**values: Any) -> None:
    """Write a line to the process that has started this one."""
    print(json.dumps(values), flush=True)


def serve(
    namespace: str | None,
    processor: int | None,
    about: Callable[[], dict[str, Any]],
    play: Callable[[dict[str, Any]], dict[str, Any]],
) -> None:
    """Be a side at its place: write ``about``, and answer requests until standard input is closed."""
    try:
        # First, since threads inherit the affinity of the thread that starts them.
        pin(processor)
        # Connections, too, belong to the namespace in which they are made.
        with inside(namespace):
            answer(side=about())
            for line in sys.stdin:
                try:
                    answer(result=play(json.loads(line)))
                # An answer to each request: without one, the process that asks would wait for its timeout.
                except Exception as error:
                    answer(**failure(error))
    except (MxwireError, OSError) as error:
        answer(**failure(error))


def failure(error: BaseException) -> dict[str, Any]:
    """An error as the answer to a request."""
    if isinstance(error, SilenceError):
        return {"error": str(error), "lost": True}
    if isinstance(error, (MxwireError, OSError)):
        return {"error": str(error)}
    return {"error": "".join(traceback.format_exception_only(error)).strip(), "trace": traceback.format_exc()}


def describe_side(setup: SideSetup) -> dict[str, Any]:
    """The machine and the interface of a side, in its namespace."""
    return interface_record(setup.interface) if setup.interface else {}


def main() -> None:
    """Serve the requests for a side."""
    line = sys.stdin.readline()
    if line:
        given = json.loads(line)
        given["addresses"] = None if given["addresses"] is None else tuple(given["addresses"])
        setup = SideSetup(**given)

        def about() -> dict[str, Any]:
            return describe_side(setup) | {"pid": os.getpid(), "setup": asdict(setup)}

        serve(
            setup.namespace,
            setup.processor,
            about,
            lambda request: run_role(setup, request, lambda: answer(ready=True)),
        )


if __name__ == "__main__":
    main()
