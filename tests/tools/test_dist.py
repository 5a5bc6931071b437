"""The files of a release: each wheel in a clean environment, and the same files again when they are built again.

``make dist`` runs these tests with its own wheels (MXWIRE_DIST is their folder), each with the Python that it is for,
and packages that uv installs. Otherwise, the compiled wheel of this Python is built here, of what other tests have
compiled, with less optimization; ``test_wheel.py`` has the pure one.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from mxwire import __version__
from tests.compiled.test_compiled import LEVEL, compiling
from tests.live.commands import running
from tests.live.namespaces import Laboratory, missing
from tests.tools.environment import ROOT, Environment, build, install

EVERY_TYPE = ROOT / "captures" / "mxoe-every-type.pcap"
FOLDER = os.environ.get("MXWIRE_DIST")
WHEELS = sorted(path.name for path in Path(FOLDER).glob("*.whl")) if FOLDER else ["compiled"]
COMMANDS = {
    "table": ["decode", "--to", "frames.parquet", EVERY_TYPE],
    "plot": ["stats", "--plot", "plot.svg", EVERY_TYPE],
    "report": ["report", "--html", "report", EVERY_TYPE],
    "watch": ["watch", "-i", "lo", "--prometheus", "127.0.0.1:0"],
    "library": ["library", "build", "--prefix", "here"],
    "dask": ["simulate", "--seeds", "0-1", "--on", "dask:local"],
    "mpi": ["simulate", "--seeds", "0-1", "--on", "mpi"],
}
"""A command that needs each extra, and no terminal."""


def _uv(*words: object) -> None:
    subprocess.run(["uv", *map(str, words)], check=True, stdin=subprocess.DEVNULL)


def _as_a_tool(wheel: Path, folder: Path) -> Environment:
    """Install a wheel as uv installs tools, with the locked versions of its packages, for the Python of its tag."""
    made = Environment(folder / "environment", folder / "home")
    made.home.mkdir()
    tag = re.search(r"-cp3(\d+)-", wheel.name)
    _uv("venv", "--quiet", "--python", f"cpython@3.{tag[1]}" if tag else sys.executable, made.folder)
    locked = ROOT / "tools" / "requirements.txt"
    _uv("pip", "install", "--quiet", "--python", made.folder / "bin" / "python", "--constraint", locked, wheel)
    return made


@dataclass(frozen=True)
class Installed:
    """A wheel, and the environment in which it is installed."""

    wheel: Path
    environment: Environment

    @property
    def compiled(self) -> bool:
        return not self.wheel.stem.endswith("-none-any")


@pytest.fixture(scope="module", params=WHEELS)
def installed(request, tmp_path_factory) -> Installed:
    folder = tmp_path_factory.mktemp("installed")
    if FOLDER:
        wheel = Path(FOLDER, request.param)
        return Installed(wheel, _as_a_tool(wheel, folder))
    if compiling.missing():
        pytest.skip(compiling.missing())
    wheel = build("wheel", folder / "dist", MXWIRE_COMPILE="1", MXWIRE_OPTIMIZE=LEVEL)
    return Installed(wheel, install(wheel, folder))


def test_a_wheel_has_every_file_and_the_compiled_modules_where_they_are_compiled(installed):
    with zipfile.ZipFile(installed.wheel) as archive:
        names = {name for name in archive.namelist() if name.startswith("mxwire/")}
    compiled = {name.partition(".")[0] + ".py" for name in names if name.endswith(".so")}
    package = ROOT / "mxwire"
    files = {path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    assert {f"mxwire/{path.relative_to(package)}" for path in files} <= names
    expected = {f"mxwire/{path.relative_to(package)}" for path in compiling.sources(package)} | {"mxwire/_native.py"}
    assert compiled == (expected if installed.compiled else set())
    assert not FOLDER or not installed.compiled or "-manylinux" in installed.wheel.name


def test_no_path_of_this_machine_is_in_a_wheel(installed):
    """Neither as a folder to search for libraries, nor in a message. Less optimized code has assertions with paths."""
    with zipfile.ZipFile(installed.wheel) as archive:
        texts = {name: archive.read(name) for name in archive.namelist() if FOLDER or "__mypyc." not in name}
    places = {str(Path.home()), sys.base_prefix, str(ROOT), sysconfig.get_path("include")} - {"/", "/usr", "/usr/local"}
    assert [name for name, text in texts.items() for place in places if f"{place}/".encode() in text] == []


def test_the_version_names_the_kind_of_the_wheel(installed):
    done = installed.environment.run("mxwire", "--version")
    kind = "compiled" if installed.compiled else "pure Python"
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"mxwire, version {__version__} ({kind}; cpython 3.")
    assert f"-{__version__}-" in installed.wheel.name


def test_the_first_answer(installed):
    """Without a compiler in the environment."""
    done = installed.environment.run("mxwire", "info", EVERY_TYPE)
    assert (done.returncode, done.stderr) == (0, "")
    assert "vm1:0" in done.stdout


def test_a_live_host_answers(installed):
    if why_not := missing():
        pytest.skip(why_not)
    home = installed.environment.home
    program = (str(installed.environment.folder / "bin" / "python"), "-P", "-u", "-m", "mxwire")
    with Laboratory() as laboratory:
        near, far = laboratory.pair(9000)
        with running(near, "serve", "--echo", "--name", "alpha:0", program=program) as server:
            server.until("alpha:0")
            done = far.namespace.run(
                *program, "ping", "alpha:0:1", "-i", far.interface, "-c", "2", cwd=home, timeout=60
            )
            assert (done.returncode, done.stderr) == (0, "")
            assert server.end() == 130


@pytest.mark.parametrize("extra", COMMANDS)
def test_a_command_without_its_extra_fails_with_the_command_that_adds_it(installed, extra):
    done = installed.environment.run("mxwire", *COMMANDS[extra])
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"mxwire: .* (python -m pip install|uv pip install --python \S+) '.+\n", done.stderr)


def test_the_sdist_and_the_wheel_are_the_same_when_they_are_built_again(tmp_path):
    """Also from an unpacked sdist, with other times and permissions of the files."""
    when = {"SOURCE_DATE_EPOCH": "1700000000"}
    sdist, wheel = (build(target, tmp_path / target, **when) for target in ("sdist", "wheel"))
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    (source,) = (tmp_path / "unpacked").iterdir()
    for path in source.rglob("*"):
        os.utime(path, (0, 0))
    (source / "pyproject.toml").chmod(0o600)
    for target, first in (("sdist", sdist), ("wheel", wheel)):
        assert build(target, tmp_path / f"{target}-again", source, **when).read_bytes() == first.read_bytes()
    # Compiled folders in build/ link to others, which must not hide them.
    for folder in ("mxwire", "replay", "captures"):
        here, there = ({path.relative_to(root) for path in (root / folder).rglob("*")} for root in (ROOT, source))
        assert {path for path in here - there if "__pycache__" not in path.parts} == set()
