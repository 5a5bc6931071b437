"""The commands mxwire library and mxwire run: what they build, print and refuse."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mxwire.errors import MxwireError
from mxwire.myriexpress.build import LIBRARY, SECOND_NAME, Installation, build, last_prefix, remember_prefix
from mxwire.myriexpress.launch import environment
from mxwire.myriexpress.stamp import stamp
from tests.cli.support import Run, mxwire
from tests.forked import CLI

from .conftest import SOURCES
from .programs import run


def refused(done: Run, *words: str) -> None:
    """One line, exit code 2."""
    assert done.code == 2 and done.out == "", done
    assert done.err.count("\n") == 1 and all(each in done.err for each in words), done.err


def test_check_runs_the_self_test(installation: Installation):
    done = mxwire("library", "check", "--prefix", installation.prefix)
    assert done.code == 0, done.err
    steps = "compiled with the header, started Python, exchanged messages of 10 lengths, ended"
    loaded = (
        ", loaded by libfabric, ping-pong of 2 processes"
        if installation.provider.is_file() and shutil.which("fi_info")
        else ""
    )
    assert done.out == f"{installation.library}: {steps}{loaded}\n"


def test_the_search_path_has_no_library_of_others(installation: Installation):
    """In an environment of Python, ``lib`` may contain PyPI's libmpi."""
    names = [each.name for each in installation.search_folder.iterdir() if each.name.startswith("lib")]
    assert sorted(names) == [LIBRARY, SECOND_NAME]
    assert {(installation.search_folder / each).resolve() for each in names} == {installation.library.resolve()}


def test_path_prints_folders(installation: Installation):
    assert mxwire("library", "path", "--prefix", installation.prefix).out == f"{installation.search_folder}\n"
    packages = mxwire("library", "path", "--packages", "--prefix", installation.prefix).out.strip()
    assert Path(packages, "mxwire-mx.pc").is_file()
    (found,) = mxwire("library", "path", "--json", "--prefix", installation.prefix).objects
    assert found["library"] == str(installation.library)
    if installation.provider.is_file():
        folder = mxwire("library", "path", "--provider", "--prefix", installation.prefix).out.strip()
        assert Path(folder) == installation.provider.parent == Path(found["provider"]).parent
    refused(mxwire("library", "path", "--provider", "--packages"), "exclude each other")


@pytest.mark.parametrize("command", [("library", "check"), ("library", "path"), ("run", "--json")])
def test_a_missing_library_is_one_line(tmp_path: Path, command: tuple[str, ...]):
    refused(mxwire(*command, "--prefix", tmp_path / "none"), "is not built", "mxwire library build --prefix")


def test_a_stale_library_is_detected(installation: Installation, tmp_path: Path, alone: dict[str, str]):
    stale = Installation(tmp_path / "stale")
    stale.engine.parent.mkdir(parents=True)
    for name in ("library", "engine"):
        getattr(stale, name).symlink_to(getattr(installation, name))
    stale.stamp_file.write_text("0.1-0123456789ab Python 3.11 /usr/bin/python3\n")
    refused(mxwire("library", "check", "--prefix", stale.prefix), "another version", "0.1-0123456789ab")


def test_a_stale_library_is_refused_by_mx_init(installation: Installation, tmp_path: Path, alone: dict[str, str]):
    """As after an upgrade of mxwire: the engine compares the stamp of its build."""
    old = "0" * len(stamp())
    stale = Installation(tmp_path / "stale")
    shutil.copytree(installation.folder, stale.folder)
    stale.engine.write_bytes(installation.engine.read_bytes().replace(stamp().encode(), old.encode()))
    program = tmp_path / "program"
    flags = [f"-I{installation.include}", f"-L{stale.folder}", "-lmyriexpress"]
    run(["cc", SOURCES / "start.c", "-o", program, *flags], check=True)
    done = run([program], env=alone | {"LD_LIBRARY_PATH": str(stale.folder)})
    assert done.returncode == 38
    assert done.stderr == (
        f"mxwire: libmyriexpress.so was built by another version of mxwire ({old}): run mxwire library build\n"
    )


@pytest.fixture
def _remembered() -> Iterator[None]:
    """Whatever a test builds, the prefix of the last build stays that of the developer."""
    before = last_prefix()
    yield
    remember_prefix(before)


@pytest.mark.usefixtures("_remembered")
def test_a_prefix_with_spaces(installation: Installation, tmp_path: Path, alone: dict[str, str]):
    """The shell command that is printed and the flags of pkg-config are quoted; LD_PRELOAD cannot be. Later commands
    use this prefix, too."""
    spaced = tmp_path / "my prefix"
    done = mxwire("library", "build", "--prefix", spaced)
    assert mxwire("library", "path").out == f"{spaced}/lib/mxwire\n"
    export = done.out.splitlines()[-1].partition("export ")[2]
    assert export == f"PKG_CONFIG_PATH='{spaced}/lib/pkgconfig'"
    source, program = SOURCES / "start.c", tmp_path / "program"
    line = f"{export} sh -c 'eval cc $(pkg-config --cflags --libs mxwire-mx) {source} -o {program}'"
    run(["sh", "-c", line], check=True)
    made = Installation(spaced)
    assert run([program], env=environment(made, alone)).returncode == 0
    refused(mxwire("run", "--preload", "--prefix", spaced, "--json"), "LD_PRELOAD", "another --prefix")
    colon = tmp_path / "a:b"
    spaced.rename(colon)
    refused(mxwire("run", "--prefix", colon, "--json"), "LD_LIBRARY_PATH", "another --prefix")


