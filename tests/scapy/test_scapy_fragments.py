"""Messages cut into MEDIUM packets, and regions into the replies to a PULL."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.layers.l2 import Ether

from mxwire.errors import MxwireError
from mxwire.scapy import LAYERS, MXoE, fragment_medium, pull_replies, read_mxoe, to_frame
from mxwire.wire.codec import Malformed
from mxwire.wire.dialect import MXOE, omx
from mxwire.wire.packets import Medium, PullReply

CAPTURES = Path(__file__).parents[2] / "captures"
A, B = "02:00:00:00:00:01", "02:00:00:00:00:02"
DIALECTS = (MXOE, omx(), omx(1500))


def layout(packet):
    return packet[MXoE].payload.layout.name


@given(st.integers(0, 32768), st.sampled_from(DIALECTS), st.integers(0, 255))
@settings(max_examples=60, deadline=None)
def test_reassembled_fragments_are_the_message(length, dialect, seed):
    data = bytes((seed + place * 7) & 0xFF for place in range(length))
    fragments = [to_frame(each) for each in fragment_medium(data, dialect, dst=B, src=A, lib_seqnum=5, match_b=6)]
    assert all(isinstance(each, Medium) for each in fragments)
    assert [each.frag_seqnum for each in fragments] == list(range(max(-(-length // dialect.fragment_payload), 1)))
    assert all(each.frag_length == dialect.fragment_payload for each in fragments[:-1])
    assert {(each.length, each.lib_seqnum, each.match_b) for each in fragments} == {(length, 5, 6)}
    message = bytearray(length)
    for each in fragments:
        start = each.frag_seqnum * dialect.fragment_payload
        assert each.frag_pipeline in (12, None)
        message[start : start + each.frag_length] = each.data
    assert message == data


def test_the_pipeline_sets_the_size_of_the_fragments():
    fragments = [to_frame(each) for each in fragment_medium(bytes(5000), "mxoe", dst=B, src=A, frag_pipeline=11)]
    assert [each.frag_length for each in fragments] == [2048, 2048, 904]
    assert {each.frag_pipeline for each in fragments} == {11}


def test_fields_of_all_layers_can_be_given():
    (packet,) = fragment_medium(b"x", "omx", dst=B, src=A, dst_src_peer_index=3, src_endpoint=4, checksum=9)
    assert (packet.dst, packet.src, packet[MXoE].dst_src_peer_index) == (B, A, 3)
    assert (packet.src_endpoint, packet.checksum, packet[MXoE].payload.dialect) == (4, 9, omx())


@pytest.mark.parametrize(
    ("length", "fields", "complaint"),
    [
        (32769, {}, "32769 bytes do not fit a MEDIUM message of dialect mxoe: at most 32768 do"),
        (600, {"frag_pipeline": 1}, "at most 512 do"),
        (5, {"frag_length": 1}, "frag_length is set by the cutting"),
        (5, {"frag_seqnum": 1}, "frag_seqnum is set by the cutting"),
    ],
)
def test_impossible_fragments_are_refused(length, fields, complaint):
    with pytest.raises(MxwireError, match=complaint):
        fragment_medium(bytes(length), "mxoe", dst=B, src=A, **fields)


@pytest.mark.parametrize(
    "name", ["mxoe-every-type", "mxoe-medium-pipeline11", "omx1500-echo-pattern", "mxoe-echo-checksum-debug"]
)
def test_real_messages_are_cut_as_their_sender_cut_them(name):
    messages = defaultdict(dict)
    for packet in read_mxoe(CAPTURES / f"{name}.pcap"):
        if layout(packet) == "medium" and len(packet) >= packet.wirelen:
            messages[packet.src, packet.src_endpoint, packet.lib_seqnum][packet.frag_seqnum] = packet
    compared = 0
    for fragments in messages.values():
        ordered = [fragments[number] for number in sorted(fragments)]
        data = b"".join(each[MXoE].payload.data for each in ordered)
        first = ordered[0][MXoE].payload
        if len(data) != first.length:
            continue
        fields = {each.name: first.getfieldval(each.name) for each in first.fields_desc}
        for dropped in ("length", "frag_length", "frag_seqnum", "data"):
            del fields[dropped]
        made = fragment_medium(data, first.dialect, dst=ordered[0].dst, src=ordered[0].src, **fields)
        assert len(made) == len(ordered)
        for ours, theirs in zip(made, ordered, strict=True):
            compared += 1
            ours[MXoE].dst_src_peer_index = theirs[MXoE].dst_src_peer_index
            ours.lib_piggyack = theirs.lib_piggyack
            for each in ours[MXoE].payload.fields_desc:
                if each.name.startswith("pad") or each.name == "src_generation":
                    setattr(ours, each.name, theirs.getfieldval(each.name))
            assert to_frame(ours) == to_frame(theirs)
    assert compared or name.startswith("omx1500")


@pytest.mark.parametrize("path", sorted(CAPTURES.glob("*.pcap")), ids=lambda path: path.stem)
def test_real_pulls_are_answered_as_their_hosts_answered_them(path):
    """Numbers, lengths and offsets of all replies that a capture shows for a PULL are those of the helper."""
    pulls = defaultdict(list)
    for packet in read_mxoe(path):
        body = packet[MXoE].payload
        if layout(packet) == "pull":
            payload = body.dialect.reply_payload
            region = bytes(body.pulled_rdma_offset + body.frame_index * payload + body.block_length)
            pulls[packet.hashret()].append((packet, {_told(each) for each in pull_replies(packet, region)}))
        elif layout(packet) == "pull_reply":
            # Handles are used again: the last PULL that asks for this frame is the one.
            answered = [replies for pull, replies in pulls[packet.hashret()] if packet.answers(pull)]
            assert _told(packet) in answered[-1]


def _told(packet):
    reply = to_frame(packet)
    length = packet.frame_length if isinstance(reply, Malformed) else reply.frame_length
    return packet.frame_seqnum, length, packet.msg_offset, packet.dst, packet.src


@given(st.data())
@settings(max_examples=80, deadline=None)
def test_reassembled_replies_are_the_region(data):
    """A transfer pulled block by block as a puller does (R-PUL-01), from a region with an offset."""
    dialect = data.draw(st.sampled_from(DIALECTS))
    offset, length = data.draw(st.integers(0, 9000)), data.draw(st.integers(1, 60000))
    region = bytes((place * 31 + (place >> 8)) & 0xFF for place in range(offset + length))
    payload, message = dialect.reply_payload, bytearray(length)
    start, index, first, last_number = 0, 0, offset % payload, -1
    while start < length:
        block = min(dialect.block_length - first, length - start)
        values = {"frame_index": index, "first_frame_offset": first, "block_length": block}
        pull = LAYERS["MXoEPull"](dialect=dialect, pulled_rdma_offset=offset, src_pull_handle=7, src_magic=8, **values)
        for packet in pull_replies(Ether(src=A, dst=B) / MXoE() / pull, region):
            reply = to_frame(packet)
            assert isinstance(reply, PullReply)
            assert (packet.dst, packet.src, reply.dst_pull_handle, reply.dst_magic) == (A, B, 7, 8)
            assert reply.frame_seqnum == (last_number + 1) % 256
            last_number = reply.frame_seqnum
            message[reply.msg_offset : reply.msg_offset + reply.frame_length] = reply.data
        index += -(-(first + block) // payload)
        start, first = start + block, 0
    assert message == region[offset:]


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"block_length": 32769}, "requests 9 frames; a host answers at most 8"),
        ({"block_length": 101}, "requests bytes 0 to 101 of a region of 100"),
        ({"block_length": 10, "frame_index": 1}, "requests bytes 4096 to 4106 of a region of 100"),
        ({"block_length": 10, "first_frame_offset": 5000}, "first_frame_offset 5000 lies beyond"),
    ],
)
def test_a_pull_that_a_host_drops_is_refused(values, complaint):
    pull = Ether(src=A, dst=B) / MXoE() / LAYERS["MXoEPull"](dialect="mxoe", **values)
    with pytest.raises(MxwireError, match=complaint):
        pull_replies(pull, bytes(100))


def test_only_a_pull_is_answered():
    with pytest.raises(MxwireError, match="no PULL in this packet"):
        pull_replies(Ether(src=A, dst=B) / MXoE() / LAYERS["MXoENotify"](), b"")
