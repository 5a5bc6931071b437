"""Two hosts with the same identity: Ethernet address or name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from typing import Final

from mxwire.analysis.diagnosis.facts import Facts
from mxwire.analysis.diagnosis.finding import KEPT, Finding, Party, evidence, weighed
from mxwire.analysis.diagnosis.registry import Diagnosis, Examiner, examines
from mxwire.analysis.first_keys import FirstKeys
from mxwire.ethernet import mac_text
from mxwire.wire.decoder import DecodedBatch
from mxwire.wire.enums import hostname_text
from mxwire.wire.packets import HostReply

MAC: Final = Diagnosis("duplicate-mac", "peers")
NAME: Final = Diagnosis("duplicate-name", "peers")
_VALUES: Final = 8


@dataclass
class _Identities:
    """The distinct values that a host reported, and the changes back to an earlier value."""

    current: object
    seen: dict[object, int] = field(default_factory=dict)
    returns: list[tuple[int, int]] = field(default_factory=list)

    def tell(self, value: object, frame: int, time_ns: int) -> None:
        """Note a reported value."""
        if value == self.current:
            self.seen.setdefault(value, frame)
            return
        # A host that was restarted or renamed has new values: only two hosts in turn return to earlier ones.
        if value in self.seen and len(self.returns) < _VALUES:
            self.returns.append((frame, time_ns))
        if len(self.seen) < _VALUES:
            self.seen.setdefault(value, frame)
        self.current = value


@examines(MAC, NAME)
class IdentityExaminer(Examiner):
    """Collector of the names, serials and sessions per address."""

    def __init__(self) -> None:
        self._of_host: FirstKeys[tuple[int, str, int], _Identities] = FirstKeys(KEPT)
        self._names: FirstKeys[str, FirstKeys[int, int]] = FirstKeys(KEPT, partial(FirstKeys, _VALUES))
        self._announced: FirstKeys[int, FirstKeys[int, int]] = FirstKeys(KEPT, partial(FirstKeys, _VALUES))

    def frames(self, decoded: DecodedBatch, facts: Facts) -> None:
        """Note names, serials and sessions."""
        numbers, times = decoded.batch.number, decoded.batch.timestamp_ns
        announcements = []
        for block in decoded.columns.of("host_reply", "raw_omxoed", "connect_request", "connect_reply"):
            good = decoded.columns.reason[block.place] == 0
            announcements += [(int(block.place[at]), at, block) for at in good.nonzero()[0].tolist()]
        for place, at, block in sorted(announcements, key=itemgetter(0)):
            source = decoded.hosts.keys[decoded.assignment.source[place]]
            frame, time_ns = int(numbers[place]), int(times[place])
            if block.layout.name == "raw_omxoed":
                nic = int(block["nic_id_hi"][at]) << 32 | int(block["nic_id_lo"][at])
                self._record_value(source, "serials", nic & 0xFF, hex(int(block["serial"][at])), frame, time_ns)
                self._announced[nic].setdefault(source, frame)
            elif block.layout.name == "host_reply":
                self._record_name(decoded, place, source, frame, time_ns)
            else:
                name = "src_session_id" if block.layout.name == "connect_request" else "target_session_id"
                session = hex(int(block[name][at]))
                self._record_value(source, "sessions", int(block["src_endpoint"][at]), session, frame, time_ns)

    def _record_value(self, host: int, what: str, which: int, value: str, frame: int, time_ns: int) -> None:
        self._of_host.setdefault((host, what, which), _Identities(value)).tell(value, frame, time_ns)

    def _record_name(self, decoded: DecodedBatch, place: int, source: int, frame: int, time_ns: int) -> None:
        reply = decoded.frame(place)
        if not isinstance(reply, HostReply):
            return
        name = hostname_text(reply.hostname)
        self._record_value(source, "names", 0, name, frame, time_ns)
        self._names[name].setdefault(source, frame)

    def findings(self, facts: Facts) -> Iterator[Finding]:
        """Yield findings on addresses and names that are used by two hosts."""
        for (host, what, which), known in self._of_host.items():
            if not known.returns:
                continue
            of = f" of endpoint {which}" if what == "sessions" else ""
            shown = [evidence(f"{value} first reported", [frame]) for value, frame in list(known.seen.items())[:4]]
            frames, times = zip(*known.returns, strict=True)
            shown.append(evidence("an earlier one returned", frames, times[0], "sign", len(frames)))
            summary = f"{mac_text(host)} alternates between {len(known.seen)} {what}{of}"
            yield MAC.found((Party(host),), summary, shown)
        for nic, senders in self._announced.items():
            if len(senders) > 1:
                shown = [evidence(f"announced by {mac_text(each)}", [frame]) for each, frame in senders.items()]
                summary = f"{len(senders)} addresses announce the NIC id {mac_text(nic & 0xFFFFFFFFFFFF)}"
                yield MAC.found(tuple(map(Party, senders)), summary, weighed(shown, "sign"))
        for name, holders in self._names.items():
            if len(holders) > 1 and name:
                shown = [evidence(f"reported by {mac_text(each)}", [frame]) for each, frame in holders.items()]
                summary = f"{len(holders)} hosts have the name {name}"
                yield NAME.found(tuple(map(Party, holders)), summary, weighed(shown, "proof"))
