"""Build the files of a release into dist/, and try each wheel: make dist.

    python tools/dist.py [--twice] [FOLDER]

These are the sdist, and from the sdist alone a wheel for all machines, and a compiled wheel for each CPython of
``VERSIONS`` that this machine has (on the path, or installed by pyenv or uv), with the platform tag that auditwheel
derives from the symbols it uses. The result depends on the sources and on tools/requirements-dist.txt only: all times
are that of the last commit, or SOURCE_DATE_EPOCH. With ``--twice``, or MXWIRE_TWICE in the environment, everything is
built twice, in different folders, and must be equal byte for byte.

If a tag names the version to release (GITHUB_REF_NAME, as v1.2.3), it must be that of the package.
"""

from __future__ import annotations

import argparse
import filecmp
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VERSIONS = ("3.11", "3.12", "3.13")
"""The versions of CPython that get a compiled wheel."""
PACKAGES = ROOT / "tools" / "requirements-dist.txt"
"""The packages that build a wheel, with hashes."""


class DistError(Exception):
    """A program that failed, or a result that is not as it must be."""


def run(*command: object, cwd: Path = ROOT, env: Mapping[str, str] | None = None) -> str:
    """Run a program and return its output. Raises :class:`DistError` if it fails, with its last lines."""
    words = list(map(str, command))
    streams = {"capture_output": True, "text": True, "stdin": subprocess.DEVNULL}
    try:
        done = subprocess.run(words, cwd=cwd, env=dict(env or os.environ), check=False, **streams)
    except OSError as error:
        raise DistError(f"{words[0]} cannot be run: {error.strerror}") from None
    if done.returncode:
        last = "\n".join((done.stdout + done.stderr).splitlines()[-20:])
        raise DistError(f"{' '.join(words)} failed:\n{last}")
    return done.stdout


