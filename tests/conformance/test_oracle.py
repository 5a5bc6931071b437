"""The oracle: a node answers single frames as the real driver did, and counts the same."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from mxwire.protocol import Defect, Profile
from mxwire.protocol.card import bulk
from mxwire.protocol.profile import OPEN_MX_1_5, OPEN_MX_1_5_AS_FOUND
from mxwire.wire.codec import codec_of
from mxwire.wire.enums import PacketType
from mxwire.wire.packets import HostQuery, NackMcp, Pull
from tests.conformance.host import ADDRESS, PARTNER, TAUGHT, Host, Outcome
from tests.conformance.verdicts import Verdict, read_verdicts
from tests.wire.support import DIALECTS, VERDICT_FILES

RUNS = ("idle", "lib and pull", "danger", "teach")
"""Frames that one and the same host got, one after the other."""
BESIDE = [ADDRESS, *TAUGHT]
"""The peer table."""


def run_of(verdict: Verdict) -> str:
    if verdict.state == "promisc":
        return "idle" if 3 in verdict.sessions else "danger"
    return {"lib": "lib and pull", "pull": "lib and pull"}.get(verdict.state, verdict.state)


TRIED = [(name, run) for name in VERDICT_FILES for run in RUNS if run in map(run_of, read_verdicts(name))]
"""Not every state was tried with every dialect."""


def is_refused(verdict: Verdict) -> bool:
    """Return whether the index in the header is that of a peer, but not the sender's."""
    index = int.from_bytes(verdict.frame[14:16], "big")
    return index < len(BESIDE) and BESIDE[index] != verdict.frame[6:12]


def is_taken_from_anybody(verdict: Verdict) -> bool:
    """Return whether the real driver has taken data of a pull from another host than its partner."""
    other = verdict.frame[16:17] == bytes([PacketType.PULL_REPLY]) and verdict.frame[6:12] != PARTNER
    return verdict.state == "pull" and other and not any(each.startswith("Drop") for each in verdict.counters)


def intended(frame: bytes) -> bytes:
    """A frame from the host that its index designates; of a pull, from the partner."""
    if frame[16] in (PacketType.PULL_REPLY, PacketType.NACK_MCP):
        return frame[:6] + PARTNER + frame[12:14] + b"\xff\xff" + frame[16:]
    return frame[:6] + BESIDE[frame[15]] + frame[12:]


@cache
def verdicts_of(name: str, run: str) -> tuple[Verdict, ...]:
    return tuple(each for each in read_verdicts(name) if run_of(each) == run)


@cache
def outcomes(name: str, run: str, profile: Profile) -> dict[int, Outcome]:
    """The reaction of a node to each frame of a run, by the verdict's id."""
    host = Host(DIALECTS[name], profile)
    found = {}
    for verdict in verdicts_of(name, run):
        host.prepare(verdict, name)
        found[verdict.id] = host.judge(verdict.frame)
        # A frame that is dropped without the defect must arrive all the same, or the rest of the run would be early.
        if run == "lib and pull" and verdict.replies and is_refused(verdict) and not profile.has(Defect.NACK_TO_INDEX):
            host.judge(intended(verdict.frame))
        if is_taken_from_anybody(verdict) and not profile.has(Defect.TRANSFERS_WITH_ANY_HOST):
            host.judge(intended(verdict.frame))
        host.tidy(verdict)
    return found


def different(name: str, profile: Profile) -> dict[int, Verdict]:
    """The verdicts that a node does not share, by id."""
    return {
        verdict.id: verdict
        for run in RUNS
        for verdict in verdicts_of(name, run)
        if outcomes(name, run, profile)[verdict.id] != Outcome(verdict.counters, verdict.replies)
    }


def complaint(verdict: Verdict, outcome: Outcome) -> str:
    lines = [f"{verdict.id} {verdict.what} ({verdict.state})", f"  frame {verdict.frame.hex()[:128]}"]
    if verdict.counters != outcome.counters:
        lines += [f"  real counters {verdict.counters}", f"  ours          {outcome.counters}"]
    if verdict.replies != outcome.replies:
        lines += [f"  real reply {each.hex()[:160]}" for each in verdict.replies]
        lines += [f"  our reply  {each.hex()[:160]}" for each in outcome.replies]
    return "\n".join(lines)


@pytest.mark.parametrize(("name", "run"), TRIED)
def test_counters_and_replies_are_those_of_the_real_driver(name: str, run: str) -> None:
    found = outcomes(name, run, OPEN_MX_1_5_AS_FOUND)
    wrong = [
        complaint(verdict, found[verdict.id])
        for verdict in verdicts_of(name, run)
        if found[verdict.id] != Outcome(verdict.counters, verdict.replies)
    ]
    assert not wrong, f"{len(wrong)} of {len(found)} differ:\n" + "\n".join(wrong)


def test_every_frame_is_tried() -> None:
    counts = {name: sum(len(verdicts_of(name, run)) for run in RUNS) for name in VERDICT_FILES}
    assert counts == {"mxoe": 1970, "omx9000": 1700, "omx1500": 1451}


