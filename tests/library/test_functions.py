"""Each function of the C interface has a case that checks its results and errors; the specification lists them."""

from __future__ import annotations

import re
import subprocess
from typing import Any

import pytest

from .conftest import SOURCES, Compile
from .programs import run
from .test_header import FUNCTIONS

PROGRAM = SOURCES / "functions.c"
TEXT = PROGRAM.read_text(encoding="utf-8")
CASES = dict(re.findall(r"^static void case_(\w+)\(void\)\n\{\n(.*?)^\}", TEXT, re.MULTILINE | re.DOTALL))
ALWAYS = {"mx__init_api", "mx_set_error_handler", "mx_strerror", "mx_strstatus", "mx__regcache_clean"}
"""Functions that need no mx_init."""
ELSEWHERE = {
    ("mx__init_api", "MX_NO_DEV"): "test_semantics.py: an interface that does not exist",
    ("mx__init_api", "MX_NO_PERM"): "test_semantics.py: a user without permission",
    ("mx__init_api", "MX_NO_DRIVER"): "semantics.c: the child of a fork",
    ("mx__init_api", "MX_BAD_BAD_BAD"): "test_semantics.py: garbage in the environment",
    ("mx__init_api", "MX_BAD_KERNEL_VERSION"): "there is no kernel module",
    ("mx_open_endpoint", "MX_NOT_INITIALIZED"): "case uninitialized",
    ("mx_open_endpoint", "MX_NO_DRIVER"): "found by mx_init",
    ("mx_open_endpoint", "MX_NO_PERM"): "found by mx_init",
    ("mx_open_endpoint", "MX_NO_RESOURCES"): "a board has fewer endpoints than the library has places",
    ("mx_close_endpoint", "MX_CLOSE_IN_HANDLER"): "case mx_register_unexp_handler",
    ("mx_isend", "MX_NO_RESOURCES"): "needs a million requests",
    ("mx_issend", "MX_NO_RESOURCES"): "needs a million requests",
    ("mx_irecv", "MX_NO_RESOURCES"): "needs a million requests",
    ("mx_connect", "MX_NO_RESOURCES"): "needs a million requests",
    ("mx_iconnect", "MX_NO_RESOURCES"): "needs a million requests",
    ("mx_cancel", "MX_CANCEL_NOT_SUPPORTED"): "of native MX; MX_BAD_REQUEST as Open-MX",
}
"""Return codes that a case does not check, with the test or the reason."""


@pytest.fixture(scope="module")
def outcome(compile_program: Compile, alone: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return run([compile_program(PROGRAM)], env=alone)


def test_every_function_has_a_case():
    assert len(FUNCTIONS) == 48
    assert CASES.keys() - {"uninitialized"} == {each["name"] for each in FUNCTIONS}
    assert all(f"CASE({each})" in TEXT for each in CASES)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda each: each["name"])
def test_every_return_code_of_the_specification_is_checked(function: dict[str, Any]):
    name = function["name"]
    assert re.search(rf"\b{name}\b", CASES[name]), "the case calls its function"
    for code in function["return_codes"]:
        checked = code in CASES[name] or code == "0"
        assert checked is not ((name, code) in ELSEWHERE), code
    assert (f"EQUAL({name}(" in CASES["uninitialized"]) is not (name in ALWAYS)


@pytest.mark.parametrize("case", CASES)
def test_case(outcome: subprocess.CompletedProcess[str], case: str):
    assert f"ok {case}" in outcome.stdout.splitlines(), outcome.stdout + outcome.stderr


def test_the_program_ends_without_a_message(outcome: subprocess.CompletedProcess[str]):
    assert (outcome.returncode, outcome.stderr) == (0, ""), outcome.stdout + outcome.stderr
