"""Programs in C: bare frames, and a user of libmyriexpress whose system calls and copies are counted by tracing."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Final

from mxwire.bench.errors import SilenceError
from mxwire.bench.roles.common import BARE_ETHERTYPE
from mxwire.bench.roles.exchanges import summary
from mxwire.bench.roles.tracing import PROGRAM_MARK, WARM_TRIPS, trace
from mxwire.errors import MxwireError
from mxwire.myriexpress.build import Installation, compiler, last_prefix, prefix_option
from mxwire.myriexpress.launch import environment
from mxwire.texts import file_text
from mxwire.wire.numbers import DEFAULT_KEY

_SILENT: Final = 3
"""Exit code of a side to which nothing arrives."""


def library_refusal() -> str | None:
    """Return the reason why programs cannot use libmyriexpress here; None if they can."""
    installation = Installation(last_prefix())
    try:
        installation.require()
        compiler()
    except MxwireError as error:
        # Recordings and pages are published, and name no folder of this machine.
        return str(error).replace(f"{installation.library.parent}/", "").replace(prefix_option(installation.prefix), "")
    return None


def traced_library(interface: str, other: str, size: int, count: int) -> dict[str, Any]:
    """Ping-pong of a program in C with the host ``beta`` at the Ethernet address ``other``; counts per round trip.

    The host plays ``traced trips``. Raises :class:`~mxwire.errors.MxwireError` if the library is not built, or the
    program fails.
    """
    installation = Installation(last_prefix())
    installation.require()
    with tempfile.TemporaryDirectory(prefix="mxwire-bench-") as folder:
        program = str(Path(folder, "trips"))
        library = f"-I{installation.include}", f"-L{installation.folder}", "-lmyriexpress"
        macros = f"-DKEY={DEFAULT_KEY:#x}", f"-DMARK={PROGRAM_MARK:#x}L"
        compile_program(file_text(__file__, "library_trips.c"), program, *macros, *library)
        peers = Path(folder, "peers")
        peers.write_text(f"{other} beta:0\n", encoding="utf-8")
        variables = {"MXWIRE_INTERFACE": interface, "MXWIRE_NAME": "alpha:0", "MXWIRE_PEERS": str(peers)}
        surroundings = environment(installation, os.environ) | variables
        words = [program, str(size), str(count), str(WARM_TRIPS)]
        return trace(lambda: os.execve(program, words, surroundings), count).record(count)


def frames_in_c(interface: str, own: str, other: str, active: bool, size: int, count: int) -> dict[str, Any]:
    """Ping-pong of bare frames by a program in C: half round trips in ns.

    Raises :class:`~mxwire.errors.MxwireError` without a compiler, and
    :class:`~mxwire.bench.errors.SilenceError` if the other side does not answer.
    """
    with tempfile.TemporaryDirectory(prefix="mxwire-bench-") as folder:
        program = str(Path(folder, "frame-trips"))
        compile_program(file_text(__file__, "frame_trips.c"), program)
        side = "active" if active else "passive"
        words = [program, interface, f"{BARE_ETHERTYPE:#x}", own, other, side, str(size), str(count)]
        # No timeout here: the program ends by itself after 5 s without a frame.
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode == _SILENT:
            raise SilenceError("no frame within 5 s")
        if done.returncode:
            raise MxwireError(f"frames in C: {done.stderr.strip()[:200]}")
    times = [int(each) for each in done.stdout.split()]
    return {"points": {str(size): summary(times, 2)}} if active else {}


def compile_program(source: str, program: str, *options: str) -> None:
    """Compile a program in C. Raises :class:`~mxwire.errors.MxwireError` if that fails."""
    command = [*compiler(), "-O2", "-x", "c", "-", "-o", program, *options]
    done = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
    if done.returncode:
        raise MxwireError(f"a program in C cannot be compiled: {done.stderr.strip()[:200]}")
