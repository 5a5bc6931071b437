"""Questions and answers: what ``srp`` pairs, on real frames."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from scapy.automaton import ObjectPipe
from scapy.layers.l2 import Ether
from scapy.sendrecv import sndrcv
from scapy.supersocket import SuperSocket

from mxwire.scapy import LAYERS, MXoE, read_mxoe
from mxwire.wire.dialect import omx

CAPTURES = Path(__file__).parents[2] / "captures"
A, B, C = "02:00:00:00:00:01", "02:00:00:00:00:02", "02:00:00:00:00:03"

PAIRS = {
    "host_reply": ("host_query",),
    "connect_reply": ("connect_request",),
    "pull_reply": ("pull",),
    "nack_mcp": ("pull",),
    "nack_lib": ("connect_request", "connect_reply", "tiny", "small", "medium", "rndv", "notify"),
}


def layout(packet):
    return packet[MXoE].payload.layout.name


def packets(name):
    return list(read_mxoe(CAPTURES / f"{name}.pcap"))


@pytest.mark.parametrize("path", sorted(CAPTURES.glob("*.pcap")), ids=lambda path: path.stem)
def test_every_answer_of_a_capture_finds_its_question(path):
    """Each answer pairs with an earlier packet of the right type, by the same hash as scapy looks it up with."""
    earlier = {}
    unanswered = 0
    for packet in read_mxoe(path):
        name = layout(packet)
        if name in PAIRS:
            found = [each for each in earlier.get(packet.hashret(), []) if packet.answers(each)]
            unanswered += not found
            assert {layout(each) for each in found} <= set(PAIRS[name])
            assert {each.dst for each in found} <= {packet.src}
        earlier.setdefault(packet.hashret(), []).append(packet)
    # The captures of omxoed begin with answers to packets that went out before.
    assert unanswered == 0, f"{unanswered} answers have no question"


@pytest.mark.parametrize("name", ["mxoe-connect", "omx1500-connect", "omx9000-connect"])
def test_connect_requests_and_replies_pair_one_to_one(name):
    everything = packets(name)
    for request, reply in pairwise(everything):
        if layout(reply) == "connect_reply":
            assert layout(request) == "connect_request" and reply.answers(request)
            assert not request.answers(reply)
    numbers = [each.connect_seqnum for each in everything if layout(each) == "connect_request"]
    replies = [each for each in everything if layout(each) == "connect_reply"]
    for reply in replies:
        found = [each for each in everything if reply.answers(each)]
        # A reopened endpoint may use the same session and number once more.
        assert len(found) <= numbers.count(reply.connect_seqnum)
    assert len(replies) == len(numbers) > 0


def test_host_replies_answer_the_queries_of_their_host():
    everything = packets("mxoe-driver-load")
    queries = [each for each in everything if layout(each) == "host_query"]
    for reply in (each for each in everything if layout(each) == "host_reply"):
        answered = [each for each in queries if reply.answers(each)]
        assert answered and {each.src for each in answered} == {reply.dst}


@pytest.mark.parametrize("name", ["mxoe-lossy-1M", "omx9000-lossy-1M", "mxoe-rndv-offset"])
def test_pull_replies_answer_the_pulls_of_their_block(name):
    everything = packets(name)
    pulls = [each for each in everything if layout(each) == "pull"]
    replies = [each for each in everything if layout(each) == "pull_reply"]
    assert pulls and replies
    for reply in replies:
        blocks = {each[MXoE].payload.frame_index for each in pulls if reply.answers(each)}
        size = next(each[MXoE].dialect.frames_per_block for each in pulls)
        assert {index for index in blocks if not 0 <= (reply.frame_seqnum - index) % 256 < size} == set()
        assert blocks


class _Replayed(SuperSocket):
    """A link on which the answers that were captured come back at once."""

    def __init__(self, answers):
        self.pipe = ObjectPipe("replayed")
        self.answers_for = answers

    def send(self, packet):
        for each in self.answers_for:
            self.pipe.send(each)
        return len(packet)

    def recv(self, x=0, **kwargs):
        return self.pipe.recv()

    def fileno(self):
        return self.pipe.fileno()

    def close(self):
        self.pipe.close()

    @staticmethod
    def select(sockets, remain=None):
        """scapy's own pipe, by which it stops a sniffer, is among these."""
        pipes = {getattr(each, "pipe", each): each for each in sockets}
        return [pipes[each] for each in ObjectPipe.select(list(pipes), remain if remain is not None else 0.1)]


