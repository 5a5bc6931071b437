"""The wheel, installed into clean environments: its files, its declared packages, its size, and its commands.

An environment contains the wheel as pip installs it, and the packages that the wheel declares, with those that they
declare in turn. They are linked from the environment of the tests: nothing is downloaded, and no other package can be
imported.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from tests.dissector.support import needs_scripts
from tests.docs.maker import declared
from tests.tools.environment import ROOT, Environment, build, install, link, requirements_of

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


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    return build("wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def requirements(wheel) -> list[str]:
    return requirements_of(wheel)


@pytest.fixture(scope="module")
def core(wheel, tmp_path_factory) -> Environment:
    """The wheel without extras."""
    return install(wheel, tmp_path_factory.mktemp("core"))


def test_the_wheel_is_for_all_machines_and_complete(wheel):
    """Every file of the package, of the plugin, and every scenario, byte for byte."""
    assert wheel.stem.endswith("-py3-none-any")
    expected = dict(SHIPPED)
    for folder, target in (("mxwire", "mxwire"), ("replay", "mxwire/scenarios/library")):
        for path in (ROOT / folder).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                expected[str(path.relative_to(ROOT))] = f"{target}/{path.relative_to(ROOT / folder)}"
    with zipfile.ZipFile(wheel) as archive:
        names = {each for each in archive.namelist() if ".dist-info/" not in each and ".data/data/share/" not in each}
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


@pytest.mark.skipif(shutil.which("man") is None, reason="man is not installed")
def test_man_finds_the_pages_of_an_installation(core):
    """Beside the programs on the path."""
    for words, shown in (["mxwire-decode"], "Decode captures"), (["7", "mxwire-filter"], "EXPRESSION"):
        done = core.run("man", *words)
        assert (done.returncode, done.stderr) == (0, "") and shown in done.stdout


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("bash-completion/completions/mxwire", "complete -o nosort -F _mxwire_completion mxwire"),
        ("zsh/site-functions/_mxwire", "#compdef mxwire\n"),
        ("fish/vendor_completions.d/mxwire.fish", "complete --no-files --command mxwire"),
    ],
)
def test_the_wheel_installs_completions(core, name, shown):
    """In the folders of the shells, and with the same text as the command prints."""
    script = (core.folder / "share" / name).read_text()
    shell = next(each for each in ("bash", "zsh", "fish") if name.startswith(each))
    environment = {"_MXWIRE_COMPLETE": f"{shell}_source", "PATH": "/usr/bin:/bin"}
    done = subprocess.run([core.folder / "bin" / "mxwire"], env=environment, capture_output=True, text=True, check=True)
    assert shown in script and done.stdout.strip() == script.strip()


COMMANDS = {
    "help": (0, "plugin", ["--help"]),
    "version": (0, "(pure Python; cpython 3.", ["--version"]),
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
    "report, of studies": ("mxwire", "bench", "logp", "--memory", "--quick", "--over", "null", "--html", "site"),
    "scapy": ("python", "-c", "import mxwire.scapy as layers; assert layers.LAYERS"),
    "pyshark": ("python", "-c", f"import mxwire.pyshark as p; p.open_capture({str(EVERY_TYPE)!r}).close()"),
}
"""Extras, before the comma, each with a command that needs it. Only ``fast`` has none: without numba everything works,
but slower."""


@pytest.mark.parametrize("extra", [extra for extra, words in EXTRAS.items() if words[0] == "python"])
def test_a_program_without_an_extra_gets_an_error_that_it_can_catch(core, extra):
    """Its text contains the command that installs the extra; ``test_dist.py`` has the commands."""
    last = core.run(*EXTRAS[extra]).stderr.splitlines()[-1]
    assert last.startswith("mxwire.extras.MissingExtraError: ") and ": python -m pip install '" in last


@pytest.mark.parametrize("extra", EXTRAS)
def test_an_extra_declares_all_that_its_command_needs(core, requirements, extra, tmp_path):
    packages = declared(requirements, extra.partition(",")[0])
    link([each for name, each in packages.items() if name not in declared(requirements)], tmp_path)
    done = core.run(*EXTRAS[extra], packages=tmp_path)
    assert done.returncode == 0, done.stderr
