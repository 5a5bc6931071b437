"""What benchmarks on a veth pair share: the namespaces of the tests, and how they are called."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from live.namespaces import Laboratory, Port, missing

import mxwire.protocol.node

ROOT = Path(__file__).resolve().parents[1]
__all__ = ["Laboratory", "Port", "command_line", "compiled", "missing", "options_of", "run_compiled"]


def command_line(description: str | None, rounds: int) -> argparse.ArgumentParser:
    """The options that all have; ``rounds`` is how many there are unless somebody says so."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--rounds", type=int, default=rounds, help="how often each is measured; the best counts (%(default)s)"
    )
    parser.add_argument("--quick", action="store_true", help="one short round: to see that it works")
    parser.add_argument("--json", action="store_true", help="one object a line")
    return parser


def options_of(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """What was asked for; ends the program where there can be no veth pair."""
    options = parser.parse_args()
    if options.quick:
        options.rounds = 1
    why_not = missing()
    if why_not:
        print(why_not, file=sys.stderr)
        raise SystemExit(2)
    return options


def compiled() -> bool:
    """Whether it is compiled mxwire that is measured."""
    return not mxwire.protocol.node.__file__.endswith(".py")


def run_compiled() -> None:
    """Begin this program anew with mxwire compiled, unless it is, or cannot be: that is said."""
    if compiled():
        return
    print("compiling mxwire: a minute or two, unless it is done already (--interpreted: not)", file=sys.stderr)
    folder = ROOT / "build" / "compiled"
    command = [sys.executable, str(ROOT / "tools" / "compile.py"), str(folder)]
    if subprocess.run(command, stdout=sys.stderr, check=False).returncode:
        print("so mxwire is measured interpreted", file=sys.stderr)
        return
    sys.stderr.flush()
    os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | {"PYTHONPATH": str(folder)})
