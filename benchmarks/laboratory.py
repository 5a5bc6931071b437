"""The common part of benchmarks on a veth pair: namespaces and options."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

# At the end, so that the compiled modules of PYTHONPATH are found first.
sys.path.append(str(Path(__file__).resolve().parents[1]))

import mxwire.protocol.node
from tests.live.namespaces import Laboratory, Port, missing

ROOT = Path(__file__).resolve().parents[1]
_RESTARTED = "MXWIRE_BENCHMARK_RESTARTED"
"""Set in the environment of the restarted program, which must find the compiled modules."""
__all__ = ["Laboratory", "Port", "command_line", "compiled", "missing", "options_of"]


def command_line(description: str | None, rounds: int, *, compiles: bool = True) -> argparse.ArgumentParser:
    """Return a parser with the common options; ``rounds`` is the default number of rounds.

    Unless ``compiles`` is false, :func:`options_of` restarts the program with mxwire compiled.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=rounds, help="measurements of each (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="one short round, as a test")
    parser.add_argument("--json", action="store_true", help="one object per line")
    if compiles:
        text = "measure mxwire without compiling it, as --quick does"
        parser.add_argument("--interpreted", action="store_true", help=text)
    return parser


def options_of(parser: argparse.ArgumentParser, *, wired: bool = True) -> argparse.Namespace:
    """Parse the options, and restart the program compiled if it is to be; if ``wired``, exit unless veth pairs can be
    created here."""
    options = parser.parse_args()
    why_not = missing() if wired else None
    if why_not:
        print(why_not, file=sys.stderr)
        raise SystemExit(2)
    if options.quick:
        options.rounds = 1
    elif not getattr(options, "interpreted", True):
        _run_compiled()
    return options


def compiled() -> bool:
    """Return whether mxwire is compiled."""
    return not mxwire.protocol.node.__file__.endswith(".py")


def _run_compiled() -> None:
    """Restart this program with mxwire compiled, unless it is already; print a note if it cannot be compiled."""
    if compiled():
        return
    print("compiling mxwire, unless it is up to date: a minute or two (--interpreted skips this)", file=sys.stderr)
    folder = ROOT / "build" / "compiled"
    command = [sys.executable, str(ROOT / "tools" / "compile.py"), str(folder)]
    if subprocess.run(command, stdout=sys.stderr, check=False).returncode:
        print("measuring mxwire interpreted", file=sys.stderr)
        return
    sys.stderr.flush()
    if os.environ.get(_RESTARTED):
        raise SystemExit(f"{folder} was compiled, but {mxwire.protocol.node.__file__} was imported")
    os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | {"PYTHONPATH": str(folder), _RESTARTED: "1"})
