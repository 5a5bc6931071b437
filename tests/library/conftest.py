"""The library, built once for all processes of a test run, and programs in C that are compiled with it."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mxwire.errors import MxwireError
from mxwire.myriexpress.build import Installation, build
from mxwire.myriexpress.launch import environment, provider_environment
from tests.live.namespaces import Laboratory, Port, missing

from .mpi_hosts import Hosts
from .programs import run

SOURCES = Path(__file__).parent
Compile = Callable[..., Path]


@pytest.fixture(scope="session")
def shared_folder(run_folder: Path) -> Path:
    """A folder that all processes of this run share."""
    folder = run_folder / "mx-library"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def installation(shared_folder: Path) -> Installation:
    """The library, built by this mxwire."""
    made = Installation(shared_folder / "prefix")
    with (shared_folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.stamp_file.exists():
            try:
                build(made.prefix, libfabric=Path("/usr/include/rdma/fabric.h").exists())
            except MxwireError as error:
                pytest.skip(str(error))
    return made


@pytest.fixture(scope="session")
def compile_program(installation: Installation, shared_folder: Path) -> Compile:
    """Compile a program in C with the flags of the pkg-config file; warnings are errors."""

    def compiled(source: Path, *flags: str, name: str = "") -> Path:
        program = shared_folder / (name or source.stem)
        with (shared_folder / f"{program.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not program.exists():
                found = run(
                    ["pkg-config", "--cflags", "--libs", "mxwire-mx"],
                    env=os.environ | {"PKG_CONFIG_PATH": str(installation.package.parent)},
                    check=True,
                )
                strict = ["-g", "-Wall", "-Wextra", "-Werror", "-pthread", *flags]
                run(["cc", *found.stdout.split(), *strict, str(source), "-o", str(program)], check=True)
        return program

    return compiled


@pytest.fixture(scope="session")
def alone(installation: Installation) -> dict[str, str]:
    """The environment of programs without an interface, which only send messages to themselves."""
    quick = {"MX_NO_MYRINET": "1", "MXWIRE_DISCOVERY": "0.3"}
    # Programs check that the library does not leave these behind; Python itself sets the first if there is no LANG.
    left = ("LC_CTYPE", "OPENBLAS_NUM_THREADS")
    before = {name: value for name, value in os.environ.items() if name not in left}
    return environment(installation, before) | quick


@pytest.fixture(scope="module")
def cable() -> Iterator[tuple[Port, Port]]:
    """Two machines for all tests of a module, joined by a cable: veth0 and veth1."""
    why_not = missing()
    if why_not:
        pytest.skip(why_not)
    with Laboratory() as made:
        yield made.pair(9000)


@pytest.fixture(scope="session")
def variables(installation: Installation) -> dict[str, str]:
    """The environment of programs with libfabric."""
    if not installation.provider.is_file():
        pytest.skip("the header files of libfabric are not installed")
    return dict(os.environ) | provider_environment(installation)


@pytest.fixture(scope="module")
def hosts(cable: tuple[Port, Port], variables: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Hosts:
    """Two hosts on the cable of the module."""
    return Hosts(cable, variables, tmp_path_factory.mktemp("agent") / "agent")
