"""Selections of frames, messages and conversations, as users state them in filter options.

Theory of operation
===================

A :class:`Selection` holds criteria, all of which must be met. Each criterion is defined for a frame:

========================  ==============================================================================
hosts, pair, endpoint     addresses, and numbers of endpoints; a frame without endpoint fields, such as a
                          PULL_REPLY, has those of its message
types, frames, between    packet type, number and time
kinds, match, messages    kind, match information and number of the message to which the frame belongs
flags, where              marks, and an expression over all fields
========================  ==============================================================================

A message is selected if its own hosts, endpoints, kind, match information and number meet the first and the third
group, and one of its frames all of the others (:class:`MessageSelector`). A conversation is selected if its endpoints
meet the first group, and one of its messages the rest. A finding of a whole capture is selected if it concerns a
selected host, and one of the frames that show it is selected (:class:`FindingSelector`): the state machines behind
findings need every frame, so that a selection limits what is reported, not what is analysed.

Hosts are given by address or name. A name is resolved with the names known in advance, or, while frames of an interface
pass, with those that the hosts announce.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from mxwire.analysis.conversations.frame_marks import FLAGS, flag_bit
from mxwire.analysis.host_names import HostChoice, HostNames, addresses_of, host_choice
from mxwire.analysis.marks import FrameMarker
from mxwire.errors import MxwireError
from mxwire.units import SECOND
from mxwire.wire.enums import packet_type_number
from mxwire.words import suggestion

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mxwire.analysis.conversations import CapturedMessage, Conversation, Flow
    from mxwire.analysis.conversations.frame_marks import FrameMarks, MessageFacts
    from mxwire.analysis.frame_expression import FrameExpression, NamedHost
    from mxwire.wire.decoder import DecodedBatch

NumberRange = tuple[int, int | None]
"""The first and the last number of a range, inclusive; None for an open end."""
_UNKNOWN: Final = -1
"""Endpoint of frames that have no endpoint field and belong to no message."""


@dataclass(slots=True)
class _SelectedParty:
    """A host of a selection, and perhaps one of its endpoints."""

    choice: HostChoice
    addresses: frozenset[int] = frozenset()
    """Addresses of the host; empty while its name is unresolved."""

    def holds(self, address: int, endpoint: int | None) -> bool:
        return address in self.addresses and self.choice.endpoint in (None, endpoint)


@dataclass(frozen=True, slots=True)
class Selection:
    """Criteria for frames and messages; None, or nothing in a collection, for no limit. Use :meth:`of`."""

    hosts: tuple[_SelectedParty, ...] = ()
    """Hosts, at least one of which sends or receives the frame."""
    pair: tuple[_SelectedParty, _SelectedParty] | None = None
    """Two hosts, between which a frame passes in either direction."""
    endpoint: int | None = None
    """Number of the source or destination endpoint."""
    types: frozenset[int] = frozenset()
    frames: Sequence[NumberRange] | None = None
    between: tuple[float, float] | None = None
    """Seconds since the first frame of the capture, both limits inclusive."""
    kinds: frozenset[str] = frozenset()
    match: int | None = None
    messages: Sequence[NumberRange] | None = None
    flags: int = 0
    """Flag bits; a frame needs at least one of them."""
    where: FrameExpression | None = None
    names: HostNames = field(default_factory=HostNames, compare=False)
    """The names of hosts known so far."""
    learns: bool = field(default=False, compare=False)
    """True if names may still be announced by passing frames, see :meth:`learn`."""

    @classmethod
    def of(
        cls,
        *,
        hosts: Iterable[str | HostChoice] = (),
        pair: tuple[str | HostChoice, str | HostChoice] | None = None,
        endpoint: int | None = None,
        types: Iterable[str] = (),
        frames: Sequence[NumberRange] | None = None,
        between: tuple[float, float] | None = None,
        kinds: Iterable[str] = (),
        match: int | None = None,
        messages: Sequence[NumberRange] | None = None,
        flags: Iterable[str] = (),
        where: str | None = None,
    ) -> Selection:
        """Build a selection from text; one of ``hosts``, of ``types``, of ``kinds`` and of ``flags`` is enough.

        Names of hosts select nothing until :meth:`resolved`. Raises :class:`~mxwire.errors.MxwireError` for a bad host,
        an unknown type or flag, a mistake in the expression ``where``, and if ``between`` ends before it starts.
        """
        if between is not None and between[1] < between[0]:
            raise MxwireError(f"between {between[0]:g} s and {between[1]:g} s: the end is before the start")
        return cls(
            hosts=tuple(map(_party, hosts)),
            pair=None if pair is None else (_party(pair[0]), _party(pair[1])),
            endpoint=endpoint,
            types=frozenset(map(packet_type_number, types)),
            frames=frames,
            between=between,
            kinds=frozenset(map(str.upper, kinds)),
            match=match,
            messages=messages,
            flags=sum(set(map(_flag, flags))),
            where=None if where is None else _expression(where),
        )

    # Properties

    @property
    def is_limited(self) -> bool:
        """True if there is at least one criterion."""
        return self != _EVERYTHING

    @property
    def needs_marks(self) -> bool:
        """True if a criterion depends on the marks of frames."""
        return bool(self.flags or self._needs_facts) or (self.where is not None and self.where.needs_marks)

    @property
    def uses_marks(self) -> bool:
        """True if marks improve the selection: the message of a frame without endpoint fields supplies them."""
        return self.needs_marks or self._selects_endpoints

    @property
    def uses_facts(self) -> bool:
        """True if the marks must include the facts of finished messages."""
        return bool(self.kinds) or self.match is not None or self._selects_endpoints

    @property
    def selects_frames(self) -> bool:
        """True if a criterion is about single frames rather than about messages as a whole."""
        return bool(self.types or self.flags) or any(
            each is not None for each in (self.frames, self.between, self.where)
        )

    @property
    def is_of_hosts_only(self) -> bool:
        """True if the only criteria are hosts without endpoints."""
        return not self.needs_messages and self.pair is None and not self._selects_endpoints

    @property
    def needs_messages(self) -> bool:
        """True if there are criteria beyond hosts and endpoints."""
        return self.selects_frames or self._needs_facts

    @property
    def _needs_facts(self) -> bool:
        return bool(self.kinds) or self.match is not None or self.messages is not None

    @property
    def _parties(self) -> tuple[_SelectedParty, ...]:
        return (*self.hosts, *(self.pair or ()))

    @property
    def _selects_endpoints(self) -> bool:
        return self.endpoint is not None or any(each.choice.endpoint is not None for each in self._parties)

    @property
    def named(self) -> list[str]:
        """The hosts that are given by name."""
        by_name = [each.choice.host for each in self._parties if each.choice.address is None]
        return [*by_name, *map(str, self._hosts_in_expression)]

    @property
    def _hosts_in_expression(self) -> tuple[NamedHost, ...]:
        return () if self.where is None else self.where.hosts

    @property
    def unannounced(self) -> list[str]:
        """The hosts given by names that no frame has announced so far."""
        unknown = [each.choice.host for each in self._parties if not each.addresses]
        return unknown + [str(each) for each in self._hosts_in_expression if not each.addresses]

    # Names

    def resolved(self, names: HostNames, *, learns: bool = False) -> Selection:
        """Return the selection with the addresses of its hosts by ``names``.

        Raises :class:`~mxwire.errors.MxwireError` for a name that ``names`` does not contain, unless the selection
        ``learns`` it from passing frames (:meth:`learn`).
        """

        def addresses(host: str) -> frozenset[int]:
            try:
                return addresses_of(host, names)
            except MxwireError:
                if not learns:
                    raise
                return frozenset()

        def found(party: _SelectedParty) -> _SelectedParty:
            return _SelectedParty(party.choice, addresses(party.choice.host))

        if self.where is not None:
            self.where.resolve(addresses)
        pair = None if self.pair is None else (found(self.pair[0]), found(self.pair[1]))
        return replace(self, hosts=tuple(map(found, self.hosts)), pair=pair, names=names, learns=learns)

    def learn(self, decoded: DecodedBatch) -> None:
        """Learn the names of hosts that announce themselves in a batch, and their addresses if the selection learns."""
        before = self.names.version
        self.names.learn(decoded)
        if self.learns and self.names.version != before:
            for party in self._parties:
                if party.choice.address is None:
                    party.addresses = self._holders(party.choice.host)
            if self.where is not None:
                self.where.resolve(self._holders)

    def _holders(self, host: str) -> frozenset[int]:
        return frozenset(address for address, name in self.names.items() if name == host)

    # Frames

    def places(
        self, decoded: DecodedBatch, marks: FrameMarks | None = None, start_ns: int | None = None
    ) -> NDArray[np.intp]:
        """Return the indexes of the selected frames in a batch.

        ``marks`` are those of the batch, required if :attr:`needs_marks`. ``start_ns`` is the time of the capture's
        first frame, by default that of the batch.
        """
        if marks is None and self.needs_marks:
            raise ValueError("the selection needs the marks of the frames")
        if not self.is_limited:
            # The columns of a batch are decoded on first use: unfiltered output as JSON or lines does not need them.
            return np.arange(len(decoded))
        mask = np.ones(len(decoded), np.bool_)
        if self.types:
            mask &= np.isin(decoded.columns.packet_type, list(self.types))
        if self.hosts or self.pair is not None or self.endpoint is not None:
            mask &= self._mask_of_hosts(decoded, marks)
        if self.frames is not None:
            mask &= _inside(decoded.batch.number, self.frames)
        if marks is not None and self.messages is not None:
            mask &= (marks.message > 0) & _inside(marks.message, self.messages)
        if marks is not None and (self.kinds or self.match is not None):
            mask &= self._mask_of_facts(marks)
        if self.flags and marks is not None:
            mask &= marks.flags & np.uint32(self.flags) != 0
        if self.between is not None and len(decoded):
            time_ns = decoded.batch.timestamp_ns
            seconds = (time_ns - (int(time_ns[0]) if start_ns is None else start_ns)) / SECOND
            mask &= (seconds >= self.between[0]) & (seconds <= self.between[1])
        if self.where is not None:
            mask &= self.where.mask(decoded, marks, start_ns)
        return np.flatnonzero(mask)

    def is_over(self, number: int) -> bool:
        """True if no frame after frame ``number`` can be selected."""
        return self.frames is not None and all(last is not None and number >= last for _, last in self.frames)

    def _mask_of_hosts(self, decoded: DecodedBatch, marks: FrameMarks | None) -> NDArray[np.bool_]:
        sides = decoded.located.source, decoded.located.destination
        ends = _endpoints(decoded, marks) if self._selects_endpoints else sides

        def holds(party: _SelectedParty, side: int) -> NDArray[np.bool_]:
            mask = np.isin(sides[side], np.array(list(party.addresses), np.uint64))
            return mask if party.choice.endpoint is None else mask & (ends[side] == party.choice.endpoint)

        mask = np.ones(len(decoded), np.bool_)
        if self.hosts:
            mask = np.logical_or.reduce([holds(each, side) for each in self.hosts for side in (0, 1)])
        if self.pair is not None:
            one, other = self.pair
            mask &= (holds(one, 0) & holds(other, 1)) | (holds(other, 0) & holds(one, 1))
        if self.endpoint is not None:
            mask &= (ends[0] == self.endpoint) | (ends[1] == self.endpoint)
        return mask

    def _mask_of_facts(self, marks: FrameMarks) -> NDArray[np.bool_]:
        def chosen(facts: MessageFacts | None) -> bool:
            return facts is not None and self._takes_facts(facts.kind, facts.match)

        numbers, which = np.unique(marks.message, return_inverse=True)
        verdicts = np.fromiter((chosen(marks.facts(each)) for each in numbers.tolist()), np.bool_, len(numbers))
        mask: NDArray[np.bool_] = verdicts[which]
        return mask

    # Messages and hosts

    def takes(self, message: CapturedMessage) -> bool:
        """Return True if a message meets all criteria that are not about single frames."""
        return (
            self.takes_flow(message.flow)
            and self._takes_facts(message.kind, message.match)
            and (self.messages is None or any(_is_in(message.number, each) for each in self.messages))
        )

    def takes_flow(self, flow: Flow) -> bool:
        """Return True if the endpoints of a flow and of the opposite one meet the criteria for hosts and endpoints."""
        ends = (flow.address, flow.endpoint), (flow.back.address, flow.back.endpoint)
        if self.endpoint is not None and self.endpoint not in (flow.endpoint, flow.back.endpoint):
            return False
        if self.pair is not None:
            one, other = self.pair
            if not any(one.holds(*each) and other.holds(*behind) for each, behind in (ends, ends[::-1])):
                return False
        return not self.hosts or any(party.holds(*each) for party in self.hosts for each in ends)

    def takes_host(self, address: int, endpoint: int | None = None) -> bool:
        """Return True if a host meets the criteria for hosts; an ``endpoint`` of None stands for any."""

        def is_one(parties: Iterable[_SelectedParty]) -> bool:
            return any(
                address in each.addresses and (endpoint is None or each.choice.endpoint in (None, endpoint))
                for each in parties
            )

        if endpoint is not None and self.endpoint not in (None, endpoint):
            return False
        return (not self.hosts or is_one(self.hosts)) and (self.pair is None or is_one(self.pair))

    @property
    def addresses(self) -> frozenset[int] | None:
        """The addresses of the hosts that meet the criteria for hosts; None for all hosts."""
        addresses = frozenset(
            address for party in self._parties for address in party.addresses if self.takes_host(address)
        )
        return addresses if self._parties else None

    def _takes_facts(self, kind: str, match: int | None) -> bool:
        return (not self.kinds or kind in self.kinds) and self.match in (None, match)

    def about_frames(self) -> Selection:
        """Return the selection without the criteria that :meth:`takes` tests."""
        return replace(self, hosts=(), pair=None, endpoint=None, kinds=frozenset(), match=None, messages=None)


_EVERYTHING: Final = Selection()


class FrameSelector:
    """Selector of the frames of one capture, batch by batch and in order, with the analysis that it needs."""

    def __init__(self, selection: Selection) -> None:
        self.selection = selection
        self._marker = FrameMarker(facts=selection.uses_facts) if selection.uses_marks else None

    def places(self, decoded: DecodedBatch, start_ns: int | None = None) -> NDArray[np.intp]:
        """Return the indexes of the selected frames in the next batch; see :meth:`Selection.places`."""
        self.selection.learn(decoded)
        marks = None if self._marker is None else self._marker.observe(decoded)
        return self.selection.places(decoded, marks, start_ns)

    def select(self, decoded: DecodedBatch, start_ns: int | None = None) -> DecodedBatch:
        """Return the selected frames of the next batch."""
        if not self.selection.is_limited:
            return decoded
        return decoded.select(self.places(decoded, start_ns))


class MessageSelector:
    """Selector of messages while a capture is followed: notes which of them have a selected frame."""

    def __init__(self, selection: Selection) -> None:
        self.selection = selection
        self._frames = selection.about_frames()
        self._chosen: set[int] = set()
        self.needs_marks = selection.selects_frames
        """True if :meth:`observe` requires the marks of frames, from a follower with ``marks``."""

    def observe(self, decoded: DecodedBatch, marks: Callable[[DecodedBatch], FrameMarks], start_ns: int | None) -> None:
        """Note the selected frames of a batch; ``marks`` returns its marks, after the follower has observed it."""
        self.selection.learn(decoded)
        if self.needs_marks and len(decoded):
            found = marks(decoded)
            numbers = found.message[self._frames.places(decoded, found, start_ns)]
            self._chosen.update(np.unique(numbers).tolist())
            # A late frame cannot select its message, which was reported before.
            self._chosen.difference_update(found.message[place] for place in found.late)

    def takes(self, message: CapturedMessage) -> bool:
        """Return True if a message is selected, once all its frames have been observed."""
        met = not self.needs_marks or message.number in self._chosen
        self._chosen.discard(message.number)
        return met and self.selection.takes(message)


class ConversationSelector(MessageSelector):
    """Selector of conversations: pass every batch to :meth:`observe`, and every completed message to :meth:`note`."""

    def __init__(self, selection: Selection) -> None:
        super().__init__(selection)
        self._with_messages: set[int] = set()

    def note(self, messages: Iterable[CapturedMessage]) -> None:
        """Note the conversations of the selected messages."""
        if self.selection.needs_messages:
            self._with_messages.update(each.flow.conversation.number for each in messages if self.takes(each))

    def takes_conversation(self, conversation: Conversation) -> bool:
        """Return True if a conversation is selected, after the end of the capture."""
        if self.selection.needs_messages and conversation.number not in self._with_messages:
            return False
        return self.selection.takes_flow(conversation.flows[0])


class FindingSelector:
    """Selector of findings, by their hosts and by the numbers of the frames that show them.

    Remembers the selected frames as one bit per frame, of the latest half billion frames.
    """

    def __init__(self, selection: Selection) -> None:
        self.selection = selection
        self.left_out = 0
        """Number of findings that were not selected."""
        self._bits: dict[int, NDArray[np.uint8]] = {}
        """The frames by multiples of ``_FRAMES_PER_PIECE``."""
        self._by_frame = selection.is_limited and not selection.is_of_hosts_only

    @property
    def needs_marks(self) -> bool:
        """True if :meth:`observe` requires marks."""
        return self.selection.uses_marks

    def observe(self, decoded: DecodedBatch, marks: FrameMarks | None, start_ns: int | None) -> None:
        """Note the selected frames of a batch."""
        self.selection.learn(decoded)
        if not self._by_frame or not len(decoded):
            return
        numbers = decoded.batch.number[self.selection.places(decoded, marks, start_ns)]
        pieces = numbers // _FRAMES_PER_PIECE
        for piece in np.unique(pieces).tolist():
            bits = self._bits.setdefault(piece, np.zeros(_FRAMES_PER_PIECE // 8, np.uint8))
            within = numbers[pieces == piece] % _FRAMES_PER_PIECE
            # Several frames share a byte, of which an assignment would keep the last one only.
            np.bitwise_or.at(bits, within >> 3, (1 << (within & 7)).astype(np.uint8))
            if len(self._bits) > _PIECES:
                del self._bits[next(iter(self._bits))]

    def takes(self, concerns: Iterable[tuple[int, int | None]], frames: Sequence[int]) -> bool:
        """Return True if a finding is selected: it ``concerns`` hosts or endpoints of them, and shows in ``frames``.

        A finding that concerns no host in particular meets the criteria for hosts, and one without frames those for
        frames.
        """
        parties = [*concerns]
        met = not parties or any(self.selection.takes_host(*each) for each in parties)
        if self._by_frame and met and frames:
            met = any(self._is_selected(each) for each in frames)
        self.left_out += not met
        return met

    def _is_selected(self, number: int) -> bool:
        bits = self._bits.get(number // _FRAMES_PER_PIECE)
        within = number % _FRAMES_PER_PIECE
        return bits is not None and bool(bits[within >> 3] >> (within & 7) & 1)


_FRAMES_PER_PIECE: Final = 1 << 20
_PIECES: Final = 512
"""Maximum number of blocks of bits that are kept: 64 MiB."""


def _expression(text: str) -> FrameExpression:
    # Few commands have an expression, and its module imports the whole table of frames.
    from mxwire.analysis.frame_expression import FrameExpression

    return FrameExpression(text)


def _party(host: str | HostChoice) -> _SelectedParty:
    choice = host if isinstance(host, HostChoice) else host_choice(host)
    return _SelectedParty(choice, frozenset() if choice.address is None else frozenset([choice.address]))


def _is_in(number: int, within: NumberRange) -> bool:
    return number >= within[0] and (within[1] is None or number <= within[1])


def _inside(numbers: NDArray[np.int64], ranges: Sequence[NumberRange]) -> NDArray[np.bool_]:
    inside = np.zeros(len(numbers), np.bool_)
    for first, last in ranges:
        inside |= (numbers >= first) & (numbers <= last if last is not None else True)
    return inside


def _endpoints(decoded: DecodedBatch, marks: FrameMarks | None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The endpoints of the source and of the destination of each frame; ``_UNKNOWN`` for those without."""
    endpoints = []
    for name in ("src_endpoint", "dst_endpoint"):
        values, present = decoded.columns.field(name)
        endpoints.append(np.where(present, values.astype(np.int64), _UNKNOWN))
    source, destination = endpoints
    if marks is not None:
        lacking = np.flatnonzero((source < 0) & (destination < 0) & (marks.message > 0))
        numbers, which = np.unique(marks.message[lacking], return_inverse=True)
        rows = [_row(marks.facts(each)) for each in numbers.tolist()]
        table = np.array(rows, np.int64).reshape(-1, 3)[which]
        forward = decoded.located.source[lacking].astype(np.int64) == table[:, 0]
        source[lacking] = np.where(forward, table[:, 1], table[:, 2])
        destination[lacking] = np.where(forward, table[:, 2], table[:, 1])
    return source, destination


def _row(facts: MessageFacts | None) -> tuple[int, int, int]:
    """The sender of a message, the sender's endpoint, and the receiver's endpoint."""
    if facts is None:
        return _UNKNOWN, _UNKNOWN, _UNKNOWN
    one, other = (_UNKNOWN if each is None else each for each in (facts.endpoint, facts.back_endpoint))
    return facts.address, one, other


def _flag(name: str) -> int:
    """Return the bit of a flag by its name, in which dashes and spaces may replace underscores."""
    flag = name.strip().lower().replace("-", "_").replace(" ", "_")
    if flag not in FLAGS:
        raise MxwireError(f"no flag {name!r}{suggestion(flag, FLAGS) or ': ' + ', '.join(FLAGS)}")
    return flag_bit(flag)
