"""One-line summaries of frames, as in Wireshark's info column."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from mxwire.ethernet import mac_text
from mxwire.report.text_columns import Text, beside, constant, decimals, described, hexadecimals, sequence_column
from mxwire.wire import packets
from mxwire.wire.checks import Reason
from mxwire.wire.codec import Malformed
from mxwire.wire.dialect import Dialect
from mxwire.wire.enums import ConnectStatus, NackType, TrucType, hostname_text, packet_type_name, sequence_text
from mxwire.wire.remarks import is_remarkable, remarks
from mxwire.words import count_of

if TYPE_CHECKING:
    from mxwire.wire.columns import LayoutBlock
    from mxwire.wire.decoder import DecodedBatch

_KEPT: Final = 1 << 14
"""Maximum number of number texts that are cached, because most numbers are shown many times."""
_CLASSES: Final = {each.__name__: each for each in packets.FRAME_CLASSES}


def summary(frame: packets.Frame | Malformed, dialect: Dialect) -> str:
    """The important fields of a frame in one line, with remarks; the reason and offset if it is malformed."""
    if isinstance(frame, Malformed):
        return _malformed(frame)
    text = _SUMMARIES[type(frame)](frame, dialect)
    notes = remarks(frame, dialect)
    return f"{text}  [{'; '.join(notes)}]" if notes else text


def type_text(frame: packets.Frame | Malformed) -> str:
    """The specification's name of the packet type; ``?`` if the frame ends before its type byte."""
    if isinstance(frame, Malformed):
        return "?" if frame.packet_type is None else packet_type_name(frame.packet_type)
    return packet_type_name(frame.ptype)


def endpoints_text(frame: packets.Frame | Malformed) -> str:
    """``5→3`` for packets with endpoint fields, else an empty string."""
    has = frame.fields.get if isinstance(frame, Malformed) else partial(_attribute, frame)
    return ends_text(has("src_endpoint"), has("dst_endpoint"))


def ends_text(source: object, destination: object) -> str:
    """``5→3`` for two endpoints; None for a missing one, and an empty string without both."""
    if source is None and destination is None:
        return ""
    return "→".join("" if each is None else str(each) for each in (source, destination))


def _attribute(frame: packets.Frame, name: str) -> int | None:
    return getattr(frame, name, None)


def _malformed(frame: Malformed) -> str:
    seen = " ".join(
        f"{name}={value}"
        for name, value in frame.fields.items()
        if name in ("length", "frag_length", "frame_length") and isinstance(value, int)
    )
    tail = f" ({seen})" if seen and frame.reason.text.startswith("bad") else ""
    return f"MALFORMED at byte {frame.offset}: {frame.reason.text}, {frame.reason.explanation}{tail}"


def _name(values: Any, value: int) -> str:
    try:
        return str(values(value).name)
    except ValueError:
        return f"code {value}"


def _raw(frame: packets.Raw, dialect: Dialect) -> str:
    return f"opaque, {count_of(len(frame.opaque), 'byte')}"


def _announcement(frame: packets.Announcement, dialect: Dialect) -> str:
    nic = mac_text((frame.nic_id_hi << 32 | frame.nic_id_lo) & 0xFFFF_FFFF_FFFF)
    return f"announcement of {nic} serial 0x{frame.serial:08x}"


def _host_query(frame: packets.HostQuery, dialect: Dialect) -> str:
    return f"who are you? you are peer {frame.src_dst_peer_index} here, magic 0x{frame.magic:08x}"


def _host_reply(frame: packets.HostReply, dialect: Dialect) -> str:
    name = hostname_text(frame.hostname)
    return f"I am {name}, you are peer {frame.src_dst_peer_index} here, magic 0x{frame.magic:08x}"


def _truc(frame: packets.Truc, dialect: Dialect) -> str:
    if frame.liback_type != TrucType.ACK:
        return f"sub-type 0x{frame.liback_type:02x} session 0x{frame.session:08x}"
    return _LIBACK(frame, dialect)