@pytest.mark.parametrize(
    ("name", "question", "answer"),
    [
        ("mxoe-connect", "connect_request", "connect_reply"),
        ("mxoe-every-type", "host_query", "host_reply"),
        ("mxoe-every-type", "pull", "pull_reply"),
        ("omx9000-nack-mcp-rdmawin", "pull", "nack_mcp"),
        ("omx9000-nack-lib", "connect_request", "nack_lib"),
    ],
)
def test_scapys_own_pairing_finds_them(name, question, answer):
    """The result of ``srp``, on a socket that plays the rest of the capture back."""
    everything = packets(name)
    answers = [each for each in everything if layout(each) == answer]
    asked = [each for each in everything if layout(each) == question and any(a.answers(each) for a in answers)][-1]
    later = everything[next(place for place, each in enumerate(everything) if each is asked) :]
    socket = _Replayed(later)
    answered, unanswered = sndrcv(socket, asked, timeout=5, verbose=False)
    socket.close()
    assert len(answered) == 1 and not unanswered
    assert layout(answered[0].answer) == answer
    assert answered[0].answer in answers


def _connect(**changed):
    values = {"src_endpoint": 1, "dst_endpoint": 2, "connect_seqnum": 3, "src_session_id": 4} | changed
    return Ether(src=A, dst=B) / MXoE() / LAYERS["MXoEConnectRequest"](**values)


def _reply(src=B, dst=A, **changed):
    values = {"src_endpoint": 2, "dst_endpoint": 1, "connect_seqnum": 3, "src_session_id": 4} | changed
    return Ether(src=src, dst=dst) / MXoE() / LAYERS["MXoEConnectReply"](**values)


def test_each_value_that_identifies_a_connect_matters():
    assert _reply().answers(_connect())
    for name in ("src_endpoint", "dst_endpoint", "connect_seqnum", "src_session_id"):
        assert not _reply(**{name: 9}).answers(_connect())
    assert not _reply(src=C).answers(_connect())
    assert not _reply(dst=C).answers(_connect())


def test_a_broadcast_may_be_answered_by_anyone():
    query = Ether(src=A, dst="ff:ff:ff:ff:ff:ff") / MXoE() / LAYERS["MXoEHostQuery"](magic=7)
    assert (Ether(src=B, dst=A) / MXoE() / LAYERS["MXoEHostReply"](magic=7)).answers(query)
    assert not (Ether(src=B, dst=A) / MXoE() / LAYERS["MXoEHostReply"](magic=8)).answers(query)
    assert not (Ether(src=B, dst=C) / MXoE() / LAYERS["MXoEHostReply"](magic=7)).answers(query)


@pytest.mark.parametrize(("dialect", "frames"), [("mxoe", 2), ("omx", 1), (omx(1500), 5)])
def test_the_frames_that_a_pull_requests_depend_on_the_dialect(dialect, frames):
    pull = MXoE(dialect=dialect) / LAYERS["MXoEPull"](
        frame_index=255, block_length=6000, src_pull_handle=7, src_magic=8
    )
    pull = Ether(src=A, dst=B) / pull
    numbers = [
        number
        for number in range(256)
        if (
            Ether(src=B, dst=A) / MXoE() / LAYERS["MXoEPullReply"](frame_seqnum=number, dst_pull_handle=7, dst_magic=8)
        ).answers(pull)
    ]
    assert numbers == sorted((255 + each) % 256 for each in range(frames))
