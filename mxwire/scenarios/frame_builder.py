"""Frame builder: the frames that a tester sends, with the fields of a well-behaved implementation by default."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from mxwire.ethernet import BROADCAST
from mxwire.scenarios.errors import ScriptError
from mxwire.scenarios.expression import Expression, Scope, pattern
from mxwire.scenarios.steps import SendStep
from mxwire.scenarios.tester import FIRST_HANDLE, Tester
from mxwire.scenarios.vocabulary import FRAME, class_of
from mxwire.wire.codec import Codec, codec_of
from mxwire.wire.numbers import HOST_QUERY_MAGIC, PULL_MAGIC
from mxwire.wire.packets import Announcement, Frame

Fields = dict[str, Any]
Given = Mapping[str, Any]
LONGEST_FRAME: Final = 65_535
_REGION: Final = ("pulled_rdma_id", "pulled_rdma_seqnum")
_NOTHING_PULLED: Final = "the host has pulled nothing"


class MissingDefault(Exception):
    """A field has no sensible default; the text gives the reason."""


def build_frame(step: SendStep, tester: Tester, scope: Scope, codec: Codec) -> tuple[Frame, bytes]:
    """Build the frame of a step; return it with its bytes, malformed if the step requires it.

    Raises :class:`~mxwire.scenarios.errors.ScriptError` for values that do not fit into a frame.
    """
    fields = {name: each.value(scope) for name, each in step.fields.items()}
    try:
        frame = compose(tester, step.packet, fields)
        raw = bytearray(codec.build(frame))
    except (MissingDefault, ValueError, TypeError, OverflowError) as error:
        place = next((each.place for each in step.fields.values()), step.place)
        raise ScriptError(f"{step.packet} cannot be built: {error}", place) from None
    # The proper frame, before it is padded, patched or cut: the tester continues as if it had sent that one.
    tester.sent(frame, fields)
    # Pad, patch, cut: a patch may lie in the padding.
    if step.pad is not None:
        raw = raw.ljust(_frame_length(step.pad, scope), b"\0")
    for patch in step.patches:
        value = patch.value.value(scope)
        new = bytes([value & 0xFF]) if isinstance(value, int) else value
        start = patch.offset.number(scope)
        if not 0 <= start <= len(raw) - len(new):
            raise ScriptError(f"the frame has {len(raw)} bytes: no room at {start} for {len(new)}", patch.offset.place)
        raw[start : start + len(new)] = new
    if step.cut is not None:
        raw = raw[: _frame_length(step.cut, scope)]
    return frame, bytes(raw)


def _frame_length(expression: Expression, scope: Scope) -> int:
    length = expression.number(scope)
    # No link sends less than an Ethernet header.
    if not 14 <= length <= LONGEST_FRAME:
        raise ScriptError(f"frames have 14 to {LONGEST_FRAME} bytes, not {length}", expression.place)
    return length


def compose(tester: Tester, packet: str, given: Given) -> Frame:
    """Build a frame from the scenario's fields, filling in defaults.

    Raises :class:`MissingDefault` for a field that has no sensible default yet.
    """
    fields = dict(given)
    if "match" in fields:
        match = fields.pop("match")
        # A half that is given beside the whole takes precedence.
        fields = {"match_a": match >> 32, "match_b": match & 0xFFFF_FFFF} | fields
    decent: Fields = {"dst_mac": tester.target.mac, "src_mac": tester.station.mac}
    decent |= _MAKERS[packet](tester, fields)
    fields.pop("frame", None)
    return class_of(packet)(**(decent | fields))


def _addressed(tester: Tester, **more: Any) -> Fields:
    return {
        "dst_src_peer_index": tester.station.index,
        "dst_endpoint": tester.target.endpoint,
        "src_endpoint": tester.endpoint,
    } | more


def _numbered(tester: Tester, **more: Any) -> Fields:
    return _addressed(tester, session=tester.session, lib_seqnum=tester.next, lib_piggyack=tester.expected, **more)


def _region(tester: Tester) -> Fields:
    """Return number and use counter of the region that the host announced last, or zeros."""
    return {name: getattr(tester.rndv, name, 0) for name in _REGION}


def _require(basis: Frame | None, given: Given, why: str, *names: str) -> None:
    """Raise :class:`MissingDefault` if some of these fields are not given and the frame that determines them is
    unknown.
    """
    if basis is None and not set(names) <= set(given):
        raise MissingDefault(f"{why}: give {', '.join(names[:-1])} and {names[-1]}")


def _announcement(tester: Tester, given: Given) -> Fields:
    # The NIC id is the sender's own address (W-6.1), even if the scenario forges it.
    number = int.from_bytes(given.get("src_mac", tester.station.mac), "big")
    return {"dst_mac": BROADCAST, "nic_id_hi": number >> 32, "nic_id_lo": number & 0xFFFF_FFFF, "serial": 0x7E57}


def _raw(tester: Tester, given: Given) -> Fields:
    """Fill in an announcement: discovery daemons take every RAW for one, whatever its payload (R-MEA-22)."""
    announcement = Announcement(src_mac=tester.station.mac, **_announcement(tester, {}))
    codec = codec_of(tester.dialect)
    return {"dst_src_peer_index": 0, "opaque": codec.build(announcement)[codec.layout("raw").header_end :]}


def _query(tester: Tester, given: Given) -> Fields:
    return {"src_dst_peer_index": tester.station.place, "magic": HOST_QUERY_MAGIC}


def _reply_with_name(tester: Tester, given: Given) -> Fields:
    name = given.get("hostname", tester.station.name + b"\0")
    return {
        "src_dst_peer_index": tester.station.place,
        "magic": tester.target.magic,
        "hostname": name,
        "length": len(name),
    }


def _liback(tester: Tester, given: Given) -> Fields:
    if "liback_acknum" not in given:
        tester.libacks += 1
    # A proper liback has its session and its number twice (W-6.4), also if the scenario gives one of them.
    acked = given.get("liback_lib_seqnum", tester.expected)
    session = given.get("session", tester.session)
    return _addressed(
        tester,
        session=session,
        liback_session_id=session,
        liback_lib_seqnum=acked,
        liback_send_seq=acked,
        liback_acknum=tester.libacks,
    )


def _connect(tester: Tester, given: Given) -> Fields:
    return _addressed(
        tester,
        src_dst_peer_index=tester.station.place,
        src_session_id=tester.my_session,
        app_key=tester.target.key,
        target_recv_seqnum_start=tester.expected,
        connect_seqnum=tester.connects,
    )


def _accept(tester: Tester, given: Given) -> Fields:
    request = tester.request
    _require(request, given, "there is no request to reply to", "src_session_id", "connect_seqnum")
    return _addressed(
        tester,
        src_dst_peer_index=tester.station.place,
        src_session_id=request.src_session_id if request else 0,
        target_session_id=tester.my_session,
        target_recv_seqnum_start=tester.expected,
        connect_seqnum=request.connect_seqnum if request else 0,
        connect_status_code=0,
    )


def _eager(tester: Tester, given: Given) -> Fields:
    # A length may claim more than a frame can carry.
    data = given.get("data", pattern(min(given.get("length", 5), 0xFFFF)))
    return _numbered(tester, match_a=0, match_b=7, length=len(data), data=data)


def _medium(tester: Tester, given: Given) -> Fields:
    """Fill in a fragment of a message whose content is the pattern of its length, unless ``data`` is given."""
    place = given.get("frag_seqnum", 0)
    last = tester.medium if place else None
    length = given.get("length", last.length if last else 2 * tester.dialect.fragment_payload)
    pipeline = given.get("frag_pipeline", last.frag_pipeline if last else 12) if _has_pipeline(tester) else None
    # The pipeline is the binary logarithm of the fragment size (R-MED-02). A scenario may give up to 255, and no
    # fragment exceeds 64 KiB.
    size = tester.dialect.fragment_payload if pipeline is None else 1 << min(pipeline, 16)
    carried = given.get("frag_length", max(0, min(size, length - place * size)))
    # Padded with zeros, since a scenario may have more bytes in a fragment than are left of its message.
    data = given.get("data", pattern(min(length, 1 << 24))[place * size :][:carried].ljust(min(carried, 65535), b"\0"))
    frame = _numbered(
        tester,
        match_a=last.match_a if last else 0,
        match_b=last.match_b if last else 7,
        length=length,
        frag_seqnum=place,
        frag_length=given.get("frag_length", len(data)),
        frag_pipeline=pipeline,
        data=data,
    )
    # All fragments of a message carry its number (R-SEQ-04 counts messages, not frames).
    if last is not None:
        frame["lib_seqnum"] = last.lib_seqnum
    return frame


def _has_pipeline(tester: Tester) -> bool:
    return tester.dialect.family == "mxoe"


def _rndv(tester: Tester, given: Given) -> Fields:
    return _numbered(
        tester,
        match_a=0,
        match_b=7,
        msg_length=tester.dialect.block_length,
        pulled_rdma_id=0,
        pulled_rdma_seqnum=tester.region,
        pulled_rdma_offset=0,
    )


def _pull(tester: Tester, given: Given) -> Fields:
    """Fill in the first block of the last message that the host has announced."""
    rndv, dialect = tester.rndv, tester.dialect
    _require(rndv, given, "the host has announced no message to pull", "total_length", "block_length")
    offset = given.get("pulled_rdma_offset", rndv.pulled_rdma_offset if rndv else 0)
    index = given.get("frame_index", 0)
    total = given.get("total_length", rndv.msg_length if rndv else 0)
    # Only the first reply of a message begins inside a frame; the following ones begin where that ends.
    first = given.get("first_frame_offset", 0 if index else offset % dialect.reply_payload)
    done = index * dialect.reply_payload - (offset % dialect.reply_payload if index else 0)
    return _addressed(
        tester,
        session=tester.session,
        total_length=total,
        **_region(tester),
        pulled_rdma_offset=offset,
        src_pull_handle=FIRST_HANDLE,
        src_magic=PULL_MAGIC ^ tester.endpoint,
        first_frame_offset=first,
        block_length=max(0, min(dialect.block_length - first, total - done)),
        frame_index=index,
    )


def _data(tester: Tester, given: Given) -> Fields:
    """Fill in a reply frame of the tester's last announced message, as the host pulls it."""
    pull, dialect = tester.pull, tester.dialect
    _require(pull, given, _NOTHING_PULLED, "dst_pull_handle", "dst_magic")
    size = dialect.reply_payload
    shift = pull.pulled_rdma_offset % size if pull else 0
    place = given.get("frame", pull.frame_index if pull else 0)
    start = max(0, place * size - shift)
    end = place * size - shift + size
    total = pull.total_length if pull else size
    # The pattern depends on the whole length, which a pull of a part does not have.
    data = given.get("data", pattern(tester.announced or total)[start : min(end, total)])
    return {
        "frame_seqnum": place & 0xFF,
        "frame_length": len(data),
        "msg_offset": start,
        "dst_pull_handle": pull.src_pull_handle if pull else 0,
        "dst_magic": pull.src_magic if pull else 0,
        "data": data,
    }


