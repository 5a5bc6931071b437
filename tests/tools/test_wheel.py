"""The wheel, installed into clean environments: its files, its declared packages, its size, and its commands.

An environment contains the wheel as pip installs it, and the packages that the wheel declares, with those that they
declare in turn. They are linked from the environment of the tests: nothing is downloaded, and no other package can be
imported.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from email.parser import HeaderParser
from importlib.util import cache_from_source
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.dissector.support import needs_scripts

ROOT = Path(__file__).parents[2]
EVERY_TYPE = ROOT / "captures" / "mxoe-every-type.pcap"
NO_REVERSE_CONNECT = ROOT / "captures" / "mxoe-no-reverse-connect.pcap"
MEGABYTES = 150
"""Maximum size of an installation without extras."""
SHIPPED = {
    "dissectors/wireshark/mxoe.lua": "mxwire/dissector/mxoe.lua",
    "dissectors/wireshark/colorfilters": "mxwire/dissector/colorfilters",
    "dissectors/wireshark/dfilter_buttons": "mxwire/dissector/dfilter_buttons",
    "captures/mxoe-every-type.pcap": "mxwire/plugin/mxoe-every-type.pcap",
}
"""Files outside the package that an installation needs, with their places in the wheel."""


@dataclass(frozen=True)
class Environment:
    """A virtual environment with the wheel, and a home of its own."""

    folder: Path
    home: Path

    @property
    def site(self) -> Path:
        (found,) = self.folder.glob("lib/python*/site-packages")
        return found

    def run(self, *command: object, packages: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment, with ``packages`` in addition, in the empty home."""
        variables = {"PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}", "HOME": str(self.home), "LC_ALL": "C.UTF-8"}
        if packages is not None:
            variables["PYTHONPATH"] = str(packages)
        return subprocess.run(
            list(map(str, command)),
            cwd=self.home,
            env=variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )


def declared(requirements: Iterable[str], extra: str = "") -> dict[str, importlib.metadata.Distribution]:
    """The packages that requirements name, directly or indirectly, as installed beside the tests."""
    found: dict[str, importlib.metadata.Distribution] = {}
    waiting = [(Requirement(each), {extra}) for each in requirements]
    while waiting:
        wanted, extras = waiting.pop()
        name = canonicalize_name(wanted.name)
        if name in found or (wanted.marker and not any(wanted.marker.evaluate({"extra": each}) for each in extras)):
            continue
        found[name] = importlib.metadata.distribution(name)
        waiting += [(Requirement(each), {"", *wanted.extras}) for each in found[name].requires or ()]
    return found


def link(packages: Iterable[importlib.metadata.Distribution], folder: Path) -> None:
    """Link the files of packages into a folder; copy them if it is on another file system."""
    for package in packages:
        for file in package.files or ():
            source, target = Path(str(package.locate_file(file))), folder / file
            if ".." in file.parts or "__pycache__" in file.parts or not source.is_file():
                continue
            link_file(source, target)
            if source.suffix == ".py":
                # The bytecode that is there already; whether pip lists it depends on how it installed the package.
                stored, wanted = (Path(cache_from_source(str(each))) for each in (source, target))
                if stored.is_file():
                    link_file(stored, wanted)


def link_file(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    variables = {name: value for name, value in os.environ.items() if name != "MXWIRE_COMPILE"}
    done = subprocess.run(build, cwd=ROOT, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (made,) = folder.iterdir()
    return made


@pytest.fixture(scope="module")
def requirements(wheel) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
        return HeaderParser().parsestr(archive.read(metadata).decode()).get_all("Requires-Dist", [])


@pytest.fixture(scope="module")
def core(wheel, requirements, tmp_path_factory) -> Environment:
    """The wheel without extras."""
    made = Environment(tmp_path_factory.mktemp("environment"), tmp_path_factory.mktemp("home"))
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(made.folder)], check=True)
    pip = [sys.executable, "-m", "pip", "--python", str(made.folder / "bin" / "python"), "install", "--quiet"]
    # Modules are compiled when a command imports them: most tests need few.
    subprocess.run([*pip, "--no-deps", "--no-index", "--no-compile", str(wheel)], check=True, stdin=subprocess.DEVNULL)
    link(declared(requirements).values(), made.site)
    return made


def test_the_wheel_is_for_all_machines_and_complete(wheel):
    """Every file of the package, of the plugin, and every scenario, byte for byte."""
    assert wheel.stem.endswith("-py3-none-any")
    expected = dict(SHIPPED)
    for folder, target in (("mxwire", "mxwire"), ("replay", "mxwire/scenarios/library")):
        for path in (ROOT / folder).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                expected[str(path.relative_to(ROOT))] = f"{target}/{path.relative_to(ROOT / folder)}"
    with zipfile.ZipFile(wheel) as archive:
        names = {each for each in archive.namelist() if ".dist-info/" not in each}
        assert names == set(expected.values())
        assert [name for name, place in expected.items() if archive.read(place) != (ROOT / name).read_bytes()] == []
    assert sum(name.endswith(".mxs") for name in names) > 250


