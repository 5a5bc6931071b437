"""Compile mxwire's engine and live hosts: the same behaviour, faster.

    python tools/compile.py [FOLDER]

Copy the package to FOLDER (build/compiled) and compile the modules that run for every frame with mypyc, from the same
source. Programs with FOLDER in PYTHONPATH use the result. If FOLDER is up to date, do nothing. Needs a C compiler and
the headers of Python.

The environment variable MXWIRE_OPTIMIZE is the level of optimization of the C compiler. With 0, which the tests use,
the assertions of mypyc's library are checked, FOLDER is build/compiled-0, and tcc compiles what mypyc generates, in a
second instead of half a minute, if it is installed and CC is not set.
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
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DEFAULT_LEVEL = "2"
LEVEL = os.environ.get("MXWIRE_OPTIMIZE", DEFAULT_LEVEL)
FOLDER = ROOT / "build" / ("compiled" if LEVEL == DEFAULT_LEVEL else f"compiled-{LEVEL}")
COMPILED = (
    "frames.py",
    "wire/codec.py",
    "protocol/**/*.py",
    "host/**/*.py",
    "link/local.py",
    "link/process_memory.py",
    "link/record_ring.py",
    "link/ring.py",
    "link/ring_v2.py",
    "link/ring_v3.py",
    "link/ring_socket.py",
    "link/sender.py",
    "link/packet.py",
    "link/umem.py",
    "link/xdp.py",
    "link/xdp_receive.py",
    "link/xdp_transmit.py",
    "link/tap.py",
    "link/wakeup.py",
    "myriexpress/entries.py",
    "myriexpress/program_host.py",
)
"""Modules that run for every frame, relative to the package.

Compiled code does not release the interpreter lock or handle signals before it calls an interpreted function. Polling
loops do so every 10 ms, when they check the socket for errors (``link/packet_socket.py``).
"""
LEFT = {
    "protocol/status.py": "an enumeration of numbers, which mypyc treats as plain numbers",
}
"""Files of these modules that stay interpreted, with the reason; packages and exceptions stay interpreted too, since
they would not run faster."""
NATIVE = "native.c"
"""The source of the native module, relative to the package; ``mxwire/native.py`` explains it."""
_BUILD = """
import os, shutil, sys, sysconfig
import mypyc
from mypyc.build import mypycify
from setuptools import Extension, setup

# gcc spends most of its time on warnings about the indentation of generated code, with the -Wall that Python adds.
# Functions that are not visible outside are called directly, or inlined.
# Paths of this machine, which error messages of headers contain, would make the result different on each machine.
paths = {sysconfig.get_path("include"): "python", os.path.dirname(mypyc.__file__): "mypyc"}
options = ["-Wno-all", "-fvisibility=hidden", *(f"-fmacro-prefix-map={path}={short}" for path, short in paths.items())]
os.environ["CFLAGS"] = " ".join([os.environ.get("CFLAGS", ""), *options])
# A Python that was built from source adds its own folder, which would be searched for libraries on each machine with
# the wheel.
words = os.environ.get("LDSHARED", sysconfig.get_config_var("LDSHARED")).split()
os.environ["LDSHARED"] = " ".join(each for each in words if not each.startswith(("-L", "-Wl,-rpath")))
modules = mypycify([f"--config-file={sys.argv[1]}", *sys.argv[4:]], opt_level=sys.argv[2], debug_level="0")
native = Extension("mxwire._native", [sys.argv[3]], extra_compile_args=[f"-O{sys.argv[2]}", "-g0"])

def build(extensions):
    words = ["--quiet", "build_ext", "--inplace"]
    setup(name="mxwire-compiled", packages=[], ext_modules=extensions, script_args=words)

build([native])
# tcc has no atomic operations, which the native module needs, and from 3.13 on Python.h; it does not see that some
# functions never return, and does not know the options for linking that some distributions add.
known = os.uname().machine == "x86_64" and sys.version_info < (3, 13)
if sys.argv[2] == "0" and known and "CC" not in os.environ and shutil.which("tcc"):
    os.environ |= {"CC": "tcc -w", "LDSHARED": "tcc -w -shared"}
    for each in modules:
        each.extra_compile_args = [option for option in each.extra_compile_args if option != "-Werror"]
build(modules)
# Freeing a gigabyte of syntax trees object by object would take a third of the Python part.
os._exit(0)
"""


class CompileError(Exception):
    """A missing dependency, or a failure of the compilers."""


def sources(package: Path) -> list[Path]:
    """Return the files to compile."""
    found = {path for pattern in COMPILED for path in package.glob(pattern)}
    left = {package / each for each in LEFT}
    return sorted(path for path in found - left if path.name not in ("__init__.py", "errors.py"))


def missing() -> str | None:
    """Return the first missing dependency and how to install it, or None."""
    for module in ("mypyc", "setuptools"):
        if find_spec(module) is None:
            return f"no {module} (pip install 'mypy[mypyc]')"
    if shutil.which(os.environ.get("CC", "cc")) is None:
        return "no C compiler (apt-get install gcc)"
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        return "no headers of Python (apt-get install python3-dev)"
    return None


def _settings() -> dict[str, Any]:
    with (ROOT / "pyproject.toml").open("rb") as file:
        tools: dict[str, Any] = tomllib.load(file)["tool"]
    return tools


def shipped() -> dict[str, str]:
    """Return the files and folders outside the package that an installation has inside: the place of each."""
    places: dict[str, str] = _settings()["hatch"]["build"]["targets"]["wheel"]["force-include"]
    return places


def digest(package: Path) -> str:
    """Return a digest of everything that determines the result."""
    from mypy.version import __version__

    settings = f"{_settings()['mypy']} {shipped()}"
    found = hashlib.sha256(f"{sys.version} {__version__} {_BUILD} {LEVEL} {settings}".encode())
    for path in sorted([*package.rglob("*.py"), package / NATIVE, Path(__file__)]):
        found.update(path.read_bytes())
    return found.hexdigest()


def compile_into(folder: Path) -> bool:
    """Compile the package into a folder, and return whether it was out of date.

    Raises :class:`CompileError` with the missing dependency or the output of the compilers.
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
    # Links, since these files change more often than the modules, and need not be compiled again.
    for source, place in shipped().items():
        (folder / place).symlink_to(ROOT / source)
    # The public face refers to all of the package, which would be checked too.
    face = folder / "mxwire" / "__init__.pyi"
    face.write_text("__version__: str\n")
    names = [str(path.relative_to(folder)) for path in sources(folder / "mxwire")]
    command = [sys.executable, "-c", _BUILD, str(ROOT / "pyproject.toml"), LEVEL, f"mxwire/{NATIVE}", *names]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CompileError(f"compiling failed:\n{done.stdout}{done.stderr}")
    shutil.rmtree(folder / "build")
    face.unlink()
    stamp.write_text(wanted)
    return True


def main() -> int:
    """Run the command and return its exit code."""
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