def with_pythons() -> dict[str, str]:
    """Return the environment of uv: with uv itself, and the Pythons of pyenv beside those that uv finds by itself."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv", "versions")
    path = [str(Path(sys.executable).parent), *map(str, sorted(pyenv.glob("*/bin"))), os.environ.get("PATH", "")]
    return {**os.environ, "PATH": ":".join(path), "UV_PYTHON_DOWNLOADS": "never"}


def uv(*words: object) -> str:
    """Run uv and return its output."""
    return run("uv", *words, env=with_pythons())


def interpreter(version: str) -> Path | None:
    """Return the CPython of a version on this machine, or None."""
    try:
        return Path(uv("python", "find", "--no-project", "--system", f"cpython@{version}").strip())
    except DistError:
        return None


@cache
def epoch() -> str:
    """Return the time of all files: SOURCE_DATE_EPOCH, the last commit, or without a repository that of hatchling."""
    try:
        return os.environ.get("SOURCE_DATE_EPOCH") or run("git", "log", "-1", "--format=%ct").strip()
    except DistError:
        return "1580601600"


def variables(**more: str) -> dict[str, str]:
    """Return the environment of a build: what a user may have set for the compilers does not change the result."""
    left = ("MXWIRE_COMPILE", "MXWIRE_OPTIMIZE", "CC", "CFLAGS", "LDFLAGS", "LDSHARED", "PYTHONPATH")
    kept = {name: value for name, value in os.environ.items() if name not in left}
    return kept | {"SOURCE_DATE_EPOCH": epoch(), "PYTHONHASHSEED": "0"} | more


def hatch(python: object, target: str, source: Path, folder: Path, **more: str) -> Path:
    """Build one file from a folder of sources and return it."""
    before = set(folder.glob("*"))
    run(
        python, "-m", "hatchling", "build", "--target", target, "--directory", folder, cwd=source, env=variables(**more)
    )
    (made,) = set(folder.glob("*")) - before
    return made


def unpacked(sdist: Path, folder: Path) -> Path:
    """Unpack an sdist into a new folder and return that of its sources."""
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (source,) = folder.iterdir()
    return source


def compiled_wheel(python: Path, sdist: Path, folder: Path, scratch: Path) -> Path:
    """Build the wheel with the engine compiled for ``python``, and return it."""
    environment = scratch / "environment"
    uv("venv", "--quiet", "--python", python, environment)
    own = environment / "bin" / "python"
    uv("pip", "install", "--quiet", "--python", own, "--require-hashes", "--requirement", PACKAGES)
    raw = scratch / "raw"
    raw.mkdir()
    made = hatch(own, "wheel", unpacked(sdist, scratch / "source"), raw, MXWIRE_COMPILE="1")
    path = f"{own.parent}:{os.environ.get('PATH', '')}"
    done = scratch / "done"
    run(own.parent / "auditwheel", "repair", "--plat", "auto", "-w", done, made, env=variables(PATH=path))
    (tagged,) = done.iterdir()
    if "-manylinux" not in tagged.name:
        raise DistError(f"{tagged.name} is for machines like this one only")
    return Path(shutil.move(tagged, folder))


def build(pythons: Sequence[Path], source: Path, folder: Path) -> None:
    """Build everything into an empty folder."""
    sdist = hatch(sys.executable, "sdist", source, folder)
    with tempfile.TemporaryDirectory(prefix="mxwire-dist-") as name:
        hatch(sys.executable, "wheel", unpacked(sdist, Path(name, "pure")), folder)
        scratches = [Path(name, str(number)) for number in range(len(pythons))]
        for scratch in scratches:
            scratch.mkdir()
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(lambda python, scratch: compiled_wheel(python, sdist, folder, scratch), pythons, scratches))


def compare(one: Path, other: Path) -> None:
    """Raise :class:`DistError` unless two folders have the same files."""
    names = sorted(path.name for path in one.iterdir())
    if names != sorted(path.name for path in other.iterdir()):
        raise DistError("building twice gives files of other names")
    _, different, _ = filecmp.cmpfiles(one, other, names, shallow=False)
    if different:
        raise DistError(f"building twice gives two results: {', '.join(different)} (diffoscope shows the differences)")


def check_tag(version: str) -> None:
    """Raise :class:`DistError` if a tag names another version."""
    tag = os.environ.get("GITHUB_REF_NAME", "")
    if os.environ.get("GITHUB_REF_TYPE") == "tag" and tag != f"v{version}":
        raise DistError(f"the tag is {tag}, but mxwire/__init__.py has version {version}")


def main() -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--twice", action="store_true", default=bool(os.environ.get("MXWIRE_TWICE")))
    parser.add_argument("folder", type=Path, nargs="?", default=ROOT / "dist")
    options = parser.parse_args()
    folder = options.folder.resolve()
    try:
        check_tag(run(sys.executable, "-m", "hatchling", "version").strip())
        found = {version: interpreter(version) for version in VERSIONS}
        lacking = [version for version, python in found.items() if python is None]
        if lacking:
            print(f"no compiled wheel for CPython {', '.join(lacking)}, absent here: the release workflow builds it")
        pythons = [python for python in found.values() if python is not None]
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        build(pythons, ROOT, folder)
        if options.twice:
            with tempfile.TemporaryDirectory(prefix="mxwire-dist-") as name:
                again, source = Path(name, "dist"), Path(name, "source")
                again.mkdir()
                build(pythons, unpacked(next(folder.glob("*.tar.gz")), source), again)
                compare(folder, again)
    except DistError as error:
        print(f"tools/dist.py: {error}", file=sys.stderr)
        return 1
    for path in sorted(folder.iterdir()):
        print(f"{path.stat().st_size / 1e6:5.1f} MB  {path}")
    print("built twice, equal; trying the wheels" if options.twice else "trying the wheels", flush=True)
    trial = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/tools/test_dist.py"]
    return subprocess.run(trial, cwd=ROOT, env=with_pythons() | {"MXWIRE_DIST": str(folder)}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
