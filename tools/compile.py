"""mxwire with its engine and its live hosts compiled: faster, the same in all else.

    python tools/compile.py [FOLDER]

Copies the package to FOLDER (build/compiled) and compiles what runs for each frame there with mypyc, from the very
source that runs otherwise. It is used by whoever has FOLDER in PYTHONPATH. Nothing is done where FOLDER is up to date.
Wants a C compiler and the headers of Python.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "build" / "compiled"
COMPILED = (
    "frames.py",
    "wire/codec.py",
    "protocol/**/*.py",
    "host/**/*.py",
    "link/ring.py",
    "link/ring_v2.py",
    "link/ring_v3.py",
    "link/ring_socket.py",
    "link/sender.py",
    "link/packet.py",
    "link/tap.py",
    "link/wakeup.py",
)
"""What runs for each frame, below the package.

Compiled code lets no other thread go on, and no signal come, before it calls a function that is not. Who spins does so
every 10 ms, when he asks the socket for errors (``link/packet_socket.py``).
"""
LEFT = {
    "protocol/status.py": "an enumeration of numbers, which mypyc takes for numbers",
    "protocol/counters.py": "what it counts in is a dict",
}
"""What of it is left as it is, and why; packages and exceptions are, too, since there is nothing to gain."""
_BUILD = """
import sys
from mypyc.build import mypycify
from setuptools import setup

modules = mypycify([f"--config-file={sys.argv[1]}", *sys.argv[2:]], opt_level="1", debug_level="0")
setup(name="mxwire-compiled", packages=[], ext_modules=modules, script_args=["--quiet", "build_ext", "--inplace"])
"""


class CompileError(Exception):
    """It cannot be compiled here."""


def sources(package: Path) -> list[Path]:
    """The files to compile."""
    found = {path for pattern in COMPILED for path in package.glob(pattern)}
    left = {package / each for each in LEFT}
    return sorted(path for path in found - left if path.name not in ("__init__.py", "errors.py"))


def missing() -> str | None:
    """What is not there that compiling wants, and how to get it; None: nothing."""
    for module in ("mypyc", "setuptools"):
        if find_spec(module) is None:
            return f"no {module} (pip install 'mypy[mypyc]')"
    if shutil.which(os.environ.get("CC", "cc")) is None:
        return "no C compiler (apt-get install gcc)"
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        return "no headers of Python (apt-get install python3-dev)"
    return None


def digest(package: Path) -> str:
    """Of all that decides what comes out."""
    from mypy.version import __version__

    with (ROOT / "pyproject.toml").open("rb") as file:
        settings = tomllib.load(file)["tool"]["mypy"]
    found = hashlib.sha256(f"{sys.version} {__version__} {_BUILD} {settings}".encode())
    for path in sorted([*package.rglob("*.py"), Path(__file__)]):
        found.update(path.read_bytes())
    return found.hexdigest()


def compile_into(folder: Path) -> bool:
    """Make or renew the compiled package in a folder; whether there was anything to do.

    Raises :class:`CompileError` with what is missing, or what the compilers said.
    """
    lacking = missing()
    if lacking is not None:
        raise CompileError(lacking)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(folder.name + ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _renew(folder)


def _renew(folder: Path) -> bool:
    stamp, wanted = folder / "digest", digest(ROOT / "mxwire")
    if stamp.exists() and stamp.read_text() == wanted:
        return False
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "mxwire", folder / "mxwire", ignore=shutil.ignore_patterns("__pycache__"))
    names = [str(path.relative_to(folder)) for path in sources(folder / "mxwire")]
    command = [sys.executable, "-c", _BUILD, str(ROOT / "pyproject.toml"), *names]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CompileError(f"the compilers gave up:\n{done.stdout}{done.stderr}")
    shutil.rmtree(folder / "build")
    stamp.write_text(wanted)
    return True


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=FOLDER)
    folder = parser.parse_args().folder.resolve()
    try:
        done = compile_into(folder)
    except CompileError as error:
        print(f"tools/compile.py: {error}", file=sys.stderr)
        return 2
    print(f"{'compiled' if done else 'up to date'}: {folder} (PYTHONPATH={folder} mxwire ...)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
