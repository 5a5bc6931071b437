"""Limits of an examination that follow from gaps in the capture."""

from __future__ import annotations

from mxwire.analysis.diagnosis.facts import Facts
from mxwire.analysis.observed_order import PROVEN
from mxwire.words import count_of


def limits(facts: Facts) -> list[str]:
    """A sentence for each reason, without its full stop."""
    follower = facts.follower
    said = []
    if not follower.frames:
        skipped = facts.decoder.skipped
        if skipped:
            types = ", ".join(f"0x{each:04x}" for each in facts.decoder.ethertypes)
            said.append(
                f"no frame of MXoE (EtherType {types}) among {count_of(skipped, 'frame')} of other protocols: "
                "only a changed EtherType could be detected"
            )
        else:
            said.append("the capture has no frames: nothing could be judged")
        return said
    if follower.cooked:
        said.append(
            "the capture lacks the destinations of frames (Linux cooked, as from tcpdump -i any): nothing that "
            "concerns two hosts could be judged; capture one interface (-i eth0)"
        )
    if follower.malformed:
        said.append(f"{count_of(follower.malformed, 'malformed frame')} were left out")
    late = sum(not each.connect_count for each in follower.conversations)
    if late:
        said.append(
            f"{count_of(late, 'conversation')} without a connect: the capture began later, or is incomplete; how "
            "they were opened could not be judged"
        )
    if facts.disordered:
        said.append(
            f"{count_of(facts.disordered, 'frame')} behind later ones in the file: "
            "results that depend on order are less certain"
        )
    _, answers_first = facts.sequences.disorders()
    if answers_first >= PROVEN:
        said.append(
            f"replies to {count_of(answers_first, 'PULL')} before the PULL itself: the capture has another order than "
            "the wire, so that the order of frames could not be judged"
        )
    if facts.backwards:
        said.append(
            f"{count_of(facts.backwards, 'message')} acknowledged before being sent: the times are those of two clocks "
            "(mxwire merge compares them); results that depend on times are less certain"
        )
    if facts.traffic.forgotten or follower.evicted or follower.forgotten_conversations:
        said.append("too many simultaneous hosts, conversations or unfinished messages: some were not followed")
    return said