def test_build_needs_a_compiler_headers_and_libpython(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    import sysconfig

    with monkeypatch.context() as patch:
        patch.setenv("CC", "no-such-compiler")
        with pytest.raises(MxwireError, match="there is no C compiler"):
            build(tmp_path)
    with monkeypatch.context() as patch:
        patch.setenv("CC", "false")
        with pytest.raises(MxwireError, match="false fails"):
            build(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(sysconfig, "get_path", lambda name: str(tmp_path / name))
        with pytest.raises(MxwireError, match=r"has no Python\.h"):
            build(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(
            sysconfig, "get_config_var", lambda name: "libpython3.a" if name == "INSTSONAME" else str(tmp_path)
        )
        with pytest.raises(MxwireError, match="has no shared library"):
            build(tmp_path)
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "cffi", None)
        with pytest.raises(MxwireError, match=r"needs cffi.* pip install 'cffi"):
            build(tmp_path)
    # Before anything is compiled, which takes a while.
    monkeypatch.setenv("CC", "false")
    (tmp_path / "file").touch()
    with pytest.raises(MxwireError, match=r"file: the library cannot be installed: not a directory"):
        build(tmp_path / "file" / "below")
    allowed = os.access
    # Finding the compiler requires the permission to execute only.
    monkeypatch.setattr(os, "access", lambda path, mode: not mode & os.W_OK and allowed(path, mode))
    with pytest.raises(MxwireError, match="no permission to write; choose another --prefix"):
        build(tmp_path / "new" / "below")
    assert not (tmp_path / "new").exists()


def run_command(installation: Installation, *arguments: str) -> subprocess.CompletedProcess[str]:
    """``mxwire run`` replaces its process if it refuses nothing, so it needs one of its own."""
    command = [sys.executable, str(CLI), "run", "--prefix", str(installation.prefix), *arguments]
    return run(command, env=os.environ | {"LD_LIBRARY_PATH": "/x"})


def test_run_sets_variables_and_becomes_the_program(installation: Installation):
    program = "import os, sys; print(os.environ['LD_LIBRARY_PATH'], os.environ['MXWIRE_NAME']); sys.exit(5)"
    done = run_command(installation, "--name", "alpha", "--", sys.executable, "-c", program)
    assert (done.returncode, done.stdout, done.stderr) == (5, f"{installation.search_folder}:/x alpha\n", "")


def test_run_refuses_programs_that_call_open_mx_by_its_own_names(installation: Installation, tmp_path: Path):
    own = tmp_path / "omx.c"
    own.write_text("int omx_open_endpoint(void) { return 0; }\n")
    source = tmp_path / "program.c"
    source.write_text("int omx_open_endpoint(void); int main(void) { return omx_open_endpoint(); }\n")
    library, program = tmp_path / "libopen-mx.so.0", tmp_path / "program"
    soname = "-Wl,-soname,libopen-mx.so.0"
    run(["cc", "-shared", "-fPIC", soname, str(own), "-o", str(library)], check=True)
    run(["cc", str(source), "-o", str(program), str(library)], check=True)
    done = run_command(installation, "--", str(program))
    assert (done.returncode, done.stdout) == (2, "") and done.stderr.count("\n") == 1
    assert "omx_open_endpoint" in done.stderr and "compile it with mxwire's myriexpress.h" in done.stderr
    assert run_command(installation, "--", "true").returncode == 0


def test_run_prints_the_variables(installation: Installation):
    options = ("--name", "beta", "--dialect", "omx:1500", "--profile", "native-mx", "--no-announce", "--preload")
    done = run_command(installation, "--json", *options)
    assert json.loads(done.stdout) == {
        "LD_LIBRARY_PATH": f"{installation.search_folder}:/x",
        "LD_PRELOAD": str(installation.library),
        "MXWIRE_NAME": "beta",
        "MXWIRE_DIALECT": "omx:1500",
        "MXWIRE_PROFILE": "native-mx",
        "MXWIRE_ANNOUNCE": "0",
    }


def test_run_refuses_options_that_the_program_could_not_use(installation: Installation):
    for arguments, words in {
        ("-i", "nosuch0", "--", "true"): "nosuch0",
        ("--name", "a:b", "--", "true"): "'a:b' is not a host name",
        ("--profile", "nonsense", "--", "true"): "nonsense",
        ("--dialect", "nonsense", "--", "true"): "nonsense",
        ("--peers", "/nonexistent", "--", "true"): "/nonexistent",
        ("--", "/no/such/program"): "cannot be started",
        (): "a program is missing",
    }.items():
        refused(mxwire("run", "--prefix", installation.prefix, *arguments), words)
