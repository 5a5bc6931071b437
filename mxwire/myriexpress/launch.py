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
    made["LD_LIBRARY_PATH"] = _first(installation.folder, before.get("LD_LIBRARY_PATH"), ":")
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
        compiled = subprocess.run(
            [*cc, str(SOURCES / "self_test.c"), "-o", str(program), *flags], capture_output=True, text=True, check=False
        )
        if compiled.returncode:
            raise MxwireError(f"{cc[0]} does not compile a program with the library: {_first_line(compiled.stderr)}")
        try:
            done = subprocess.run(
                [str(program)],
                env=environment(installation, os.environ) | {"MX_NO_MYRINET": "1"},
                capture_output=True,
                text=True,
                check=False,
                timeout=_SELF_TEST_TIMEOUT,
            )
        except subprocess.TimeoutExpired:
            raise MxwireError(f"the self-test has not ended within {_SELF_TEST_TIMEOUT} s") from None
    if done.returncode:
        reason = _first_line(done.stderr) or _first_line(done.stdout) or f"exit code {done.returncode}"
        raise MxwireError(f"the self-test fails: {reason}")
    return ["compiled with the header", "started Python", "exchanged messages of 10 lengths", "ended"]


def _first_line(text: str) -> str:
    return next((each.strip() for each in text.splitlines() if each.strip()), "")


def check_provider(installation: Installation) -> list[str]:
    """Have ``fi_info`` load the provider of libfabric, without an interface; return the step, none without ``fi_info``.

    Raises :class:`~mxwire.errors.MxwireError` if it does not find the provider.
    """
    program = shutil.which("fi_info")
    if program is None:
        return []
    done = subprocess.run(
        [program, "-p", "mx"],
        env=dict(os.environ) | {"MX_NO_MYRINET": "1", "FI_PROVIDER_PATH": str(installation.provider.parent)},
        capture_output=True,
        text=True,
        check=False,
        timeout=_SELF_TEST_TIMEOUT,
    )
    if done.returncode:
        raise MxwireError(f"fi_info does not find the provider: {_first_line(done.stderr) or 'no reason'}")
    return ["loaded by libfabric"]
