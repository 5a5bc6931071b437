"""BPF programs are translated as the kernel documents it."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mxwire.link.bpf_code import (
    Register,
    Size,
    XdpAction,
    assemble,
    call,
    compute,
    fetch_and_add,
    give,
    jump,
    jump_if,
    leave,
    load,
    load_constant,
    store,
    store_value,
    to_big_endian,
)

R0, R1, R2, R10 = Register.R0, Register.R1, Register.R2, Register.R10


@pytest.mark.parametrize(
    ("instruction", "expected"),
    [
        (load(Size.WORD, R2, R1, 4), "6112040000000000"),
        (load(Size.HALF, R2, R1, 12), "69120c0000000000"),
        (load(Size.BYTE, R2, R1, -1), "7112ffff00000000"),
        (store(Size.DOUBLE, R10, -8, R1), "7b1af8ff00000000"),
        (store_value(Size.WORD, R10, -4, 7), "620afcff07000000"),
        (compute(R2, "=", R1), "bf12000000000000"),
        (compute(R2, "+", -14), "07020000f2ffffff"),
        (compute(R2, "&", 0xFF), "57020000ff000000"),
        (to_big_endian(R1, 16), "dc01000010000000"),
        (fetch_and_add(R2, 8, R1), "db12080001000000"),
        (call(51), "8500000033000000"),  # type: ignore[arg-type]
        (leave(), "9500000000000000"),
    ],
)
def test_instructions_have_the_bytes_of_the_instruction_set(instruction, expected):
    """Expected: RFC 9669, little-endian."""
    if struct.pack("=H", 1) != struct.pack("<H", 1):
        pytest.skip("the expected bytes are little-endian")
    assert assemble([instruction]).hex() == expected


def test_jumps_are_relative_to_the_next_instruction():
    code = assemble(
        ["top", jump_if(R1, "==", 0x86DF0000, "end", word=True), compute(R1, "+", 1), jump("top"), "end", leave()]
    )
    offsets = [offset for _, _, offset, _ in struct.iter_unpack("=BBhi", code)]
    assert offsets == [2, 0, -3, 0]


def test_a_jump_to_no_label_is_refused():
    with pytest.raises(KeyError, match="nowhere"):
        assemble([jump("nowhere"), leave()])


@given(st.integers(-(1 << 63), (1 << 64) - 1))
def test_constants_keep_all_their_bits(value: int) -> None:
    assembled = assemble(load_constant(R1, value))
    low, high = (struct.unpack_from("=I", assembled, at)[0] for at in (4, 12))
    assert high << 32 | low == value & (1 << 64) - 1


def test_an_action_is_the_result():
    assert assemble(give(XdpAction.DROP)) == assemble([compute(R0, "=", 1), leave()])
