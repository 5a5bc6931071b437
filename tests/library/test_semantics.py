"""Functions, return codes and pitfalls of the C interface, by a program in C that talks to itself."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mxwire.myriexpress.build import Installation
from mxwire.myriexpress.program_options import read_options

from .conftest import SOURCES, Compile
from .programs import run

PROGRAM = SOURCES / "semantics.c"
CASES = re.findall(r"CASE\((\w+)\)[,\n]", PROGRAM.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def outcome(compile_program: Compile, alone: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return run([compile_program(PROGRAM)], env=alone)


@pytest.mark.parametrize("case", CASES)
def test_case(outcome: subprocess.CompletedProcess[str], case: str):
    assert f"ok {case}" in outcome.stdout.splitlines(), outcome.stdout + outcome.stderr


def test_the_program_ends_without_a_traceback(outcome: subprocess.CompletedProcess[str]):
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    # The children of forks, which may not use MX again.
    assert set(outcome.stderr.splitlines()) == {
        "mxwire: a process that has forked cannot use MX again: start another program (exec) instead"
    }


def test_a_failing_case_is_noticed(compile_program: Compile, alone: dict[str, str]):
    """Without the wait for discovery, and with another number of boards, a case has something to report."""
    done = run([compile_program(PROGRAM), "opening"], env=alone | {"OMX_ANY_ENDPOINT": "1"})
    assert done.returncode == 1 and "semantics.c" in done.stdout


def test_data_symbols_are_right_in_programs_that_copy_them(compile_program: Compile, alone: dict[str, str]):
    for name, flags in {"symbols-pie": ("-fPIE", "-pie"), "symbols-fixed": ("-fno-PIE", "-no-pie")}.items():
        assert run([compile_program(SOURCES / "symbols.c", *flags, name=name)], env=alone).returncode == 0


@pytest.mark.parametrize(("variables", "code"), [({}, 255), ({"MX_ERRORS_ARE_FATAL": "0"}, 0)])
def test_errors_are_fatal_unless_the_environment_disables_that(
    compile_program: Compile, alone: dict[str, str], variables: dict[str, str], code: int
):
    done = run([compile_program(SOURCES / "fatal.c")], env=alone | variables)
    assert done.returncode == code
    assert done.stderr == ("MX: fatal error: mx_close_endpoint: Bad endpoint\n" if code else "")


def test_programs_that_never_use_the_library_start_no_python(installation, alone: dict[str, str]):
    """Preloaded, it must cost little: neither libpython nor anything of Python is mapped."""
    maps = run(["cat", "/proc/self/maps"], env=alone | {"LD_PRELOAD": str(installation.library)}, check=True).stdout
    assert "libmyriexpress.so" in maps and "python" not in maps


def test_the_second_name_is_the_same_library(
    compile_program: Compile, alone: dict[str, str], tmp_path: Path, installation
):
    """Programs linked with Open-MX want libopen-mx.so.0."""
    source = tmp_path / "second.c"
    source.write_text('#include "myriexpress.h"\nint main(void) { return mx_init() || mx_finalize() ? 1 : 0; }\n')
    program = tmp_path / "second"
    run(["cc", f"-I{installation.include}", str(source), "-o", str(program), str(installation.second_name)], check=True)
    assert run([program], env=alone).returncode == 0


@pytest.fixture(scope="module")
def starter(compile_program: Compile) -> Path:
    """A program whose exit code is the result of mx_init."""
    return compile_program(SOURCES / "start.c")


@pytest.fixture(scope="module")
def small(compile_program: Compile) -> Path:
    return compile_program(SOURCES / "small.c")


def test_a_fork_while_another_thread_starts_the_library(small: Path, alone: dict[str, str]):
    """The child's mx_init does not hang, and is refused as in any child."""
    done = run([small, "fork"], env=alone)
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


def test_a_handler_may_exit(small: Path, alone: dict[str, str]):
    done = run([small, "exit"], env=alone)
    assert (done.returncode, done.stderr) == (7, "")


def test_a_program_may_exit_while_a_handler_does_not_return(small: Path, alone: dict[str, str]):
    variables = alone | {"MXWIRE_LINGER": "0.2"}
    done = run([small, "stuck"], env=variables)
    assert (done.returncode, done.stderr) == (6, "")


def test_closed_streams_are_not_replaced_by_sockets(small: Path, alone: dict[str, str]):
    done = run([small, "closed"], env=alone)
    assert done.returncode == 0


