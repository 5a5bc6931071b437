"""The contestants from other projects: scapy, dpkt, construct, tshark, and a C loop over libpcap.

Contestants that need offsets take them from mxwire's formats, so that all read the same fields.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from struct import Struct

from contest import Capture, Contestant, Outcome, Run, timed

from mxwire.capture import open_capture
from mxwire.ethernet import ETHERTYPE_MXOE
from mxwire.wire.dialect import MXOE
from mxwire.wire.enums import PacketType
from mxwire.wire.formats import CONNECT_REPLY, PacketFormat
from mxwire.wire.layout import TYPE_OFFSET, Layout, layout_of
from mxwire.wire.selection import REPLY_FLAG, formats_by_type

SCAPY = "scapy PcapReader"
DPKT = "dpkt + struct"
CONSTRUCT = "construct"
TSHARK = "tshark -T fields"
LIBPCAP = "C loop over libpcap"

SLOW_FRAMES_A_ROUND = 20_000
"""Number of frames per round of the slow contestants."""

_FORMATS = {int(kind): each for kind, each in formats_by_type(MXOE).items()}


def contestants(folder: Path) -> list[Contestant]:
    """Return the installed contestants. Programs are compiled into ``folder``."""
    return [
        _installed(SCAPY, "scapy", _scapy),
        _installed(DPKT, "dpkt", lambda: dpkt_and_struct),
        Contestant(CONSTRUCT, construct),
        Contestant(TSHARK, tshark) if shutil.which("tshark") else Contestant(TSHARK, None, "tshark is not installed"),
        _libpcap(folder),
    ]


def _installed(name: str, module: str, make: Callable[[], Run]) -> Contestant:
    if find_spec(module) is None:
        return Contestant(name, None, f"{module} is not installed")
    return Contestant(name, make())


def _scapy() -> Run:
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

    @timed
    def scapy(capture: Capture) -> int:
        with PcapReader(str(capture.path)) as reader:
            return sum(Body in packet for packet in islice(reader, SLOW_FRAMES_A_ROUND))

    return scapy


@timed
def dpkt_and_struct(capture: Capture) -> int:
    """Decode all fields of a frame by one ``struct`` call, with addresses as bytes."""
    import dpkt

    structs = {kind: _struct_of(layout_of(each)) for kind, each in _FORMATS.items()}
    reply = _struct_of(layout_of(CONNECT_REPLY))
    frames = 0
    with capture.path.open("rb") as file:
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


@timed
def construct(capture: Capture) -> int:
    """Decode with Construct, by mxwire's own structures."""
    frames = 0
    with open_capture(capture.path, numba=False) as reader:
        for batch in reader:
            for index in range(min(len(batch), SLOW_FRAMES_A_ROUND - frames)):
                frame = batch.frame(index)
                kind = frame[TYPE_OFFSET]
                is_reply = kind == PacketType.CONNECT and frame[REPLY_FLAG]
                (CONNECT_REPLY if is_reply else _FORMATS[kind]).struct.parse(frame)
                frames += 1
            if frames == SLOW_FRAMES_A_ROUND:
                break
    return frames


@timed
def tshark(capture: Capture) -> int:
    """Run tshark without a dissector for MXoE: numbers, times, addresses, and all other bytes as hexadecimal text."""
    fields = "frame.number frame.time_epoch frame.len frame.cap_len eth.dst eth.src eth.type data.data"
    chosen = [argument for field in fields.split() for argument in ("-e", field)]
    command = ["tshark", "-n", "-r", str(capture.path), "-T", "fields", *chosen]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return capture.frames


def _libpcap(folder: Path) -> Contestant:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        return Contestant(LIBPCAP, None, "no C compiler is installed")
    (folder / "fields.inc").write_text(c_cases())
    program = folder / "libpcap_loop"
    source = Path(__file__).with_name("libpcap_loop.c")
    command = [compiler, "-O2", f"-I{folder}", str(source), "-o", str(program), "-lpcap"]
    if subprocess.run(command, capture_output=True).returncode:
        return Contestant(LIBPCAP, None, "it does not compile: the headers of libpcap are not installed")
    return Contestant(LIBPCAP, lambda capture: libpcap_loop(program, capture))


def libpcap_loop(program: Path, capture: Capture) -> Outcome:
    """Run a program that measures its own time, without its start."""
    done = subprocess.run([str(program), str(capture.path)], check=True, capture_output=True, text=True)
    frames, _, seconds = done.stdout.split()
    return Outcome(int(frames), float(seconds))


def c_cases() -> str:
    """Return the cases of ``libpcap_loop.c``."""
    cases = []
    for kind, each in _FORMATS.items():
        cases.append(f"case {kind}:\n")
        if kind == PacketType.CONNECT:
            cases.append(f"if (captured > {REPLY_FLAG} && frame[{REPLY_FLAG}]) {{ {_c_sum(CONNECT_REPLY)} }}\n")
        cases.append(_c_sum(each) + "\n")
    return "".join(cases)


def _c_sum(packet_format: PacketFormat) -> str:
    layout = layout_of(packet_format)
    terms = " + ".join(f"(uint64_t)READ_{each.size}({each.offset})" for each in layout.defined)
    return f"if (captured < {layout.header_end}) return 0; return {terms};"
