"""Reading and converting packets, and the packets of a message or a PULL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from scapy.config import conf
from scapy.layers.l2 import Ether
from scapy.packet import Packet
from scapy.plist import PacketList

from mxwire.capture import open_capture
from mxwire.errors import MxwireError
from mxwire.scapy.dialects import DialectLike, dialect_of, reading
from mxwire.scapy.layers import LAYERS, MXoE, fragment_payload, frame_of
from mxwire.units import SECOND
from mxwire.wire.codec import Malformed, build
from mxwire.wire.decoder import Decoder
from mxwire.wire.encapsulation import HEADER_LENGTH
from mxwire.wire.packets import Frame


def parse_mxoe(frame: bytes, dialect: DialectLike = None) -> Packet:
    """Return an Ethernet frame as a packet, decoded in the given dialect instead of that of ``conf``."""
    with reading(dialect_of(dialect)):
        return Ether(frame)


def read_mxoe(path: str | Path, dialect: DialectLike = None) -> PacketList:
    """Return the MXoE frames of a capture (pcap, pcapng, gzip or zstd), each in the dialect of its hosts.

    Unlike scapy's ``rdpcap`` this detects the dialect of each pair of hosts, like ``mxwire decode``; ``dialect`` sets
    it for all. Without evidence it is mxoe.
    """
    decoder = Decoder(None if dialect is None else dialect_of(dialect))
    packets = []
    with open_capture(str(path)) as capture:
        for decoded in map(decoder.decode, capture):
            batch = decoded.batch
            for index in range(len(decoded)):
                with reading(decoded.dialect(index)):
                    packet = conf.l2types.num2layer[batch.link_type](batch.frame(index))
                packet.time = int(batch.timestamp_ns[index]) / SECOND
                packet.wirelen = max(int(batch.wire_length[index]), int(batch.length[index]))
                packets.append(packet)
    return PacketList(packets, name=Path(path).name)


def to_frame(packet: Packet) -> Frame | Malformed:
    """Decode a packet with mxwire's own decoder: into a typed :class:`~mxwire.wire.packets.Frame`, or ``Malformed``.

    Raises :class:`~mxwire.errors.MxwireError` if the packet contains no MXoE.
    """
    head = packet.getlayer(MXoE)
    if head is None:
        raise MxwireError(f"no MXoE in this packet: {packet.summary()}")
    ether = packet.getlayer(Ether)
    addresses = bytes(HEADER_LENGTH) if ether is None else bytes(ether)[: HEADER_LENGTH - 2]
    return frame_of(head, (addresses + _ethertype(head)) if ether is not None else addresses)


def _ethertype(head: Packet) -> bytes:
    """Return the EtherType in the layer below the head."""
    return int(getattr(head.underlayer, "type", 0) or 0).to_bytes(2, "big")


def from_frame(frame: Frame, dialect: DialectLike = None) -> Packet:
    """Return a packet from a typed frame of mxwire, padded like that of a real sender."""
    chosen = dialect_of(dialect)
    return parse_mxoe(build(frame, chosen), chosen)


def fragment_medium(data: bytes, dialect: DialectLike = None, **fields: Any) -> list[Packet]:
    """Return the MEDIUM packets of a message like those of a real sender (R-SND-03): all but the last are full.

    ``fields`` are the other fields of the packets, of any layer: ``dst`` and ``src`` (Ethernet),
    ``dst_src_peer_index``, ``src_endpoint``, ``lib_seqnum``, … In dialect mxoe ``frag_pipeline`` sets the size of the
    fragments, 2^frag_pipeline bytes. Raises :class:`~mxwire.errors.MxwireError` for a message that no host would send.
    """
    chosen = dialect_of(dialect)
    medium = LAYERS["MXoEMedium"]
    ether, head, body = _split(fields, medium(dialect=chosen))
    size = fragment_payload(medium(dialect=chosen, **body))
    if len(data) > chosen.medium_maximum or len(data) > size * (1 << 8):
        most = min(chosen.medium_maximum, size * (1 << 8))
        raise MxwireError(f"{len(data)} bytes do not fit a MEDIUM message of dialect {chosen}: at most {most} do")
    body = {"length": len(data)} | body
    return [
        Ether(**ether)
        / MXoE(dialect=chosen, **head)
        / medium(dialect=chosen, frag_seqnum=number, data=data[start : start + size], **body)
        for number, start in enumerate(range(0, max(len(data), 1), size))
    ]


def pull_replies(pull: Packet, region_data: bytes, dialect: DialectLike = None) -> list[Packet]:
    """Return the PULL_REPLYs with which a host answers a PULL (R-PUL-13), addressed to its sender.

    ``region_data`` is the whole region, from its first byte; the message starts at the PULL's
    ``pulled_rdma_offset``. ``dialect`` defaults to the PULL's. Raises :class:`~mxwire.errors.MxwireError` if a host
    would not answer: too many frames, or bytes that are not in the region (R-PUL-14).
    """
    layer = pull.getlayer(LAYERS["MXoEPull"])
    if layer is None:
        raise MxwireError(f"no PULL in this packet: {pull.summary()}")
    chosen = layer.dialect if dialect is None else dialect_of(dialect)
    payload = chosen.reply_payload
    first, rest, offset = layer.first_frame_offset, layer.block_length, layer.pulled_rdma_offset
    frames = -(-(first + rest) // payload)
    if frames > chosen.frames_per_block:
        raise MxwireError(f"this PULL requests {frames} frames; a host answers at most {chosen.frames_per_block}")
    if first >= payload:
        raise MxwireError(f"first_frame_offset {first} lies beyond the first frame of {payload} bytes (D-15)")
    message_offset = layer.frame_index * payload - offset % payload + first
    start = offset + message_offset
    if not 0 <= start <= start + rest <= len(region_data):
        raise MxwireError(
            f"this PULL requests bytes {start} to {start + rest} of a region of {len(region_data)}; a host drops it"
        )
    ether = pull.getlayer(Ether)
    addresses = {} if ether is None else {"dst": ether.src, "src": ether.dst}
    reply = LAYERS["MXoEPullReply"]
    replies: list[Packet] = []
    for number in range(frames):
        length = min(payload - (first if number == 0 else 0), rest)
        replies.append(
            Ether(**addresses)
            / MXoE(dialect=chosen)
            / reply(
                dialect=chosen,
                frame_seqnum=(layer.frame_index + number) % 256,
                msg_offset=message_offset % 2**32,
                dst_pull_handle=layer.src_pull_handle,
                dst_magic=layer.src_magic,
                data=region_data[offset + message_offset : offset + message_offset + length],
            )
        )
        message_offset += length
        rest -= length
    return replies


def _split(fields: dict[str, Any], body: Packet) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Return the values by layer."""
    layers = Ether(), MXoE(), body
    by_layer: list[dict[str, Any]] = [{}, {}, {}]
    for name, value in fields.items():
        place = next((place for place, layer in enumerate(layers) if name in layer.default_fields), None)
        if place is None or name in ("data", "frag_seqnum", "frag_length"):
            reason = "is set by the cutting" if place is not None else "is not a field of these packets"
            raise MxwireError(f"{name} {reason}")
        by_layer[place][name] = value
    return by_layer[0], by_layer[1], by_layer[2]