def test_variables_for_other_pythons_have_no_effect(small: Path, alone: dict[str, str], tmp_path: Path):
    """As modules of clusters set them."""
    for module in ("encodings", "numpy", "random"):
        tmp_path.joinpath(f"{module}.py").write_text("raise SystemError('of another Python')\n")
    variables = {
        "PYTHONHOME": "/nonexistent",
        "PYTHONPATH": str(tmp_path),
        "PYTHONIOENCODING": "nonsense",
        "PYTHONHASHSEED": "nonsense",
        "PYTHONOPTIMIZE": "2",
        "PYTHONPROFILEIMPORTTIME": "1",
        "LC_ALL": "C",
    }
    done = run([small, "show"], env=alone | variables)
    assert (done.returncode, done.stdout, done.stderr) == (0, "2 0 0 32768\n", "")


def test_a_python_without_mxwire_is_one_line(
    starter: Path, alone: dict[str, str], tmp_path: Path, installation: Installation
):
    """That of the program, and one whose mxwire was removed."""
    package = tmp_path / "mxwire"
    package.mkdir()
    package.joinpath("__init__.py").write_text("raise ImportError('broken\\nin several lines')\n")
    variables = alone | {"PYTHONPATH": str(tmp_path)}
    done = run([starter], env=variables)
    reason = f"mxwire: Python ({sys.executable}) cannot import mxwire (ImportError: broken): "
    assert (done.returncode, done.stderr) == (6, f"{reason}run mxwire library build again\n")
    # Another mxwire precedes that of the build.
    program = f"import ctypes, sys; sys.exit(ctypes.CDLL({str(installation.library)!r}).mx__init_api(0x301))"
    done = run([sys.executable, "-c", program], env=variables | {"MX_ERRORS_ARE_FATAL": "0"}, cwd=tmp_path)
    assert done.returncode == 6 and done.stderr.endswith("): install mxwire for this Python, too\n"), done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("variables", "threads", "buffered", "eager"),
    [
        ({}, 2, "0 0", 32768),
        ({"MX_MONOTHREAD": "1"}, 1, "0 0", 32768),
        ({"MX_DISABLE_SELF": "1"}, 2, "0 0", 32768),
        ({"MX_DISABLE_SHMEM": "1"}, 2, "0 1", 32768),
        ({"MX_DISABLE_SHARED": "1", "MX_DISABLE_SELF": "1"}, 2, "1 1", 32768),
        ({"MX_PIPELINE_LOG": "11"}, 2, "0 0", 16384),
        ({"OMX_RNDV_THRESHOLD": "5000"}, 2, "0 0", 5000),
    ],
)
def test_variables_of_mx_that_have_an_effect(
    small: Path, alone: dict[str, str], variables: dict[str, str], threads: int, buffered: str, eager: int
):
    """Threads, whether 10,000 bytes to itself and to another endpoint of the host are copied, and COPY_SEND_MAX."""
    done = run([small, "show"], env=alone | variables)
    assert (done.returncode, done.stdout) == (0, f"{threads} {buffered} {eager}\n"), done.stdout + done.stderr


def test_variables_without_effect_are_reported(small: Path, alone: dict[str, str]):
    """R-LOC-03: there is no bonding; and memory is not registered beyond the end of a request."""
    variables = alone | {"MX_VERBOSE": "1", "MX_RCACHE": "2", "MX_BONDING": "1", "MX_PIPELINE_LOG": "0"}
    done = run([small, "show"], env=variables)
    assert done.stderr.splitlines()[1:] == ["mxwire: without effect: MX_RCACHE, MX_BONDING"]


def test_the_length_of_fragments(monkeypatch: pytest.MonkeyPatch):
    """MX_PIPELINE_LOG is the base-2 logarithm; 0 stands for the default, and other values are limited."""
    for value, dialect, pipeline in [
        ("0", "mxoe", None),
        ("11", "mxoe", 11),
        ("3", "mxoe", 10),
        ("30", "mxoe", 12),
        ("11", "omx", None),
    ]:
        variables = {"MX_PIPELINE_LOG": value, "MXWIRE_DIALECT": dialect, "MX_NO_MYRINET": "1"}
        assert read_options(variables.get).profile.fragment_pipeline == pipeline


def test_garbage_in_the_environment_is_one_line(starter: Path, alone: dict[str, str]):
    cases = {
        "MXWIRE_DIALECT": ("nonsense", 1),
        "MXWIRE_PROFILE": ("nonsense", 1),
        "MXWIRE_NAME": ("a:b:c", 1),
        "MXWIRE_PEERS": ("/nonexistent", 1),
        "MX_MAX_RETRIES": ("many", 1),
        "OMX_CTXIDS": ("many", 1),
    }
    for name, (value, code) in cases.items():
        done = run([starter], env=alone | {name: value})
        assert (done.returncode, done.stderr.count("\n")) == (code, 1), (name, done.stderr)
        assert done.stderr.startswith("mxwire: ") and "Traceback" not in done.stderr
    gone = {"MX_NO_MYRINET": "0", "MXWIRE_INTERFACE": "nosuch0"}
    done = run([starter], env=alone | gone)
    assert done.returncode == 5 and "nosuch0" in done.stderr


