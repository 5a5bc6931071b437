"""Options that the commands of ``mxwire linerate`` share, and the sinks that they find."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from random import SystemRandom
from typing import TYPE_CHECKING, Any

import click

from mxwire.cli import options
from mxwire.errors import MxwireError
from mxwire.ethernet import mac_text

if TYPE_CHECKING:
    from mxwire.linerate.control import SinkAddress, SinkControl
    from mxwire.link import Link

interface_option = options.interface_option(required=True)
json_option = options.json_option("JSON Lines: one object per event.")
cpu_option = options.integer_option("Run on this CPU only.  [default: any]", "--cpu")
streams_option = options.integer_option(
    "Streams, which are counted separately.", "--streams", least=1, most=1024, default=1
)
size_option = options.integer_option(
    "Length of the frames.  [default: full]", "--size", least=60, most=65535, metavar="BYTES"
)


def pin(cpu: int | None) -> None:
    """Bind this process to a CPU. Raises :class:`~mxwire.errors.MxwireError` if there is no such CPU."""
    if cpu is None:
        return
    try:
        os.sched_setaffinity(0, {cpu})
    except (OSError, ValueError, OverflowError):
        available = ", ".join(map(str, sorted(os.sched_getaffinity(0))))
        raise MxwireError(f"--cpu {cpu}: this process cannot run on it; CPUs are {available}") from None


@contextmanager
def entered(namespace: str | None) -> Iterator[None]:
    """Run in a network namespace."""
    if namespace is None:
        yield
        return
    from mxwire.interop.namespaces import inside

    with inside(namespace):
        yield


netns_option = click.option("--netns", metavar="NAME", help="Network namespace of the interface (ip netns).")


requirements_option = click.option(
    "--require",
    "requirements",
    multiple=True,
    metavar="LIMIT",
    help="Exit with 1 unless met: 4128:>=95%, >=50k/s, <=20us; may be repeated.",
)
sink_timeout_option = options.timeout_option(10.0, "Seconds to wait for a sink.")
repetitions_option = options.integer_option(
    "Trials that must pass at the result, or searches for a burst.", "--repetitions", least=1, most=1000, default=3
)


def find_sink(link: Link, address: bytes | None, timeout: float) -> tuple[SinkControl, SinkAddress]:
    """Find the sink with an address, or the only one on the network.

    Raises :class:`~mxwire.errors.MxwireError` if none answers, or several do.
    """
    from mxwire.linerate.control import SinkControl

    control = SinkControl(link, SystemRandom().randrange(1 << 30))
    if address is not None:
        return control, ask_sink(control, address, timeout)
    found = control.find(timeout)
    if len(found) > 1:
        names = ", ".join(map(str, found))
        raise MxwireError(f"{len(found)} sinks answer: {names}; choose one with --to MAC")
    return control, found[0]


def sink_record(sink: SinkAddress) -> dict[str, Any]:
    """Describe a sink as an object for JSON."""
    return {"address": mac_text(sink.address), **sink.fields}


def sink_text(sink: SinkAddress) -> str:
    """Describe a sink in one line."""
    fields = sink.fields
    mode = f" ({fields['mode']})" if fields.get("mode") else ""
    return f"sink: {sink}, interface {fields.get('interface', '?')}, via {fields.get('via', '?')}{mode}"


def ask_sink(control: SinkControl, address: bytes, timeout: float) -> SinkAddress:
    """Return the sink with an address. Raises :class:`~mxwire.errors.MxwireError` if it does not answer."""
    from mxwire.linerate.control import SinkAddress, SinkUnreachableError

    try:
        return SinkAddress(address, control.ask(address, "hello", timeout))
    except SinkUnreachableError:
        raise MxwireError(
            f"no sink answers at {mac_text(address)} within {timeout:g} s: start one there "
            f"(mxwire linerate sink -i IF), or send without one (--no-sink)"
        ) from None
