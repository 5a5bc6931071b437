"""Unreachable endpoints: closed, numbered beyond the limit, or with another key; and hosts without a free endpoint."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from mxwire.analysis.conversations import CapturedMessage, Refusal
from mxwire.analysis.diagnosis.facts import Facts, connects_of, ends, named, sender_of
from mxwire.analysis.diagnosis.finding import KEPT, Finding, Observations, Party, evidence
from mxwire.analysis.diagnosis.registry import Diagnosis, Examiner, examines
from mxwire.analysis.first_keys import FirstKeys
from mxwire.ethernet import mac_text
from mxwire.wire.codes import groups_of
from mxwire.wire.decoder import DecodedBatch
from mxwire.wire.enums import ConnectStatus
from mxwire.wire.numbers import ENDPOINT_MAXIMUM
from mxwire.words import count_of

CLOSED: Final = Diagnosis("endpoint-closed", "connections")
RANGE: Final = Diagnosis("endpoint-out-of-range", "connections")
EXHAUSTED: Final = Diagnosis("endpoints-exhausted", "connections")
KEY: Final = Diagnosis("wrong-key", "connections")

_SEEN_KEPT: Final = 1 << 14


@dataclass(slots=True)
class _Refused(Observations):
    what: Counter[str] = field(default_factory=Counter)

    def note(self, text: str, refusal: Refusal, what: str) -> None:
        self.what[what] += 1
        self.add(evidence(text, [refusal.frame], refusal.time_ns, "proof"))


@examines(CLOSED, RANGE, EXHAUSTED, KEY)
class EndpointExaminer(Examiner):
    """Collector of refusals, and of the endpoints in use."""

    def __init__(self) -> None:
        self._refused: FirstKeys[tuple[str, Party, Party], _Refused] = FirstKeys(KEPT, _Refused)
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
        self._refused[refusal.reason, refuser, asking].note(f"{text}: {refusal.reason}", refusal, what)

    def findings(self, facts: Facts) -> Iterator[Finding]:
        """Yield findings on refusals, except those because of sessions (``sessions.py``)."""
        refused = defaultdict(_Refused, deepcopy(self._refused))
        connected = _connected(facts)
        for connect, flow in connects_of(facts):
            asking, refuser = ends(flow)
            # A connect that came slightly too early and succeeded on a later attempt is harmless.
            if connect.nack is not None and connected.get((asking, refuser), 0) <= connect.nack.time_ns:
                text = f"a CONNECT was refused: {connect.nack.reason}"
                refused[connect.nack.reason, refuser, asking].note(text, connect.nack, "connect")
        for (reason, refuser, asking), each in refused.items():
            shown, what = each.shown, each.what
            counts = " and ".join(count_of(what[kind], kind) for kind in ("message", "pull", "connect") if what[kind])
            if reason == "ENDPT_CLOSED":
                # An endpoint from which data is pulled has sent a message, and an endpoint that was connected to has
                # answered.
                was_open = what["pull"] or (asking, refuser) in connected
                state = "is not open any more" if was_open else "is not open"
                summary = f"{refuser} {state}: {counts} of {asking} refused"
                yield CLOSED.found((refuser, asking), summary, shown)
            elif reason == "BAD_ENDPT":
                summary = f"{mac_text(refuser.address)} has no endpoint {refuser.endpoint}: {counts} refused"
                yield RANGE.found((refuser, asking), summary, shown)
        yield from self._exhausted(refused)
        yield from _keys(facts)

    def _exhausted(self, refused: Iterable[tuple[str, Party, Party]]) -> Iterator[Finding]:
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
    for connect, flow in connects_of(facts):
        if connect.status == ConnectStatus.SUCCESS and connect.answered_ns is not None:
            for key in (ends(flow), ends(flow.back)):
                connects[key] = max(connects.get(key, 0), connect.answered_ns)
    return connects


def _keys(facts: Facts) -> Iterator[Finding]:
    wrong: FirstKeys[tuple[Party, Party], Observations] = FirstKeys(KEPT, Observations)
    for connect, flow in connects_of(facts):
        if connect.status == ConnectStatus.BAD_KEY:
            key = "a key that was not seen" if connect.key is None else f"key 0x{connect.key:08x}"
            text = f"{key} was answered with BAD_KEY"
            wrong[ends(flow.back)].add(evidence(text, [connect.frame], connect.time_ns, "proof"))
    for (target, asking), found in wrong.items():
        yield KEY.found((target, asking), f"{asking} connects to {target} with the wrong key", found.shown)
