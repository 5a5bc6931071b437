"""Headers and symbols of the library, compared with the specification of the interface."""

from __future__ import annotations

import json
import platform
import re
from pathlib import Path
from typing import Any

import pytest

from mxwire.myriexpress.build import Installation

from .programs import run

API: dict[str, Any] = json.loads(Path(__file__).parents[1].joinpath("data", "mx-api.json").read_text(encoding="utf-8"))
HEADERS = (
    "myriexpress.h",
    "mx_extensions.h",
    "mx_io.h",
    "mx_internals/mx__fops.h",
    "mx_internals/mx__driver_interface.h",
)
FUNCTIONS = [each for each in API["functions"] if each.get("group") != "raw"]
_OF_THE_MAPPER = ("RAW", "MX_HOST_", "mx_raw", "mx_host_type")
"""Only the mapper uses these, and no application."""


def assertions() -> list[str]:
    """Assertions in C about everything that the specification gives a number for."""
    lines = []
    for name, value in API["constants"].items():
        if not any(each in name for each in _OF_THE_MAPPER):
            suffix = "ull" if value > 0x7FFFFFFF else ""
            lines.append(f'_Static_assert({name} == {value}{suffix}, "{name}");')
    for name, type_ in API["types"].items():
        if any(name.startswith(each) for each in _OF_THE_MAPPER):
            continue
        lines.append(f'_Static_assert(sizeof({name}) == {type_["size"]}, "size of {name}");')
        lines.append(f'_Static_assert(_Alignof({name}) == {type_["align"]}, "alignment of {name}");')
        for field in type_.get("fields", ()):
            place = f"offsetof({name}, {field['name']})"
            lines.append(f'_Static_assert({place} == {field["offset"]}, "{name}.{field["name"]}");')
    for each in FUNCTIONS:
        if "args" in each:
            arguments = ", ".join(kind for kind, _ in each["args"]) or "void"
            lines.append(f"{each['returns']} (*has_{each['name']})({arguments}) = {each['name']};")
    return lines


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the sizes were measured on x86-64")
@pytest.mark.parametrize("compiler", ["cc", "c++"])
def test_sizes_offsets_constants_and_signatures(installation: Installation, tmp_path: Path, compiler: str):
    source = tmp_path / ("header.c" if compiler == "cc" else "header.cc")
    text = "\n".join([*(f'#include "{each}"' for each in HEADERS), *assertions(), ""])
    if compiler == "c++":
        text = text.replace("_Static_assert", "static_assert").replace("_Alignof", "alignof")
    source.write_text(text)
    assert text.count("tatic_assert") > 150 and text.count("(*has_") == len(FUNCTIONS) == 48
    standard = ["-std=c11", "-pedantic-errors"] if compiler == "cc" else ["-Wno-invalid-offsetof"]
    command = [compiler, *standard, "-Wall", "-Wextra", "-Werror", f"-I{installation.include}", "-c", str(source)]
    done = run([*command, "-o", str(tmp_path / "header.o")])
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("compiler", ["cc", "c++"])
@pytest.mark.parametrize(
    ("header", "text"),
    {
        "myriexpress.h": 'printf("%" PRIx64, nic_id);',
        "mx_io.h": "mx_mapper_state_t state; mx_endpt_handle_t handle; "
        "return mx_open_board(0, &handle) || mx__get_mapper_state(handle, &state);",
    }.items(),
)
def test_each_header_suffices_by_itself(
    installation: Installation, tmp_path: Path, compiler: str, header: str, text: str
):
    """The configure script of Open MPI compiles such programs."""
    source = tmp_path / f"program.{compiler.replace('+', 'p')}"
    source.write_text(
        f"#include <stdio.h>\n#include <{header}>\nint main(void) {{ uint64_t nic_id = 0; (void)nic_id; {text} }}\n"
    )
    command = [
        compiler,
        "-Wall",
        "-Werror",
        f"-I{installation.include}",
        "-c",
        str(source),
        "-o",
        str(tmp_path / "out"),
    ]
    done = run(command)
    assert done.returncode == 0, done.stderr


def test_symbols_and_their_versions(installation: Installation):
    table = run(["objdump", "-T", installation.library], check=True).stdout
    versions = {name: version for version, names in API["abi"]["versions"].items() for name in names}
    lines = re.findall(r"^\S+ g\s+D[FO]\s\S+\s\S+\s+(\S+)\s+(\w\S+)$", table, re.MULTILINE)
    have = {name: version for version, name in lines}
    for each in FUNCTIONS:
        assert have[each["name"]] == versions.get(each["name"], "Base"), each["name"]
    assert {"MX_0.0", "MX_0.9", "MX_0.91", "MX_0.92"} <= set(have)
    assert set(API["abi"]["data_symbols"]) <= set(have)
    # For the provider of libfabric, which asks without Python.
    assert {have[f"mx__{each}"] for each in ("boards", "progresses", "descriptor", "arm")} == {"Base"}
    assert not [name for name in have if name.startswith(("mxw", "mxf"))], "internal functions are not visible"
    dynamic = run(["readelf", "-dV", installation.library], check=True).stdout
    assert "Library soname: [libmyriexpress.so]" in dynamic and "libpython" not in dynamic
    assert re.search(r"Parent 1: MX_0.91", dynamic) and re.search(r"Parent 1: MX_0.9\n", dynamic)
