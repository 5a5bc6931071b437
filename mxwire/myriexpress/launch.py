"""Start programs with the library, and run its self-test."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from mxwire.errors import MxwireError
from mxwire.lab.child import ProgramLateError, run_program
from mxwire.myriexpress.build import SECOND_NAME, Installation, compiler
from mxwire.myriexpress.stamp import SOURCES

_SELF_TEST_TIMEOUT: Final = 60
_OWN_INTERFACE: Final = b"\0omx_open_endpoint\0"
"""Name in a program that calls Open-MX by its own names: there is no other way to open an endpoint."""


def environment(installation: Installation, before: Mapping[str, str], preload: bool = False) -> dict[str, str]:
    """Return the environment ``before`` with the library first in the search path; ``preload``: also preloaded.

    Preloading reaches programs whose own search path has another library of that name. Raises
    :class:`~mxwire.errors.MxwireError` if the path of the library contains a separator of these variables.
    """
    for variable, separators in {"LD_LIBRARY_PATH": ":;", **({"LD_PRELOAD": ": \t\n"} if preload else {})}.items():
        if any(each in str(installation.library) for each in separators):
            raise MxwireError(
                f"{installation.library}: {variable} cannot contain this path, with one of its separators: run "
                "mxwire library build with another --prefix"
            )
    made = dict(before)
    made["LD_LIBRARY_PATH"] = _first(installation.search_folder, before.get("LD_LIBRARY_PATH"), ":")
    if preload:
        made["LD_PRELOAD"] = _first(installation.library, before.get("LD_PRELOAD"), " ")
    return made


def require_names_of_mx(program: str, path: str | None) -> None:
    """Raise :class:`~mxwire.errors.MxwireError` if a program, found in ``path``, needs Open-MX's own ``omx_…`` symbols.

    It would start, and end at its first call.
    """
    try:
        content = Path(shutil.which(program, path=path) or program).read_bytes()
    except OSError:
        return
    if content.startswith(b"\x7fELF") and f"\0{SECOND_NAME}\0".encode() in content and _OWN_INTERFACE in content:
        raise MxwireError(
            f"{program} calls Open-MX by its own names (omx_open_endpoint …), which mxwire's library does not have: "
            "compile it with mxwire's myriexpress.h and -lmyriexpress, for the names of MX"
        )


def _first(path: Path, others: str | None, separator: str) -> str:
    return f"{path}{separator}{others}" if others else str(path)


def run_self_test(installation: Installation) -> list[str]:
    """Compile and run the self-test; return its steps. Raises :class:`~mxwire.errors.MxwireError` if it fails."""
    cc = compiler()
    with tempfile.TemporaryDirectory(prefix="mxwire-check-") as folder:
        program = Path(folder, "self_test")
        flags = [f"-I{installation.include}", f"-L{installation.folder}", "-lmyriexpress"]
        compiled = _run([*cc, str(SOURCES / "self_test.c"), "-o", str(program), *flags], dict(os.environ), cc[0])
        if compiled.returncode:
            raise MxwireError(f"{cc[0]} does not compile a program with the library: {_first_line(compiled.stderr)}")
        done = _run([str(program)], environment(installation, os.environ) | {"MX_NO_MYRINET": "1"}, "the self-test")
    if done.returncode:
        reason = _first_line(done.stderr) or _first_line(done.stdout) or f"exit code {done.returncode}"
        raise MxwireError(f"the self-test fails: {reason}")
    return ["compiled with the header", "started Python", "exchanged messages of 10 lengths", "ended"]


def _first_line(text: str) -> str:
    return next((each.strip() for each in text.splitlines() if each.strip()), "")


_PING_PONG: Final = """
ip link set lo up && ip link add mx0 mtu 9000 type veth peer name mx1 mtu 9000 && ip link set mx0 up &&
    ip link set mx1 up || exit 125
