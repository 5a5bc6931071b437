"""The contestants of decode.py from other projects: scapy, dpkt, construct, tshark, and loops in C.

Contestants that need offsets take them from mxwire's formats, so that all read the same fields.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from struct import Struct

from contest import PATIENCE, compiled_program

from mxwire.capture import open_capture
from mxwire.ethernet import ETHERTYPE_MXOE
from mxwire.wire.dialect import MXOE
from mxwire.wire.enums import PacketType
from mxwire.wire.formats import CONNECT_REPLY, PacketFormat
from mxwire.wire.layout import TYPE_OFFSET, Layout, layout_of
from mxwire.wire.selection import REPLY_FLAG, formats_by_type

SLOW_FRAMES = 20_000
"""Maximum number of frames per round of the slow contestants."""
LIBPCAP, MAPPED = "C loop over libpcap", "C loop into arrays over a mapped file"
LOOPS = {LIBPCAP: "libpcap", MAPPED: "mapped"}
REPLY_BLOCK = 64
"""Added to the type of a packet for the arrays of its replies."""

_FORMATS = {int(kind): each for kind, each in formats_by_type(MXOE).items()}

Decode = Callable[[Path], int | tuple[int, float]]


def contestants(folder: Path) -> dict[str, Decode | str]:
    """Return the contestants, or the reasons why they are absent. Programs are compiled into ``folder``."""
    (folder / "fields.inc").write_text(c_cases())
    (folder / "arrays.inc").write_text(c_arrays())
    program = compiled_program("capture_loop.c", folder, f"-I{folder}", "-lpcap")
    loops = {
        name: program if isinstance(program, str) else partial(c_loop, program, way) for name, way in LOOPS.items()
    }
    return {
        "scapy PcapReader, call": _scapy() if find_spec("scapy") else "scapy is not installed",
        "dpkt + struct, call": dpkt_and_struct if find_spec("dpkt") else "dpkt is not installed",
        "construct, call": construct,
        "tshark -T fields, command": tshark if shutil.which("tshark") else "tshark is not installed",
        **loops,
    }


def _scapy() -> Decode:
    from scapy.fields import ByteField, ShortField
    from scapy.layers.l2 import Ether
    from scapy.packet import Packet, bind_layers
    from scapy.utils import PcapReader

    class Head(Packet):
        name = "MXoE head"
        fields_desc = [ShortField("dst_src_peer_index", 0), ByteField("ptype", 0)]  # noqa: RUF012

    class Body(Packet):
        """A few fields that have the same offset in most packets."""

        name = "MXoE body"
        fields_desc = [  # noqa: RUF012
            ByteField("dst_endpoint", 0),
            ByteField("src_endpoint", 0),
            ByteField("src_generation", 0),
            ShortField("length", 0),
            ShortField("checksum", 0),
            ShortField("lib_seqnum", 0),
        ]

    bind_layers(Ether, Head, type=ETHERTYPE_MXOE)
    bind_layers(Head, Body)

    def scapy(path: Path) -> int:
        with PcapReader(str(path)) as reader:
            return sum(Body in packet for packet in islice(reader, SLOW_FRAMES))

    return scapy


def dpkt_and_struct(path: Path) -> int:
    """Decode all fields of a frame by one ``struct`` call, with addresses as bytes."""
    import dpkt

    structs = {kind: _struct_of(layout_of(each)) for kind, each in _FORMATS.items()}
    reply = _struct_of(layout_of(CONNECT_REPLY))
    frames = 0
    with path.open("rb") as file:
        for _, frame in dpkt.pcap.Reader(file):
            kind = frame[TYPE_OFFSET]
            fields = reply if kind == PacketType.CONNECT and frame[REPLY_FLAG] else structs[kind]
            fields.unpack_from(frame)
            frames += 1
    return frames


def _struct_of(layout: Layout) -> Struct:
    codes = {1: "B", 2: "H", 4: "I"}
    fixed = [each for each in layout.fields if each.kind != "payload"]
    return Struct(">" + "".join(codes[each.size or 0] if each.kind == "integer" else f"{each.size}s" for each in fixed))


def construct(path: Path) -> int:
    """Decode with Construct, by mxwire's own structures."""
    frames = 0
    with open_capture(path, numba=False) as reader:
        for batch in reader:
            for index in range(min(len(batch), SLOW_FRAMES - frames)):
                frame = batch.frame(index)
                kind = frame[TYPE_OFFSET]
                is_reply = kind == PacketType.CONNECT and frame[REPLY_FLAG]
                (CONNECT_REPLY if is_reply else _FORMATS[kind]).struct.parse(frame)
                frames += 1
            if frames == SLOW_FRAMES:
                break
    return frames


def tshark(path: Path) -> int:
    """Run tshark without a dissector for MXoE: numbers, times, addresses, and all other bytes as hexadecimal text."""
    fields = "frame.number frame.time_epoch frame.len frame.cap_len eth.dst eth.src eth.type data.data"
    chosen = [argument for field in fields.split() for argument in ("-e", field)]
    words = ["tshark", "-n", "-r", str(path), "-T", "fields", *chosen]
    return subprocess.run(words, check=True, capture_output=True, timeout=PATIENCE).stdout.count(b"\n")


def c_loop(program: Path, way: str, path: Path) -> tuple[int, float]:
    """Run a program that measures its own time, without its start."""
    words = [str(program), way, str(path)]
    done = subprocess.run(words, check=True, capture_output=True, text=True, timeout=PATIENCE)
    frames, _, seconds = done.stdout.split()
    return int(frames), float(seconds)


def c_cases() -> str:
    """Return the cases of ``capture_loop.c``: a FIELD for each field of each packet type, with its array."""
    cases = []
    for kind, each in _FORMATS.items():
        cases.append(f"case {kind}:\n")
        if kind == PacketType.CONNECT:
            reply = _c_fields(CONNECT_REPLY, REPLY_BLOCK + kind)
            cases.append(f"if (captured > {REPLY_FLAG} && frame[{REPLY_FLAG}]) {{ {reply} }}\n")
        cases.append(_c_fields(each, kind) + "\n")
    return "".join(cases)


def _c_fields(packet_format: PacketFormat, block: int) -> str:
    layout = layout_of(packet_format)
    fields = " ".join(
        f"FIELD({block}, {place}, {each.size}, {each.offset})" for place, each in enumerate(layout.defined)
    )
    return f"if (captured < {layout.header_end}) return; {fields} END({block}) return;"


def c_arrays() -> str:
    """Return an ARRAY for each field of each packet type."""
    blocks = [*_FORMATS.items(), (REPLY_BLOCK + PacketType.CONNECT, CONNECT_REPLY)]
    return "".join(
        f"ARRAY({int(block)}, {place}, {each.size})\n"
        for block, packet_format in blocks
        for place, each in enumerate(layout_of(packet_format).defined)
    )
