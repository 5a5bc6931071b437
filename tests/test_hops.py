"""The number of files and functions that one message passes, and one frame to its line of JSON, so that neither can
grow unnoticed.

Two hosts on a network in memory are connected, and have exchanged a message before. Measured are ``send`` of 5 bytes,
up to the queue of the other host's link, and ``receive`` with that frame in the queue, up to the returned message. Only
functions of ``mxwire`` count. As a script, it prints each call in its order: ``python -m tests.test_hops``.

``mxwire decode --json`` reads a capture of one TINY frame, after another call that has imported all modules.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np
import pytest

import mxwire
from mxwire.capture import create_capture, open_capture
from mxwire.cli.main import cli
from mxwire.host import Endpoint, Host
from mxwire.link.memory import memory_pair
from mxwire.protocol import Partner

from .forked import ROOT

PACKAGE = f"{Path(mxwire.__file__).parent}/"
DATA, MATCH = b"hello", 7


class Trace:
    """The calls of functions of ``mxwire`` on this thread while it is active, as a context manager."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, str, str]] = []
        """Depth, file and name of each call."""
        self._depth = 0
        self._before: Any = None

    def __enter__(self) -> Trace:
        self._before = sys.getprofile()
        sys.setprofile(self._note)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(self._before)

    def _note(self, frame: FrameType, event: str, _argument: object) -> None:
        code: CodeType = frame.f_code
        if not code.co_filename.startswith(PACKAGE):
            return
        if event == "call":
            self._depth += 1
            self.calls.append((self._depth, code.co_filename.removeprefix(PACKAGE), code.co_qualname))
        elif event == "return":
            self._depth -= 1

    @property
    def files(self) -> set[str]:
        return {file for _, file, _ in self.calls}

    @property
    def functions(self) -> set[tuple[str, str]]:
        return {(file, name) for _, file, name in self.calls}

    @property
    def depth(self) -> int:
        return max(depth for depth, _, _ in self.calls)


@contextmanager
def two_hosts() -> Iterator[tuple[Endpoint, Partner, Endpoint]]:
    """Yield an endpoint, its partner, and the endpoint for which that stands; they have exchanged a message."""
    here, there = memory_pair()
    with (
        Host(here, name="alpha", peers={there.address: "beta:0"}, announce=False, background=False) as alpha,
        Host(there, name="beta", peers={here.address: "alpha:0"}, announce=False, background=False) as beta,
    ):

        def carry() -> None:
            for _ in range(10):
                alpha.poll()
                beta.poll()

        sender, receiver = alpha.open_endpoint(0), beta.open_endpoint(0)
        connect = sender.engine.connect("beta:0", 0, receiver.key)
        carry()
        assert connect.partner is not None
        sender.send(connect.partner, DATA, MATCH)
        carry()
        receiver.receive(MATCH, timeout=60)
        carry()
        # The clocks stand still: a host checks its timers once per millisecond, and would do so here only by chance.
        for each in (alpha.core, beta.core):
            each.clock = partial(getattr, each, "now")
        yield sender, connect.partner, receiver


def measured() -> tuple[Trace, Trace]:
    """Trace one ``send``, and the ``receive`` of its frame."""
    with two_hosts() as (sender, partner, receiver):
        with Trace() as send:
            sender.send(partner, DATA, MATCH)
        with Trace() as receive:
            message = receiver.receive(MATCH, timeout=60)
        assert bytes(message.data) == DATA
    return send, receive


@pytest.mark.parametrize(
    ("which", "files", "functions", "depth"),
    # A send of 58 functions also begins a list of resends, if it is the first of its tick. Requests and posted receives
    # are held in tables that take four functions where a dict takes none, but whose growth never delays others.
    [(0, 15, 60, 10), (1, 20, 76, 12)],
    ids=["send", "receive"],
)
def test_a_message_passes_few_files_and_functions(which, files, functions, depth):
    trace = measured()[which]
    assert (len(trace.files) <= files, len(trace.functions) <= functions, trace.depth <= depth) == (True, True, True), (
        f"{len(trace.files)} files, {len(trace.functions)} functions, depth {trace.depth}: {sorted(trace.files)}"
    )


def test_a_decoded_frame_passes_few_functions(tmp_path, capsys):
    file = tmp_path / "tiny.pcap"
    with open_capture(ROOT / "captures" / "mxoe-burst.pcap") as reader, create_capture(file) as writer:
        writer.write(next(iter(reader)).select(np.array([2])))

    def decode() -> None:
        cli.main(["decode", "--json", str(file)], standalone_mode=False)

    decode()
    line = capsys.readouterr().out
    with Trace() as trace:
        decode()
    assert capsys.readouterr().out == line and '"type":"TINY"' in line
    # A third judges messages, a quarter finds and decodes headers, and a quarter is the command with its options; the
    # rest reads the file and forms the line.
    assert len(trace.functions) <= 265, len(trace.functions)


def main() -> None:
    """Print both traces."""
    for name, trace in zip(("send", "receive"), measured(), strict=True):
        print(f"{name}: {len(trace.files)} files, {len(trace.functions)} functions, depth {trace.depth}")
        for depth, file, function in trace.calls:
            print(f"{'  ' * depth}{file}: {function}")


if __name__ == "__main__":
    main()
