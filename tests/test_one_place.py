"""Each number of the protocol is written once: in ``wire/numbers.py``, ``ethernet.py`` or ``units.py``, or derived from
the formats. Everything else imports it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

from mxwire import ethernet, units
from mxwire.wire import numbers
from tests.test_architecture import PACKAGE, nodes, tree

HOMES = {PACKAGE / "wire" / "numbers.py", PACKAGE / "ethernet.py", PACKAGE / "units.py"}
MODULES = sorted(set(PACKAGE.rglob("*.py")) - HOMES)

DISTINCTIVE = {
    value: name
    for module, names in (
        (ethernet, ("ETHERTYPE_MXOE",)),
        (
            numbers,
            (
                "NUMBER_MASK",
                "SESSION_NUMBER_MASK",
                "ABANDONED_NEXT",
                "ABANDONED_DONE",
                "PULL_MAGIC",
                "HOST_QUERY_MAGIC",
                "DEFAULT_KEY",
                "OUTSTANDING_MAXIMUM",
                "RENDEZVOUS_THRESHOLD",
            ),
        ),
    )
    for name in names
    for value in [getattr(module, name)]
}
"""Values that can mean nothing else: a literal of one of them is a second definition."""
ETHERNET_FIELDS = {(0, 6), (6, 12), (12, 14), (16, 18), (14, None)}
"""Slices of a frame, with 0 for a missing start."""


def numbers_of(module: object) -> dict[str, int]:
    return {name: value for name, value in vars(module).items() if name.isupper() and isinstance(value, int)}


def constants(path: Path) -> Iterator[tuple[str, int]]:
    """Names that a module gives to literal integers, without a leading underscore."""
    for node in tree(path).body:
        if isinstance(node, ast.AnnAssign):
            targets, value = [node.target], node.value
        elif isinstance(node, ast.Assign):
            targets, value = node.targets, node.value
        else:
            continue
        if isinstance(value, ast.Constant) and type(value.value) is int:
            for each in targets:
                if isinstance(each, ast.Name) and each.id.isupper():
                    yield each.id.lstrip("_"), value.value


def test_something_is_looked_at():
    assert len(MODULES) > 300 and len(DISTINCTIVE) == 10
    assert "RNDV" not in dict(constants(PACKAGE / "wire" / "formats.py"))
    assert dict(constants(PACKAGE / "analysis" / "verification.py"))


def offences(look: Callable[[Path], list[str]]) -> dict[str, list[str]]:
    """The offences in each module that has any. One test for all modules, since a test takes longer than a module."""
    found = {str(path.relative_to(PACKAGE)): look(path) for path in MODULES}
    return {name: each for name, each in found.items() if each}


def test_no_number_of_the_protocol_is_written_again():
    def look(path):
        return [
            f"line {node.lineno}: {node.value:#x} is {DISTINCTIVE[node.value]}"
            for node in nodes(path)
            if isinstance(node, ast.Constant) and type(node.value) is int and node.value in DISTINCTIVE
        ]

    assert offences(look) == {}


def test_no_name_of_a_number_is_defined_again():
    home = {name for module in (numbers, ethernet, units) for name in numbers_of(module)}
    assert offences(lambda path: [name for name, _ in constants(path) if name in home]) == {}


def test_no_field_of_an_ethernet_header_is_cut_out_by_its_offset():
    def look(path):
        found = []
        for node in nodes(path):
            if (
                not isinstance(node, ast.Subscript)
                or not isinstance(node.slice, ast.Slice)
                or node.slice.step is not None
            ):
                continue
            ends = [node.slice.lower, node.slice.upper]
            if all(each is None or isinstance(each, ast.Constant) for each in ends):
                lower, upper = (None if each is None else each.value for each in ends)
                # A slice of a call's result is not a slice of a frame: fields of a dataclass, for example.
                if (lower or 0, upper) in ETHERNET_FIELDS and not isinstance(node.value, ast.Call):
                    found.append(f"line {node.lineno}: {ast.unparse(node)}")
        return found

    assert offences(look) == {}