# The frequent packets: each value of a template is a field, or a function of some fields, among which "dialect" is the
# dialect. The same table describes single frames and whole batches.


@lru_cache(_KEPT)
def _bytes(count: int) -> str:
    return count_of(count, "byte")


def _fragment_start(dialect: Dialect, number: int, pipeline: int | None) -> int:
    # A pipeline above 31 is nonsense from a hostile sender; the receiver's shift is 32 bits wide.
    return number * dialect.fragment_payload if pipeline is None else number << (pipeline & 31)


def _region_offset(offset: int) -> str:
    return f" offset {offset}" if offset else ""


def _requested_frames(dialect: Dialect, first: int, offset: int, length: int) -> str:
    frames = -(-(offset + length) // dialect.reply_payload)
    return f"frames {first}..{first + frames - 1}" if frames > 1 else f"frame {first}"


@dataclass(frozen=True, slots=True)
class _Template:
    text: str
    """A template of the operator ``%``."""
    values: tuple[str | tuple[Any, ...], ...]
    """The name of a field, or a function and the names of the fields that it takes."""

    def __call__(self, frame: Any, dialect: Dialect) -> str:
        """The text of one frame."""

        def field(name: str) -> Any:
            return dialect if name == "dialect" else getattr(frame, name)

        values = (field(each) if isinstance(each, str) else each[0](*map(field, each[1:])) for each in self.values)
        return self.text % tuple(values)

    def column(self, fields: Callable[[str], NDArray[np.int64] | None], dialect: Dialect, count: int) -> Text:
        """The texts of ``count`` frames; ``fields`` returns the values of a field, or None if the layout lacks it."""
        values = iter(self.values)

        def part(text: str) -> Text:
            if not text.startswith("%"):
                return constant(text)
            value = next(values)
            if isinstance(value, str):
                return _NUMBERS[text](fields(value))
            describe, *names = value
            given: list[Any] = [dialect if name == "dialect" else fields(name) for name in names]
            return sequence_column(*given) if describe is sequence_text else described(describe, *given)

        return beside(count, *map(part, _CONVERSION.split(self.text)))


_CONVERSION: Final = re.compile("(%[0-9]*[dsx])")
_NUMBERS: Final[dict[str, Callable[[Any], Text]]] = {"%d": decimals, "%08x": hexadecimals}
_SEQ: Final = (sequence_text, "lib_seqnum")
_ACK: Final = (sequence_text, "lib_piggyack")
_MATCH: Final = "match 0x%08x%08x"
_REGION: Final = ("pulled_rdma_id", "pulled_rdma_seqnum")
_INLINE: Final = _Template(f"seq %s ack %s: %s {_MATCH}", (_SEQ, _ACK, (_bytes, "length"), "match_a", "match_b"))
_LIBACK: Final = _Template(
    "liback %d ack %s session 0x%08x", ("liback_acknum", (sequence_text, "liback_lib_seqnum"), "session")
)
_START: Final = (sequence_text, "target_recv_seqnum_start")
_TEMPLATES: Final[dict[type[packets.Frame], _Template]] = {
    packets.ConnectRequest: _Template(
        "request %d session 0x%08x key 0x%08x start %s peer %d",
        ("connect_seqnum", "src_session_id", "app_key", _START, "src_dst_peer_index"),
    ),
    packets.ConnectReply: _Template(
        "reply %d %s session 0x%08x start %s peer %d",
        (
            *("connect_seqnum", (partial(_name, ConnectStatus), "connect_status_code")),
            *("target_session_id", _START, "src_dst_peer_index"),
        ),
    ),
    packets.Truc: _LIBACK,
    packets.Tiny: _INLINE,
    packets.Small: _INLINE,
    packets.Medium: _Template(
        f"seq %s ack %s fragment %d: %s at %d of %d {_MATCH}",
        (
            *(_SEQ, _ACK, "frag_seqnum", (_bytes, "frag_length")),
            *((_fragment_start, "dialect", "frag_seqnum", "frag_pipeline"), "length", "match_a", "match_b"),
        ),
    ),
    packets.Rndv: _Template(
        f"seq %s ack %s: %s to pull from region %d/%d%s {_MATCH}",
        (_SEQ, _ACK, (_bytes, "msg_length"), *_REGION, (_region_offset, "pulled_rdma_offset"), "match_a", "match_b"),
    ),
    packets.Pull: _Template(
        "%s: %s of %d from region %d/%d handle 0x%08x",
        (
            (_requested_frames, "dialect", "frame_index", "first_frame_offset", "block_length"),
            *((_bytes, "block_length"), "total_length", *_REGION, "src_pull_handle"),
        ),
    ),
    packets.PullReply: _Template(
        "frame %d: %s at %d handle 0x%08x", ("frame_seqnum", (_bytes, "frame_length"), "msg_offset", "dst_pull_handle")
    ),
    packets.Notify: _Template(
        "seq %s ack %s: %s pulled from region %d/%d", (_SEQ, _ACK, (_bytes, "total_length"), *_REGION)
    ),
}


class _BlockFields:
    """The fields of a block of frames, by the names of the attributes of their class."""

    def __init__(self, block: LayoutBlock) -> None:
        self._block = block
        self._names = {each.attribute: each.name for each in block.layout.defined}

    def __getattr__(self, attribute: str) -> NDArray[np.int64]:
        return self._block[self._names[attribute]].astype(np.int64)

    def at(self, which: NDArray[np.intp], attribute: str) -> NDArray[np.int64] | None:
        """The values of a field in the frames ``which`` of the block; None if the layout lacks it."""
        return getattr(self, attribute)[which] if attribute in self._names else None


def summary_column(decoded: DecodedBatch, places: NDArray[np.intp]) -> tuple[Text, NDArray[np.intp]]:
    """The summaries of the frequent packets at ``places``, and the positions of all other frames, for :func:`summary`.

    Their rows are empty. Malformed and remarkable frames are rare, so they are among them.
    """
    position = np.full(len(decoded), -1)
    position[places] = np.arange(len(places))
    is_other = np.ones(len(places), np.bool_)
    columns: list[tuple[NDArray[np.intp], Text]] = []
    for block in decoded.columns.blocks:
        frame_class = _CLASSES[block.layout.format.frame_class]
        template = _TEMPLATES.get(frame_class)
        if template is None:
            continue
        fields = _BlockFields(block)
        is_plain = (position[block.place] >= 0) & (decoded.columns.reason[block.place] == Reason.NONE)
        which = np.flatnonzero(is_plain & np.logical_not(is_remarkable(frame_class, fields, block.dialect)))
        at = position[block.place[which]]
        is_other[at] = False
        columns.append((at, template.column(partial(fields.at, which), block.dialect, len(which))))
    texts = np.zeros((len(places), max((each.shape[1] for _, each in columns), default=0)), np.uint8)
    for at, column in columns:
        texts[at, : column.shape[1]] = column
    return texts, np.flatnonzero(is_other)


def _nack_lib(frame: packets.NackLib, dialect: Dialect) -> str:
    what = f"seq {sequence_text(frame.lib_seqnum)}" if frame.lib_seqnum else "connect"
    return f"{_name(NackType, frame.nack_type)} for {what}"


def _nack_mcp(frame: packets.NackMcp, dialect: Dialect) -> str:
    return f"{_name(NackType, frame.nack_type)} for pull handle 0x{frame.src_pull_handle:08x}"


_SUMMARIES: Final[dict[type[packets.Frame], Callable[[Any, Dialect], str]]] = {
    packets.Raw: _raw,
    packets.Announcement: _announcement,
    packets.HostQuery: _host_query,
    packets.HostReply: _host_reply,
    **_TEMPLATES,
    packets.Truc: _truc,
    packets.NackLib: _nack_lib,
    packets.NackMcp: _nack_mcp,
}
