"""Instructions of BPF programs, written with labels.

A program is a list of instructions; a string in the list is the label of the next instruction, for jumps.
:func:`assemble` translates it. The kernel's verifier checks a program when it is loaded: each access of a frame must
follow a comparison with the frame's end.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from enum import IntEnum
from typing import Final, NamedTuple


class XdpAction(IntEnum):
    """Results of an XDP program for a frame."""

    DROP = 1
    PASS = 2
    """To the kernel, as if there were no program."""
    TRANSMIT = 3
    """Back out of the interface on which it arrived."""
    REDIRECT = 4


class Helper(IntEnum):
    """Functions of the kernel that programs may call; arguments are R1 to R5, the result is R0."""

    MAP_LOOKUP = 1
    """(map, address of the key) -> address of the value, or 0."""
    NANOSECONDS = 5
    """() -> the monotonic clock."""
    REDIRECT = 23
    """(number of an interface, 0) -> an action."""
    REDIRECT_MAP = 51
    """(map, key, action without an entry) -> an action."""
    ADJUST_HEAD = 44
    """(context, number of bytes that are removed from the start of the frame) -> 0, or an error."""
    ADJUST_TAIL = 65
    """(context, number of bytes by which the frame grows) -> 0, or an error."""
    STORE_BYTES = 190
    """(context, offset, address, number of bytes): write into a frame of an XDP program."""


class Context(IntEnum):
    """Offsets of struct xdp_md, to which R1 refers when a program starts. All fields are words."""

    DATA = 0
    DATA_END = 4
    INTERFACE = 12
    QUEUE = 16


_LOAD_IMMEDIATE, _LOAD, _STORE_VALUE, _STORE, _JUMP, _JUMP_WORD, _ARITHMETIC = 0x00, 0x01, 0x02, 0x03, 0x05, 0x06, 0x07
_MEMORY, _ATOMIC = 0x60, 0xC0
_BY_REGISTER: Final = 0x08
_SWAP: Final = 0xDC
"""Operation that converts a register from the order of this machine to big-endian."""
_OF_MAP, _OF_MAP_VALUE = 1, 2
_FETCH: Final = 1


class Size(IntEnum):
    """Widths of memory accesses."""

    WORD = 0x00
    """4 bytes."""
    HALF = 0x08
    """2 bytes."""
    BYTE = 0x10
    DOUBLE = 0x18
    """8 bytes."""


class Register(IntEnum):
    """Registers of 8 bytes. R0 is the result, R1 to R5 are arguments and lost in calls, R10 is the end of the stack."""

    R0 = 0
    R1 = 1
    R2 = 2
    R3 = 3
    R4 = 4
    R5 = 5
    R6 = 6
    R7 = 7
    R8 = 8
    R9 = 9
    R10 = 10


R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, R10 = Register

_OPERATIONS: Final = {"+": 0x00, "-": 0x10, "*": 0x20, "/": 0x30, "|": 0x40, "&": 0x50, "<<": 0x60, ">>": 0x70} | {
    "%": 0x90,
    "^": 0xA0,
    "=": 0xB0,
}
_CONDITIONS: Final = {"==": 0x10, ">": 0x20, ">=": 0x30, "&": 0x40, "!=": 0x50, "<": 0xA0, "<=": 0xB0}


class Instruction(NamedTuple):
    """One instruction; ``jump`` is the label to which it jumps, in place of ``offset``."""

    operation: int
    destination: int = 0
    source: int = 0
    offset: int = 0
    value: int = 0
    jump: str = ""


def load(size: Size, destination: Register, source: Register, offset: int) -> Instruction:
    """Read memory at ``source`` + ``offset`` into a register."""
    return Instruction(_LOAD | size | _MEMORY, destination, source, offset)


def store(size: Size, destination: Register, offset: int, source: Register) -> Instruction:
    """Write a register into memory at ``destination`` + ``offset``."""
    return Instruction(_STORE | size | _MEMORY, destination, source, offset)


def store_value(size: Size, destination: Register, offset: int, value: int) -> Instruction:
    """Write a constant into memory at ``destination`` + ``offset``."""
    return Instruction(_STORE_VALUE | size | _MEMORY, destination, 0, offset, value)


def compute(destination: Register, operation: str, by: Register | int) -> Instruction:
    """Change a register by the value of another register or a constant; ``operation`` is one of + - * / | & << >> % ^
    and =."""
    code = _ARITHMETIC | _OPERATIONS[operation]
    if isinstance(by, Register):
        return Instruction(code | _BY_REGISTER, destination, by)
    return Instruction(code, destination, value=by)


def to_big_endian(register: Register, bits: int) -> Instruction:
    """Convert the low 16, 32 or 64 bits of a register to the byte order of the wire, and clear the others."""
    return Instruction(_SWAP, register, value=bits)


def fetch_and_add(destination: Register, offset: int, source: Register) -> Instruction:
    """Add a register to 8 bytes of memory in one step, and replace the register by the previous value of the memory."""
    return Instruction(_STORE | Size.DOUBLE | _ATOMIC, destination, source, offset, _FETCH)


def jump(label: str) -> Instruction:
    """Continue at a label."""
    return Instruction(_JUMP, jump=label)


def jump_if(register: Register, condition: str, to: Register | int, label: str, *, word: bool = False) -> Instruction:
    """Continue at a label if an unsigned comparison holds; ``condition`` is one of == != > >= < <= &.

    ``word`` compares only the low 4 bytes, for constants whose highest bit is set, because a comparison of 8 bytes
    would extend their sign.
    """
    code = (_JUMP_WORD if word else _JUMP) | _CONDITIONS[condition]
    if isinstance(to, Register):
        return Instruction(code | _BY_REGISTER, register, to, jump=label)
    return Instruction(code, register, value=to, jump=label)


def call(helper: Helper) -> Instruction:
    """Call a function of the kernel."""
    return Instruction(0x80 | _JUMP, value=helper)


def leave() -> Instruction:
    """End the program; R0 is its result."""
    return Instruction(0x90 | _JUMP)


def give(action: XdpAction) -> list[Instruction]:
    """End the program with an action."""
    return [compute(Register.R0, "=", action), leave()]


def load_constant(destination: Register, value: int) -> list[Instruction]:
    """Load a constant of up to 8 bytes."""
    low, high = struct.unpack("=ii", struct.pack("=Q", value & (1 << 64) - 1))
    code = _LOAD_IMMEDIATE | Size.DOUBLE
    return [Instruction(code, destination, value=low), Instruction(0, value=high)]


def load_map(destination: Register, descriptor: int) -> list[Instruction]:
    """Load a reference to the map with that descriptor, as an argument of a helper."""
    return [Instruction(_LOAD_IMMEDIATE | Size.DOUBLE, destination, _OF_MAP, value=descriptor), Instruction(0)]


def load_value_address(destination: Register, descriptor: int, offset: int = 0) -> list[Instruction]:
    """Load the address of a byte of the first value of the ARRAY map with that descriptor."""
    code = _LOAD_IMMEDIATE | Size.DOUBLE
    return [Instruction(code, destination, _OF_MAP_VALUE, value=descriptor), Instruction(0, value=offset)]


Code = Sequence[Instruction | str]
"""Instructions; a string is the label of the next instruction."""


def assemble(code: Code) -> bytes:
    """Translate instructions into 8 bytes each, in the byte order of this machine. Raises KeyError for a jump to a
    label that does not exist."""
    places: dict[str, int] = {}
    instructions: list[Instruction] = []
    for each in code:
        if isinstance(each, str):
            places[each] = len(instructions)
        else:
            instructions.append(each)
    return b"".join(
        struct.pack(
            "=BBhi",
            each.operation,
            each.source << 4 | each.destination,
            places[each.jump] - place - 1 if each.jump else each.offset,
            _signed(each.value),
        )
        for place, each in enumerate(instructions)
    )


def _signed(value: int) -> int:
    """Return a word as the kernel's instructions hold it."""
    return value - (1 << 32) if value >> 31 == 1 else value