def test_an_installation_without_extras_is_small(core):
    packages = {each.name.partition("-")[0].lower() for each in core.site.glob("*.dist-info")}
    assert packages >= {"mxwire", "numpy", "click", "rich"}
    assert not packages & {
        "polars",
        "bokeh",
        "jinja2",
        "numba",
        "scapy",
        "matplotlib",
        "pyshark",
        "pytest",
        "hypothesis",
        "mypy",
    }
    used = sum(each.stat().st_blocks * 512 for each in core.folder.rglob("*") if not each.is_symlink())
    assert 20 << 20 < used <= MEGABYTES * 1_000_000


COMMANDS = {
    "help": (0, "plugin", ["--help"]),
    "info": (0, "vm1:0", ["info", EVERY_TYPE]),
    "decode": (0, "BAD_SESSION for pull handle", ["decode", EVERY_TYPE]),
    "diagnose": (1, "no-reverse-connect", ["diagnose", "--json", NO_REVERSE_CONNECT]),
    "formats": (0, "frame_index", ["formats", "PULL"]),
    "rules": (0, "R-PUL-", ["rules", "R-PUL"]),
    "scenario": (0, "pass", ["scenario", "run", "connect/bad-key"]),
}
"""Commands, each with its exit code and a text that it prints."""


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_need_no_extra(core, name):
    code, shown, command = COMMANDS[name]
    done = core.run("mxwire", *command)
    assert (done.returncode, done.stderr) == (code, "")
    assert shown in done.stdout


def test_tables_as_text_need_no_extra(core):
    assert core.run("mxwire", "decode", "--to", "frames.csv", EVERY_TYPE).returncode == 0
    assert len((core.home / "frames.csv").read_text().splitlines()) == 88


@needs_scripts
def test_the_plugin_of_the_wheel_is_installed_and_works(core):
    assert core.run("mxwire", "plugin", "install").returncode == 0
    done = core.run("mxwire", "plugin", "check", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    source = Path(json.loads(core.run("mxwire", "plugin", "path", "--json").stdout)["source"])
    assert source == core.site / "mxwire" / "dissector" / "mxoe.lua"
    assert (source.parent / "colorfilters").is_file()


def test_python_reads_frames_without_an_extra(core):
    script = f"""
import mxwire
with mxwire.open_capture({str(EVERY_TYPE)!r}) as capture:
    print(sum(len(decoded) for decoded in mxwire.Decoder().decode_all(capture)), mxwire.__file__)
"""
    done = core.run("python", "-c", script)
    assert (done.stdout, done.stderr) == (f"87 {core.site / 'mxwire' / '__init__.py'}\n", "")


EXTRAS = {
    "table": ("python", "-c", f"import mxwire; assert len(mxwire.read_frames({str(EVERY_TYPE)!r})) == 87"),
    "plot": ("mxwire", "stats", "--plot", "plot.svg", EVERY_TYPE),
    "report": ("mxwire", "interop", "--case", "connect", "--implementation", "open-mx-1.5", "--html", "report"),
    "scapy": ("python", "-c", "import mxwire.scapy as layers; assert layers.LAYERS"),
    "pyshark": ("python", "-c", f"import mxwire.pyshark as p; p.open_capture({str(EVERY_TYPE)!r}).close()"),
}
"""Extras, each with a command that needs it. Only ``fast`` has none: without numba everything works, but slower."""


@pytest.mark.parametrize("extra", EXTRAS)
def test_a_command_without_its_extra_reports_how_to_install_it(core, extra):
    """In one line; a Python program gets an error of a type that it can catch."""
    done = core.run(*EXTRAS[extra])
    lines = done.stderr.splitlines()
    assert ": python -m pip install '" in lines[-1]
    if EXTRAS[extra][0] == "mxwire":
        assert (done.returncode, len(lines)) == (2, 1)
    else:
        assert lines[-1].startswith("mxwire.extras.MissingExtraError: ")


@pytest.mark.parametrize("extra", EXTRAS)
def test_an_extra_declares_all_that_its_command_needs(core, requirements, extra, tmp_path):
    packages = declared(requirements, extra)
    link([each for name, each in packages.items() if name not in declared(requirements)], tmp_path)
    done = core.run(*EXTRAS[extra], packages=tmp_path)
    assert done.returncode == 0, done.stderr
