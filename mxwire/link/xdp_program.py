"""The BPF program that redirects frames to AF_XDP sockets."""

from __future__ import annotations

import struct

from mxwire.ethernet import ADDRESS_SIZE, BROADCAST, HEADER_SIZE, VLAN_ETHERTYPES, VLAN_TAG_SIZE
from mxwire.link.bpf import BpfMap
from mxwire.link.bpf_code import (
    R0,
    R1,
    R2,
    R3,
    R4,
    R5,
    R6,
    R7,
    R8,
    Code,
    Context,
    Helper,
    Instruction,
    Size,
    XdpAction,
    call,
    compute,
    fetch_and_add,
    give,
    jump,
    jump_if,
    leave,
    load,
    load_map,
    load_value_address,
    store,
)


def redirect(sockets: BpfMap, foreign: BpfMap, ethertype: int, address: bytes | None) -> Code:
    """Build a program that redirects untagged frames of an EtherType to the socket of their queue.

    Only frames for ``address`` or broadcast; None: for all destinations. All others pass, and those of the EtherType
    among them are counted in ``foreign``.
    """
    wanted = _half(ethertype.to_bytes(2, "big"))
    first, second = (_half(each.to_bytes(2, "big")) for each in sorted(VLAN_ETHERTYPES))
    return [
        compute(R6, "=", R1),
        *(load(Size.WORD, R2, R6, Context.DATA), load(Size.WORD, R3, R6, Context.DATA_END)),
        *(compute(R4, "=", R2), compute(R4, "+", HEADER_SIZE), jump_if(R4, ">", R3, "pass")),
        load(Size.HALF, R7, R2, 2 * ADDRESS_SIZE),
        jump_if(R7, "==", wanted, "destination"),
        *(jump_if(R7, "==", first, "tagged"), jump_if(R7, "!=", second, "pass")),
        "tagged",
        *(compute(R4, "+", VLAN_TAG_SIZE), jump_if(R4, ">", R3, "pass")),
        *(load(Size.HALF, R5, R2, HEADER_SIZE + 2), jump_if(R5, "!=", wanted, "pass")),
        # The low 12 bits of the tag are the VLAN; without one it carries a priority only.
        *(load(Size.HALF, R5, R2, HEADER_SIZE), jump_if(R5, "&", _half(b"\x0f\xff"), "foreign")),
        "destination",
        *_check_destination(address),
        jump_if(R7, "==", wanted, "redirect"),
        # Remove the tag: move the addresses towards the EtherType, and the start of the frame with them.
        # From the last word on, because source and target overlap.
        *_move_word(8),
        *_move_word(4),
        *_move_word(0),
        *(compute(R1, "=", R6), compute(R2, "=", VLAN_TAG_SIZE), call(Helper.ADJUST_HEAD)),
        jump_if(R0, "!=", 0, "pass"),
        "redirect",
        *(load(Size.WORD, R2, R6, Context.QUEUE), *load_map(R1, sockets.descriptor)),
        *(compute(R3, "=", XdpAction.PASS), call(Helper.REDIRECT_MAP), leave()),
        "foreign",
        *(*load_value_address(R1, foreign.descriptor), compute(R0, "=", 1), fetch_and_add(R1, 0, R0)),
        "pass",
        *give(XdpAction.PASS),
    ]


def _check_destination(address: bytes | None) -> Code:
    """Continue if the destination of the frame at R2 is ``address`` or broadcast, otherwise jump to ``foreign``."""
    if address is None:
        return []
    return [
        *(load(Size.HALF, R4, R2, 0), load(Size.HALF, R5, R2, 2), load(Size.HALF, R8, R2, 4)),
        *_unless_equal(address, "group"),
        jump("own"),
        "group",
        *_unless_equal(BROADCAST, "foreign"),
        "own",
    ]


def _unless_equal(address: bytes, label: str) -> Code:
    """Jump if the address in R4, R5 and R8 differs."""
    parts = struct.unpack("=HHH", address)
    return [jump_if(register, "!=", part, label) for register, part in zip((R4, R5, R8), parts, strict=True)]


def _move_word(at: int) -> tuple[Instruction, Instruction]:
    """Move 4 bytes of the frame at R2 by the size of a tag."""
    return load(Size.WORD, R4, R2, at), store(Size.WORD, R2, at + VLAN_TAG_SIZE, R4)


def _half(text: bytes) -> int:
    """Return two bytes of a frame as a program loads them."""
    return int(struct.unpack("=H", text)[0])