fi_pingpong -p mx -e rdm -m tagged -I 10 -S 64 & server=$!
for attempt in $(seq 50); do
    fi_pingpong -p mx -e rdm -m tagged -I 10 -S 64 127.0.0.1 && wait $server && exit 0
    kill -0 $server || exit 1
    sleep 0.1
done
kill $server
exit 1
"""
"""A script for a network namespace of its own; exit code 125: it cannot make an interface."""
_UNAVAILABLE: Final = 125


def check_provider(installation: Installation) -> list[str]:
    """Have ``fi_info`` load the provider of libfabric, without an interface, and two processes exchange messages over a
    virtual one; return the steps, none without these programs.

    Raises :class:`~mxwire.errors.MxwireError` if one fails.
    """
    if shutil.which("fi_info") is None:
        return []
    settings = dict(os.environ) | provider_environment(installation)
    done = _run(["fi_info", "-p", "mx"], settings | {"MX_NO_MYRINET": "1"}, "fi_info")
    if done.returncode:
        raise MxwireError(f"fi_info does not find the provider: {_first_line(done.stderr) or 'no reason'}")
    if any(shutil.which(each) is None for each in ("fi_pingpong", "unshare", "ip")):
        return ["loaded by libfabric"]
    done = _run(
        ["unshare", "--map-root-user", "--net", "sh", "-c", _PING_PONG],
        settings | {"MXWIRE_INTERFACE": "mx0"},
        "fi_pingpong",
    )
    if done.returncode == _UNAVAILABLE or done.stderr.startswith("unshare:"):
        return ["loaded by libfabric", "ping-pong not tried (no network namespaces here)"]
    if done.returncode:
        raise MxwireError(f"fi_pingpong fails: {_first_line(done.stderr) or f'exit code {done.returncode}'}")
    return ["loaded by libfabric", "ping-pong of 2 processes"]


def _run(command: list[str], settings: dict[str, str], name: str) -> subprocess.CompletedProcess[str]:
    try:
        return run_program(command, env=settings, timeout=_SELF_TEST_TIMEOUT)
    except ProgramLateError as late:
        last = late.output.strip().rpartition("\n")[2]
        said = f"; its last line: {last}" if last else ""
        raise MxwireError(f"{name} has not ended within {_SELF_TEST_TIMEOUT} s{said}") from None


def provider_environment(installation: Installation) -> dict[str, str]:
    """Return the variables for a program of libfabric that may choose the provider.

    The two of PSM keep Debian's libfabric from handling the signals of the program.
    """
    return {
        "FI_PROVIDER_PATH": str(installation.provider.parent),
        "IPATH_NO_BACKTRACE": "1",
        "HFI_NO_BACKTRACE": "1",
    }


def mpi_environment(installation: Installation, variables: Mapping[str, str]) -> dict[str, str]:
    """Return ``variables``, and those with which Open MPI, MPICH and Intel MPI use the provider, and no other.

    Set for ``mpirun``, they reach all ranks: by the list of Open MPI, while the others forward every variable. Set for
    a rank, they choose the provider there. Raises :class:`~mxwire.errors.MxwireError` if the provider is not built.
    """
    installation.require_provider()
    own = provider_environment(installation) | {"FI_PROVIDER": "mx"} | dict(variables)
    return own | {
        "OMPI_MCA_pml": "cm",
        "OMPI_MCA_mtl": "ofi",
        "OMPI_MCA_mtl_ofi_provider_include": "mx",
        "OMPI_MCA_btl": "ofi,self",  # windows only, as messages are those of the mtl
        "OMPI_MCA_mca_base_env_list": ";".join(own),
        "MPIR_CVAR_CH4_NETMOD": "ofi",
        "I_MPI_FABRICS": "shm:ofi",
        "I_MPI_OFI_PROVIDER": "mx",
        "I_MPI_OFI_LIBRARY_INTERNAL": "0",
    }
