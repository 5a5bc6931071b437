"""mxwire compiled does what it does interpreted: the tests of what is compiled, run once more."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from tests.live.namespaces import Laboratory, missing

ROOT = Path(__file__).resolve().parents[2]
PARTS = 4
"""Processes that run the tests again, each with some of their files."""
LEVEL = "0"
"""Environment of the compilation for tests: a quick one, with the assertions of mypyc's library."""


def load_tool():
    spec = spec_from_file_location("compile_tool", ROOT / "tools" / "compile.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MXWIRE_OPTIMIZE", LEVEL)
        spec.loader.exec_module(module)
    return module


compiling = load_tool()


@pytest.fixture(scope="session")
def compiled() -> Path:
    """The folder with the compiled package."""
    lacking = compiling.missing()
    if lacking is not None:
        pytest.skip(lacking)
    compiling.compile_into(compiling.FOLDER)
    return compiling.FOLDER


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A program that finds the compiled package, and not the other one in its folder."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_"))}
    return subprocess.run(
        [sys.executable, "-P", *words],
        env=environment | {"PYTHONPATH": str(folder)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_all_that_should_be_is_compiled(compiled):
    package = compiled / "mxwire"
    names = [str(path.relative_to(package).with_suffix("")).replace("/", ".") for path in compiling.sources(package)]
    assert {"frames", "wire.codec", "protocol.node", "host.driver", "link.ring_v2"} <= set(names)
    program = (
        "import sys, importlib\nfor each in sys.argv[1:]: print(importlib.import_module(f'mxwire.{each}').__file__)"
    )
    done = run(compiled, "-c", program, *names)
    assert done.stderr == ""
    assert [Path(line).suffix for line in done.stdout.splitlines()] == [".so"] * len(names)
    assert all(line.startswith(str(package)) for line in done.stdout.splitlines())


def test_the_uncompiled_modules_are_present(compiled):
    """An exception for a file that is gone would be stale."""
    assert all((compiled / "mxwire" / each).exists() and reason for each, reason in compiling.LEFT.items())


def test_compiled_commands_find_the_files_outside_the_package(compiled):
    """The library of scenarios, the plugin for Wireshark and its capture are those of the checkout."""
    for words in (["scenario", "list"], ["scenario", "run", "connect/bad-key"], ["plugin", "path"]):
        done, interpreted = (run(folder, "-m", "mxwire", *words) for folder in (compiled, ROOT))
        assert done.stderr == interpreted.stderr == "" and done.returncode == 0
        assert words[0] == "plugin" or done.stdout == interpreted.stdout != ""
    program = (
        "from mxwire.scenarios.shipped import scenario_names\nfrom mxwire.dissector.location import *\n"
        "from mxwire.plugin.check import shipped_capture\n"
        "print(scenario_names())\n"
        "for each in (plugin_path(), colour_rules_path(), filter_buttons_path(), shipped_capture()):\n"
        "    print(each.resolve())"
    )
    done, interpreted = (run(folder, "-c", program) for folder in (compiled, ROOT))
    assert (done.stdout, done.stderr) == (interpreted.stdout, "")
    assert "connect/bad-key" in done.stdout


def parts() -> list[list[str]]:
    """The files of tests, longest first and dealt out, so that the processes of the test run share them."""
    tests = ROOT / "tests"
    files = [file for each in ("conformance", "protocol", "host") for file in (tests / each).glob("test_*.py")]
    files = sorted([*files, tests / "simulation" / "test_determinism.py"], key=lambda file: -file.stat().st_size)
    return [[str(file.relative_to(ROOT)) for file in files[part::PARTS]] for part in range(PARTS)]


@pytest.mark.longest
@pytest.mark.parametrize("files", parts(), ids=lambda files: Path(files[0]).stem)
def test_interpreted_tests_pass_compiled(compiled, files):
    """Also that the runs of the simulator are the same, byte by byte: their digests are."""
    words = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not interpreted")
    done = run(compiled, *words, *files)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr


SPINNING = """
import signal, threading, time
from mxwire.host import Host
from mxwire.link import PacketLink

def interrupt():
    time.sleep(0.5)
    signal.raise_signal(signal.SIGINT)

def interrupted(wait):
    threading.Thread(target=interrupt).start()
    try:
        wait()
    except KeyboardInterrupt:
        print("interrupted", flush=True)

with PacketLink.open("veth0", mode="spin") as link:
    interrupted(lambda: link.receive(20))
with Host.open("veth0", dialect="omx:1500", spin=True) as host:
    interrupted(lambda: host.open_endpoint().receive(timeout=20))
"""


def test_spinning_lets_other_threads_and_signals_run(compiled, tmp_path):
    """They get it only when something is called that is not compiled."""
    why_not = missing()
    if why_not:
        pytest.skip(why_not)
    (tmp_path / "spinning.py").write_text(SPINNING)
    with Laboratory() as laboratory:
        port, _ = laboratory.pair(1500)
        done = port.namespace.run(
            "env", f"PYTHONPATH={compiled}", sys.executable, str(tmp_path / "spinning.py"), check=False, timeout=60
        )
    assert (done.stdout, done.stderr, done.returncode) == ("interrupted\ninterrupted\n", "", 0)


def test_nothing_is_compiled_twice(compiled):
    assert compiling.compile_into(compiled) is False


def test_a_compiler_that_is_missing_is_named(tmp_path):
    """In one line, with what to do."""
    environment = os.environ | {"CC": "no-such-compiler"}
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "compile.py"), str(tmp_path)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "tools/compile.py: no C compiler (apt-get install gcc)\n"
    assert list(tmp_path.iterdir()) == []
