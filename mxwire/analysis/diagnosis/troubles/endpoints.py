"""Unreachable endpoints: closed, numbered beyond the limit, or with another key; and hosts without a free endpoint."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

import numpy as np

from mxwire.analysis.conversations import CapturedMessage, Refusal
from mxwire.analysis.diagnosis.facts import Facts, named, sender_of
from mxwire.analysis.diagnosis.finding import KEPT, SHOWN, Evidence, Finding, Party, evidence, keep
from mxwire.analysis.diagnosis.registry import Diagnosis, Examiner, examines
from mxwire.analysis.diagnosis.traffic import groups_of
from mxwire.analysis.first_keys import FirstKeys
from mxwire.ethernet import mac_text
from mxwire.wire.decoder import DecodedBatch
from mxwire.wire.enums import ConnectStatus
from mxwire.wire.numbers import ENDPOINT_MAXIMUM

CLOSED: Final = Diagnosis("endpoint-closed", "connections")
RANGE: Final = Diagnosis("endpoint-out-of-range", "connections")
EXHAUSTED: Final = Diagnosis("endpoints-exhausted", "connections")
KEY: Final = Diagnosis("wrong-key", "connections")

_SEEN_KEPT: Final = 1 << 14


class _Refused:
    __slots__ = ("count", "refuser", "shown", "what")

    def __init__(self, refuser: Party) -> None:
        self.refuser = refuser
        self.count = 0
        self.shown: list[Evidence] = []
        self.what: Counter[str] = Counter()

    def add(self, text: str, refusal: Refusal, what: str) -> None:
        self.count += 1
        self.what[what] += 1
        if len(self.shown) < SHOWN:
            self.shown.append(evidence(text, [refusal.frame], refusal.time_ns, "proof"))


@examines(CLOSED, RANGE, EXHAUSTED, KEY)
class EndpointExaminer(Examiner):
    """Collector of refusals, and of the endpoints in use."""

    def __init__(self) -> None:
        self._refused: FirstKeys[tuple[str, Party, Party], _Refused] = FirstKeys(KEPT)
        self._in_use: FirstKeys[int, set[int]] = FirstKeys(_SEEN_KEPT, set)

    def frames(self, decoded: DecodedBatch, facts: Facts) -> None:
        """Note the endpoints that send."""
        for block in decoded.columns.blocks:
            if "src_endpoint" not in block.names or block.layout.name.startswith("nack"):
                continue
            good = decoded.columns.reason[block.place] == 0
            source = decoded.assignment.source[block.place[good]]
            key = source.astype(np.int64) << 8 | block["src_endpoint"][good]
            for value, _ in groups_of(key):
                self._in_use[decoded.hosts.keys[value >> 8]].add(value & 0xFF)

    def message(self, message: CapturedMessage, facts: Facts) -> None:
        """Note a message that was refused."""
        sender, receiver = sender_of(message.flow), sender_of(message.flow.back)
        if message.nack is not None and message.sender == "nacked":
            self._note(message.nack, receiver, sender, f"{named(message)} was refused", "message")
        pull = message.pull
        if pull is not None and pull.refusal is not None and message.receiver == "failed":
            self._note(pull.refusal, sender, receiver, f"the data of {named(message)} was refused", "pull")

    def _note(self, refusal: Refusal, refuser: Party, asking: Party, text: str, what: str) -> None:
        known = self._refused.setdefault((refusal.reason, refuser, asking), _Refused(refuser))
        known.add(f"{text}: {refusal.reason}", refusal, what)

    def findings(self, facts: Facts) -> Iterator[Finding]:
        """Yield findings on refusals, except those because of sessions (``sessions.py``)."""
        refused = {key: (each.count, list(each.shown), Counter(each.what)) for key, each in self._refused.items()}
        connected = _connected(facts)
        for conversation in facts.follower.conversations:
            for connect in conversation.connects:
                asking = sender_of(conversation.flows[connect.side])
                refuser = sender_of(conversation.flows[1 - connect.side])
                if connect.nack is None or connected.get((asking, refuser), 0) > connect.nack.time_ns:
                    # A connect that came slightly too early and succeeded on a later attempt is harmless.
                    continue
                key = connect.nack.reason, refuser, asking
                number, shown, what = refused.get(key, (0, [], Counter[str]()))
                text = f"a CONNECT was refused: {connect.nack.reason}"
                shown.append(evidence(text, [connect.nack.frame], connect.nack.time_ns, "proof"))
                what["connect"] += 1
                refused[key] = number + 1, shown, what
        for (reason, refuser, asking), (_, shown, what) in refused.items():
            kinds = {"message": "message", "pull": "pull", "connect": "connect"}
            counts = " and ".join(
                f"{what[each]} {name}{'s' * (what[each] != 1)}" for each, name in kinds.items() if what[each]
            )
            if reason == "ENDPT_CLOSED":
                # An endpoint from which data is pulled has sent a message, and an endpoint that was connected to has
                # answered.
                was_open = what["pull"] or (asking, refuser) in connected
                state = "is not open any more" if was_open else "is not open"
                summary = f"{refuser} {state}: {counts} of {asking} refused"
                yield CLOSED.found((refuser, asking), summary, shown[:SHOWN])
            elif reason == "BAD_ENDPT":
                summary = f"{mac_text(refuser.address)} has no endpoint {refuser.endpoint}: {counts} refused"
                yield RANGE.found((refuser, asking), summary, shown[:SHOWN])
        yield from self._exhausted(refused)
        yield from _keys(facts)

    def _exhausted(
        self, refused: dict[tuple[str, Party, Party], tuple[int, list[Evidence], Counter[str]]]
    ) -> Iterator[Finding]:
        limits: dict[int, int] = {}
        closed: dict[int, set[int]] = {}
        for reason, refuser, _ in refused:
            if refuser.endpoint is None:
                continue
            if reason == "BAD_ENDPT":
                limits[refuser.address] = min(limits.get(refuser.address, 256), refuser.endpoint)
            elif reason == "ENDPT_CLOSED":
                closed.setdefault(refuser.address, set()).add(refuser.endpoint)
        for host, used in self._in_use.items():
            used = used - closed.get(host, set())
            limit = limits.get(host, ENDPOINT_MAXIMUM)
            if not (used >= set(range(ENDPOINT_MAXIMUM)) and len(used) >= min(limit, 2 * ENDPOINT_MAXIMUM)):
                continue
            if max(used) >= ENDPOINT_MAXIMUM and host not in limits:
                # The host was configured with a higher limit, which is unknown.
                continue
            text = f"endpoints {min(used)} to {max(used)} all sent frames, and none of them was seen closed"
            shown = [evidence(text, weight="proof" if host in limits else "sign")]
            summary = f"{mac_text(host)} uses all of its {len(used)} endpoints"
            yield EXHAUSTED.found((Party(host),), summary, shown)


def _connected(facts: Facts) -> dict[tuple[Party, Party], int]:
    """Return the time of the last connect of two endpoints, whichever is the initiator, in both orders."""
    connects: dict[tuple[Party, Party], int] = {}
    for conversation in facts.follower.conversations:
        for connect in conversation.connects:
            if connect.status == ConnectStatus.SUCCESS and connect.answered_ns is not None:
                ends = conversation.flows[connect.side], conversation.flows[1 - connect.side]
                one, other = sender_of(ends[0]), sender_of(ends[1])
                for key in ((one, other), (other, one)):
                    connects[key] = max(connects.get(key, 0), connect.answered_ns)
    return connects


def _keys(facts: Facts) -> Iterator[Finding]:
    shown: dict[tuple[Party, Party], list[Evidence]] = {}
    for conversation in facts.follower.conversations:
        for connect in conversation.connects:
            if connect.status != ConnectStatus.BAD_KEY:
                continue
            asking = sender_of(conversation.flows[connect.side])
            target = sender_of(conversation.flows[1 - connect.side])
            key = "a key that was not seen" if connect.key is None else f"key 0x{connect.key:08x}"
            text = f"{key} was answered with BAD_KEY"
            keep(shown, (target, asking), evidence(text, [connect.frame], connect.time_ns, "proof"))
    for (target, asking), kept in shown.items():
        yield KEY.found((target, asking), f"{asking} connects to {target} with the wrong key", kept)