# Without the defects.


def starts_beyond_payload(name: str, verdict: Verdict) -> bool:
    frame = codec_of(DIALECTS[name]).parse(verdict.frame)
    return isinstance(frame, Pull) and frame.first_frame_offset >= DIALECTS[name].reply_payload


def is_long_query(name: str, verdict: Verdict) -> bool:
    return isinstance(codec_of(DIALECTS[name]).parse(verdict.frame), HostQuery) and len(verdict.frame) >= 1500


def is_odd_nack(name: str, verdict: Verdict) -> bool:
    frame = codec_of(DIALECTS[name]).parse(verdict.frame)
    return isinstance(frame, NackMcp) and frame.nack_type in (0, 5, 6)


EXPLAINED = {
    Defect.NACK_TO_INDEX: (lambda _name, verdict: is_refused(verdict), (75, 77, 71)),
    Defect.REPLY_LENGTH_UNCHECKED: (lambda _name, verdict: verdict.state == "pull", (14, 14, 14)),
    Defect.TRANSFERS_WITH_ANY_HOST: (lambda _name, verdict: is_taken_from_anybody(verdict), (1, 1, 1)),
    Defect.REPLY_RENAMES_SELF: (lambda _name, verdict: "new own name" in verdict.what, (1, 1, 1)),
    Defect.FIRST_FRAME_BEYOND_PAYLOAD: (starts_beyond_payload, (20, 27, 23)),
    Defect.LONG_QUERY_LOSES_MAGIC: (is_long_query, (2, 2, 0)),
    Defect.ODD_NACK_ENDS_PULL: (is_odd_nack, (3, 3, 0)),
}
"""Frames that a host without the defect answers otherwise, and their number in each file."""


@pytest.mark.parametrize(("place", "name"), list(enumerate(VERDICT_FILES)))
def test_without_defects_only_the_frames_of_each_defect_differ(place: int, name: str) -> None:
    without = different(name, OPEN_MX_1_5)
    left = dict(without)
    for defect, (shows_it, counts) in EXPLAINED.items():
        mended = without.keys() - different(name, OPEN_MX_1_5.with_defects(defect)).keys()
        assert len(mended) == counts[place], f"{defect.name} explains {sorted(mended)}"
        strange = [f"{each} {without[each].what}" for each in sorted(mended) if not shows_it(name, without[each])]
        assert not strange, f"{defect.name} explains {strange}"
        for each in mended:
            del left[each]
    assert not left, [f"{each.id} {each.what}" for each in left.values()]


# The batch path.


def stretches(name: str, run: str) -> Iterator[list[Verdict]]:
    """A run, divided where the host has to be prepared from scratch."""
    found: list[Verdict] = []
    for verdict in verdicts_of(name, run):
        if found and (verdict.state, verdict.context) != (found[-1].state, found[-1].context):
            yield found
            found = []
        found.append(verdict)
    yield found


def state_of(host: Host) -> dict[str, Any]:
    """The state of a host, where it can differ."""
    names = ("fwd", "rev", "tx_next", "tx_una", "rx_next", "rx_done", "rx_acked", "liback_in", "liback_out", "connects")
    return {
        "peers": [(each.index, each.name, each.reverse) for each in host.node.peers],
        "memory": bytes(host.memory),
        "partners": {
            (endpoint.number, *key): [getattr(partner, each) for each in names]
            + [sorted(partner.incomplete), sorted(partner.window.early), partner.acks.state]
            for endpoint in host.node.endpoints.values()
            for key, partner in endpoint.partners.items()
        },
        "pulls": {
            (card.number, handle): [(each.first, each.missing, each.asked_again) for each in pull.blocks]
            for card in host.node.endpoints
            for handle, pull in card.pulls.items()
        },
        "waiting": [len(endpoint.requests) for endpoint in host.node.endpoints.values()],
    }


def play(name: str, run: str, order: str) -> tuple[list[Outcome], dict[str, Any]]:
    """Give a host the frames of each stretch in one batch, in some order."""
    host = Host(DIALECTS[name], OPEN_MX_1_5_AS_FOUND)
    found = []
    for stretch in stretches(name, run):
        host.prepare(stretch[0], name)
        frames = [each.frame for each in stretch]
        if order == "by type":
            frames.sort(key=lambda each: each[16:17])
        elif order == "five times each":
            frames = [each for each in frames for _ in range(5)]
        found.append(host.judge(*frames))
        host.tidy(stretch[-1])
    return found, state_of(host)


@pytest.mark.parametrize("order", ["as they came", "by type", "five times each"])
@pytest.mark.parametrize(("name", "run"), TRIED)
def test_batches_are_treated_as_single_frames_are(
    name: str, run: str, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    batched = play(name, run, order)
    monkeypatch.setattr(bulk, "SHORTEST_RUN", 1 << 30)
    one_by_one = play(name, run, order)
    for stretch, one, other in zip(stretches(name, run), one_by_one[0], batched[0], strict=True):
        assert other == one, f"{stretch[0].id} to {stretch[-1].id}"
    assert batched[1] == one_by_one[1]
