"""The judge: takes decoded frames one by one and reports the rules that they break.

Each class of frames has a plan: the trackers that follow its frames, and the rules against which they are checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, Final

from mxwire.ethernet import is_group
from mxwire.rules import chapters as chapters  # registers the rules
from mxwire.rules.chapters.encapsulation import MALFORMED
from mxwire.rules.finding import Violation
from mxwire.rules.registry import ALWAYS, MESSAGES, NUMBERED, RULES, Breach, Check, WireRule
from mxwire.rules.replies import ReplyRun, take
from mxwire.rules.state import connects, discovery, numbered, pulls
from mxwire.rules.state.flows import ANY_INDEX, ObservedFlow, ObservedPair
from mxwire.rules.state.frame import JudgedFrame
from mxwire.rules.state.hosts import ObservedHost
from mxwire.rules.state.streams import kept_behind
from mxwire.rules.vantage import CAPTURE, Vantage
from mxwire.wire import packets
from mxwire.wire.checks import Reason
from mxwire.wire.codec import Malformed
from mxwire.wire.dialect import Dialect
from mxwire.wire.numbers import NO_PEER_INDEX
from mxwire.wire.probes import is_probe

_Tracker = Callable[[JudgedFrame], None]
_WITHOUT_INDEX: Final = (packets.Raw, packets.Announcement, packets.HostQuery, packets.HostReply, packets.PullReply)
_FLOWLESS: Final = (*_WITHOUT_INDEX, packets.NackLib, packets.NackMcp)


def _nothing(seen: JudgedFrame) -> None:
    """Track nothing, for frames that leave no trace."""


_LOOK: Final[dict[type[packets.Frame], _Tracker]] = {
    **dict.fromkeys(MESSAGES, numbered.look),
    packets.Notify: pulls.look_notify,
    packets.Truc: numbered.look_liback,
    packets.ConnectRequest: connects.look_request,
    packets.ConnectReply: connects.look_reply,
    packets.Pull: pulls.look_pull,
    packets.PullReply: pulls.look_reply,
    packets.NackLib: discovery.look_nack_lib,
    packets.NackMcp: pulls.look_nack_mcp,
}
"""Trackers that classify a frame relative to those before it; they run before the rules."""

_APPLY: Final[dict[type[packets.Frame], _Tracker]] = {
    **dict.fromkeys(NUMBERED, numbered.apply),
    packets.Truc: numbered.apply_liback,
    packets.ConnectRequest: connects.apply_request,
    packets.ConnectReply: connects.apply_reply,
    packets.Pull: pulls.apply_pull,
    packets.PullReply: pulls.apply_reply,
    packets.NackLib: discovery.apply_nack_lib,
    packets.NackMcp: pulls.apply_nack_mcp,
    packets.HostQuery: discovery.apply_query,
    packets.HostReply: discovery.apply_host_reply,
}
"""Trackers that record a frame; they run after the rules, because rules must see the state before the frame."""


class RulePlan:
    """Trackers and rules of one class of frames."""

    __slots__ = ("apply", "has_flow", "has_index", "look", "rules", "teaches")

    def __init__(self, frame_class: type[packets.Frame], rules: list[WireRule]) -> None:
        self.look = _LOOK.get(frame_class, _nothing)
        self.apply = _APPLY.get(frame_class, _nothing)
        mine = [each for each in rules if frame_class in each.frames]
        self.rules: tuple[tuple[tuple[Check, WireRule], ...], ...] = tuple(
            tuple((each.check, each) for each in mine if status in each.when) for status in ALWAYS
        )
        """The rules by the status of the frame (:class:`~mxwire.rules.state.frame.FrameStatus`)."""
        self.has_flow = frame_class not in _FLOWLESS
        self.has_index = frame_class not in _WITHOUT_INDEX
        self.teaches = frame_class in (packets.ConnectRequest, packets.ConnectReply)


RulePlans = dict[type, RulePlan]


@cache
def plans(*, complete: bool, as_sent: bool, sized: bool, strange: bool) -> RulePlans:
    """Return the plan of each class of frames; the options exclude rules, see
    :class:`~mxwire.rules.registry.WireRule`."""
    rules = [
        each
        for each in RULES
        if (complete or each.alone)
        and (as_sent or not each.as_sent)
        and (sized or not each.sized)
        and (strange or not each.strange)
    ]
    return {each: RulePlan(each, rules) for each in packets.FRAME_CLASSES}


DialectLookup = Callable[[bytes, bytes], Dialect]
"""Function that returns the dialect between two hosts from their Ethernet addresses (source, destination)."""

_ADDRESSES: Final = 12


class Judge:
    """Checks the frames of any number of hosts against the rules, in order; keeps a bounded state per conversation.

    ``dialect`` is the dialect of all hosts, or a function that returns the dialect of two Ethernet addresses;
    ``vantage`` describes how the frames were observed.
    """

    def __init__(self, dialect: Dialect | DialectLookup, vantage: Vantage = CAPTURE) -> None:
        self.vantage = vantage
        self._dialect = dialect
        self._hosts: dict[bytes, ObservedHost] = {}
        self._pairs: dict[bytes, ObservedPair] = {}
        self._flows = 0
        self._seen = JudgedFrame(vantage)

    def observe(
        self,
        time_ns: int,
        frame: packets.Frame | Malformed,
        raw: bytes,
        number: int,
        *,
        wire_length: int | None = None,
        delivered_ns: int | None = None,
        arrivals: int = 1,
    ) -> Sequence[Violation]:
        """Return the rules that the next frame breaks, given those before; empty for nearly all frames.

        ``time_ns`` is the time of observation, ``raw`` the bytes from the destination address on (untagged) and
        ``number`` the frame's number in findings. ``wire_length`` is its length in bytes if ``raw`` is truncated.
        ``delivered_ns`` is the time at which it reaches its destination, :data:`~mxwire.rules.vantage.LOST` if it never
        does, None if that is unknown; ``arrivals`` is the number of times that it arrives, if known. Never raises,
        whatever the frame contains.
        """
        if isinstance(frame, Malformed):
            return self._malformed(time_ns, frame, raw, number)
        pair = self._pairs.get(frame.dst_mac + frame.src_mac)
        if pair is None:
            pair = self._pair(frame.src_mac, frame.dst_mac)
        plan = pair.plans[type(frame)]
        seen = self._seen
        seen.begin(time_ns, number, delivered_ns, arrivals)
        seen.frame = frame
        seen.length = len(raw) if wire_length is None else wire_length
        seen.pair = pair
        if plan.has_flow:
            flow = pair.flows.get(frame.src_endpoint << 8 | frame.dst_endpoint)  # type: ignore[attr-defined]
            if flow is None:
                flow = self._flow(pair, frame)
            elif flow.epoch != flow.source.epoch:
                flow.renew(flow.source.epoch)
            seen.flow = flow
            seen.back = back = flow.back
            if back.epoch != back.source.epoch:
                back.renew(back.source.epoch)
        plan.look(seen)
        # A list only for a breach: nearly all frames have none.
        found: list[Violation] | None = None
        for check, rule in plan.rules[seen.status]:
            breach = check(seen)
            if breach is not None:
                found = found if found is not None else []
                found.append(self._violation(rule, breach, frame.src_mac))
        plan.apply(seen)
        # A single index leaves nothing to exclude.
        if plan.has_index and (len(pair.indexes) > 1 or pair.indexes[0] == ANY_INDEX):
            discovery.apply_index(seen)
        if plan.teaches:
            discovery.teach(seen)
        # After the rules, for which this frame is not one of the earlier ones.
        if pair.known_ns is None:
            pair.known_ns = time_ns
        if isinstance(frame, packets.Announcement):
            discovery.announce(seen, self._hosts.values())
        return found or ()

    def observe_replies(self, run: ReplyRun) -> int:
        """Accept replies from the beginning of a run while they break no rule, and return their number.

        The number is 0 if anything is unusual; the caller then passes the next reply to :meth:`observe`, which gives
        the same result for every reply. Only for frames with an unknown time of delivery.
        """
        pair = self._pairs.get(run.destination + run.source)
        if pair is None or self.vantage.as_sent or _is_strange(pair):
            return 0
        return take(run, pair)

    def plain_pair(self, source: int, destination: int) -> ObservedPair | None:
        """Return the pair of two hosts, by address, if frames between them can be judged in runs
        (:mod:`mxwire.rules.plain_run`)."""
        pair = self._pairs.get((destination << 48 | source).to_bytes(_ADDRESSES, "big"))
        return None if pair is None or self.vantage.as_sent or _is_strange(pair) else pair

    def observe_reserved(self, frames: Iterable[tuple[int, packets.Frame | Malformed, bytes, int]]) -> None:
        """Observe frames that break no rule, of a conversation that was reserved: time, frame, bytes and number."""
        flows = self._flows
        for each in frames:
            self.observe(*each)
        self._flows = flows

    def reserve_flows(self, conversations: int) -> list[int]:
        """Return the number of messages that the flows of each of the next conversations remember."""
        first = self._flows
        self._flows += 2 * conversations
        return [kept_behind(each) for each in range(first, self._flows, 2)]

    def remembers_alike(self, conversations: int) -> bool:
        """Return whether the flows of the next conversations remember equally many messages, whatever their order."""
        return kept_behind(self._flows) == kept_behind(self._flows + 2 * conversations)

    def knows(self, host: int) -> bool:
        """Return whether frames from or to a host, by address, were observed."""
        return host.to_bytes(_ADDRESSES // 2, "big") in self._hosts

    def speaks(self, source: bytes, destination: bytes, dialect: Dialect) -> None:
        """Set the dialect between two hosts, in both directions, from now on."""
        pair = self._pairs.get(destination + source)
        if pair is not None and pair.dialect is not dialect:
            for each in (pair, pair.back):
                each.dialect = dialect
                each.plans = self._plans(each)

    def restarted(self, host: bytes, since_ns: int | None = None) -> None:
        """Forget the state of a host that was switched off or whose driver was reloaded: its peer table is empty and
        its endpoints are gone. Frames delivered to it after ``since_ns``, or duplicates of them, may have found it
        running again."""
        known = self._hosts.get(host)
        if known is None:
            return
        for endpoint in known.endpoints.values():
            endpoint.close()
        known.announced = None
        known.magic = None
        for pair in self._pairs.values():
            if pair.source is known:
                pair.forget(since_ns)

    def finish(self) -> Sequence[Violation]:
        """Return violations that only the end of the observation shows."""
        return ()

    def _violation(self, rule: WireRule, breach: Breach, host: bytes) -> Violation:
        excused = breach.defect is not None and breach.defect in self.vantage.excused
        seen = self._seen
        if not self.vantage.as_sent and is_probe(seen.frame):
            # A measuring tool sent the probe, not a driver, so it is not evidence against the driver.
            breach = Breach(breach.expected, f"{breach.found} (a probe)", "note", breach.frames)
            excused = False
        return Violation(
            rule=breach.defect if excused and breach.defect is not None else rule.number,
            severity="note" if excused else breach.severity or rule.severity,
            frames=(*(each for each in breach.frames if each != seen.number), seen.number),
            time_ns=seen.time_ns,
            host=host,
            expected=breach.expected,
            found=breach.found,
        )

    def _malformed(
        self, time_ns: int, frame: packets.Frame | Malformed, raw: bytes, number: int
    ) -> Sequence[Violation]:
        if not isinstance(frame, Malformed) or frame.reason not in MALFORMED:
            return ()
        rule, expected = MALFORMED[frame.reason]
        found = f"{frame.reason.text}: {frame.reason.explanation}"
        # The frame may end within its addresses.
        host = bytes(raw[_ADDRESSES // 2 : _ADDRESSES]).ljust(_ADDRESSES // 2, b"\0")
        severity: Any = "deviation" if frame.reason is Reason.INVALID_TYPE else "violation"
        return (Violation(rule, severity, (number,), time_ns, host, expected, found),)

    def _host(self, address: bytes) -> ObservedHost:
        host = self._hosts.get(address)
        if host is None:
            host = self._hosts[address] = ObservedHost(address, self.vantage.from_start)
        return host

    def _pair(self, source: bytes, destination: bytes) -> ObservedPair:
        one, other = self._host(source), self._host(destination)
        dialect = self._dialect if isinstance(self._dialect, Dialect) else self._dialect(source, destination)
        index = NO_PEER_INDEX if self.vantage.empty_tables else ANY_INDEX
        pair = ObservedPair(one, other, dialect, indexes=[index])
        self._pairs[destination + source] = pair
        # A host that sends to itself has one direction only.
        if source == destination:
            pair.back = pair
        else:
            pair.back = ObservedPair(other, one, dialect, indexes=[index], back=pair)
            self._pairs[source + destination] = pair.back
        for each in (pair, pair.back):
            each.plans = self._plans(each)
        return pair

    def _plans(self, pair: ObservedPair) -> RulePlans:
        """Return the plans per class of frames between two hosts."""
        return plans(
            complete=self.vantage.complete,
            as_sent=self.vantage.as_sent,
            sized=pair.dialect.frame_limit_known,
            strange=_is_strange(pair),
        )

    def _flow(self, pair: ObservedPair, frame: Any) -> ObservedFlow:
        source, destination = pair.source.endpoint(frame.src_endpoint), pair.destination.endpoint(frame.dst_endpoint)
        number, back_number = frame.src_endpoint, frame.dst_endpoint
        kept = kept_behind(self._flows)
        self._flows += 2
        flow = ObservedFlow(pair, source, destination, number, source.epoch, kept)
        pair.flows[number << 8 | back_number] = flow
        if pair.back is pair and number == back_number:
            flow.back = flow
        else:
            flow.back = ObservedFlow(pair.back, destination, source, back_number, destination.epoch, kept, back=flow)
            pair.back.flows[back_number << 8 | number] = flow.back
        for each in (flow, flow.back):
            # Its counts from before the observation are unknown.
            if not each.source.fresh:
                each.connect_next = each.acknum = None
        return flow


def _is_strange(pair: ObservedPair) -> bool:
    """Return whether frames go from a host to itself or to a group."""
    return pair.source is pair.destination or is_group(pair.destination.address)