def test_a_long_name_of_another_host_is_truncated(compile_program: Compile, alone: dict[str, str], tmp_path: Path):
    """Programs have 80 bytes for a name, and a name from the network may be longer as UTF-8."""
    peers = tmp_path / "peers"
    peers.write_text("02:00:00:00:00:99 " + 79 * "\ufffd" + "\n", encoding="utf-8")
    variables = alone | {"MXWIRE_PEERS": str(peers)}
    done = run([compile_program(SOURCES / "name.c")], env=variables)
    assert (done.returncode, done.stderr) == (0, "")


def test_too_many_interfaces_are_one_line(starter: Path, alone: dict[str, str]):
    variables = alone | {"MX_NO_MYRINET": "0", "MXWIRE_INTERFACE": ",".join(f"eth{each}" for each in range(17))}
    done = run([starter], env=variables)
    assert done.returncode and done.stderr == "mxwire: MXWIRE_INTERFACE names 17 interfaces: name at most 16\n"


def test_programs_under_mpirun_wait_longer_for_late_hosts():
    alone = {"MX_NO_MYRINET": "1"}
    assert read_options(alone.get).discovery == 10
    for variable in ("OMPI_COMM_WORLD_SIZE", "PMI_RANK", "SLURM_PROCID"):
        assert read_options((alone | {variable: "0"}).get).discovery == 60
        assert read_options((alone | {variable: "0", "MXWIRE_DISCOVERY": "3"}).get).discovery == 3


def test_a_user_without_permission_gets_a_return_code(starter: Path, alone: dict[str, str], cable):
    port = cable[0]
    drop = ["setpriv", "--bounding-set=-net_raw", "--inh-caps=-net_raw"]
    done = run(
        port.namespace.command(*drop, str(starter)),
        env=alone | {"MX_NO_MYRINET": "0", "MXWIRE_INTERFACE": port.interface},
    )
    assert done.returncode == 7 and done.stderr.startswith("mxwire: veth0: "), done.stderr
    assert done.stderr.count("\n") == 1


def test_the_c_side_is_clean_under_the_sanitizers(
    alone: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The library and the program with AddressSanitizer and UndefinedBehaviorSanitizer."""
    from mxwire.myriexpress.build import build

    flags = "-O0 -fsanitize=address,undefined -fno-omit-frame-pointer -fno-sanitize-recover=undefined"
    # A thread that is not notified, but finds a change only at the end of its sleep, is too late for its case.
    monkeypatch.setenv("CFLAGS", f"{flags} -DLONGEST_MS=20000")
    made = build(tmp_path / "prefix")
    program = tmp_path / "semantics"
    run(
        [
            *("cc", "-g", *flags.split(), f"-I{made.include}", str(PROGRAM), "-o", str(program)),
            *(f"-L{made.folder}", "-lmyriexpress", "-pthread"),
        ],
        check=True,
    )
    done = run(
        [program],
        # Memory that Python keeps until the end is not a leak of the library.
        env=alone | {"LD_LIBRARY_PATH": str(made.folder), "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=0"},
    )
    assert done.returncode == 0, done.stdout + done.stderr


LOADER = Path(__file__).parent / "valgrind.supp"

if shutil.which("valgrind"):

    def test_the_c_side_is_clean_under_valgrind(small: Path, alone: dict[str, str]):
        """No wrong access to memory; Python itself uses values that valgrind takes for uninitialised."""
        done = run(
            [
                "valgrind",
                "-q",
                "--undef-value-errors=no",
                "--error-exitcode=9",
                f"--suppressions={LOADER}",
                small,
                "show",
            ],
            env=alone,
        )
        assert (done.returncode, done.stdout) == (0, "2 0 0 32768\n"), done.stderr


def test_a_signal_that_exits_in_the_engine_does_not_hang(compile_program: Compile, alone: dict[str, str]):
    """As the handlers do that libinfinipath installs, which Debian's libfabric loads."""
    program = compile_program(SOURCES / "signal_exit.c")
    runs = [
        subprocess.Popen([program, str(delay)], env=alone | {"MXWIRE_LINGER": "0"}) for delay in (3000, 30001, 57003)
    ]
    try:
        assert [each.wait(60) for each in runs] == [3, 3, 3]
    finally:
        for each in runs:
            each.kill()


@pytest.mark.parametrize("single", ["0", "1"], ids=["thread", "no thread"])
def test_a_program_that_sleeps_on_the_descriptor_of_its_endpoint_misses_nothing(
    compile_program: Compile, alone: dict[str, str], single: str
):
    program = compile_program(SOURCES / "descriptor.c")
    variables = alone | ({"MX_MONOTHREAD": "1"} if single == "1" else {})
    done = run([program], env=variables)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stdout + done.stderr