def _notify(tester: Tester, given: Given) -> Fields:
    rndv = tester.rndv
    _require(rndv, given, "the host has announced no message", *_REGION, "total_length")
    return _numbered(tester, total_length=rndv.msg_length if rndv else 0, **_region(tester))


def _nack(tester: Tester, given: Given) -> Fields:
    """Fill in a refusal of the last numbered frame or, without one, of the last connect."""
    index = given.get("dst_src_peer_index", tester.station.index)
    return _addressed(
        tester, nack_type=1, lib_seqnum=getattr(tester.numbered, "lib_seqnum", 0), dst_src_peer_index_copy=index
    )


def _nack_pull(tester: Tester, given: Given) -> Fields:
    pull = tester.pull
    _require(pull, given, _NOTHING_PULLED, "src_pull_handle", "src_magic")
    return {
        "dst_src_peer_index": tester.station.index,
        # The puller's endpoint, as Open-MX writes it (wire 6.13).
        "src_endpoint": tester.target.endpoint,
        "nack_type": 4,
        "src_pull_handle": pull.src_pull_handle if pull else 0,
        "src_magic": pull.src_magic if pull else 0,
    }


_MAKERS: Final[dict[str, Callable[[Tester, Given], Fields]]] = {
    FRAME: _raw,
    "RAW": _raw,
    "RAW_OMXOED": _announcement,
    "HOST_QUERY": _query,
    "HOST_REPLY": _reply_with_name,
    "TRUC": _liback,
    "CONNECT_REQUEST": _connect,
    "CONNECT_REPLY": _accept,
    "TINY": _eager,
    "SMALL": _eager,
    "MEDIUM": _medium,
    "RNDV": _rndv,
    "PULL": _pull,
    "PULL_REPLY": _data,
    "NOTIFY": _notify,
    "NACK_LIB": _nack,
    "NACK_MCP": _nack_pull,
}
