"""Transfers of large messages: pulls by the live host, pulls by the played one, and their ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mxwire.replay.stateful.expectations import Expectation, key_of
from mxwire.replay.stateful.finding import Cause, ReplayFinding
from mxwire.replay.stateful.receivers.recognition import Recognition
from mxwire.replay.stateful.regions import PlayedRegions
from mxwire.wire.packets import NackMcp, Notify, Pull, PullReply

PullCallback = Callable[[Pull, Expectation | None], None]
"""Callback for each PULL for a region of the played host, with its recorded counterpart."""


class TransferHandler:
    """Handles PULLs, their answers, and NOTIFYs; ``regions`` are those of the played host."""

    def __init__(self, known: Recognition, regions: PlayedRegions, pulled: PullCallback) -> None:
        self._known = known
        self._with = known.conversation
        self._expected = known.expectations
        self._regions = regions
        self._pulled = pulled
        self._surplus: set[tuple[int, ...]] = set()
        """NOTIFYs that were not recorded."""
        self._rooms: dict[tuple[int, ...], int] = {}
        """Lengths of receives that differ from the recorded ones, by pair and region."""

    def notify(self, frame: Notify, now: int) -> None:
        """Take a NOTIFY: the live host has pulled all of a large message."""
        pair = self._known.pair(frame)
        ours = self._known.is_ours(frame)
        if ours:
            pair.acknowledged(frame.lib_piggyack)
        if frame.lib_seqnum in pair.arrived:
            return
        region = frame.pulled_rdma_id, frame.pulled_rdma_seqnum
        key = Notify, pair.mine, pair.theirs, *region
        expectation = self._expected.take(key)
        was = None
        room = self._rooms.pop((pair.mine, pair.theirs, *region), None)
        if expectation is not None:
            recorded: Any = expectation.record.frame
            was = int(recorded.lib_seqnum)
            is_room = room is not None and frame.total_length == room
            told = replace(frame, total_length=recorded.total_length) if is_room else frame
            self._known.meet(expectation, told, pair)
        elif not self._expected.last_known(key) and room is None and not self._regions.ended(frame):
            sender = pair.mine, pair.theirs, frame.session, frame.lib_seqnum
            if sender not in self._surplus:
                self._surplus.add(sender)
                self._known.unasked(frame, self._regions.is_there(frame))
        if ours:
            pair.arrive(frame.lib_seqnum, was, now)
        if expectation is not None:
            self._known.note_came(frame, expectation, pair)

    def pull(self, frame: Pull, _now: int) -> None:
        """Take a request for a block of a large message of the played host."""
        pair = self._known.pair(frame)
        region = frame.pulled_rdma_id, frame.pulled_rdma_seqnum
        key = Pull, pair.mine, pair.theirs, *region, frame.frame_index
        expectation = self._expected.take(key)
        place = pair.mine, pair.theirs, *region
        if expectation is not None:
            was: Any = expectation.record.frame
            handle = frame.src_pull_handle, frame.src_magic
            self._with.their_handles[was.src_pull_handle, was.src_magic] = handle
            if was.total_length != frame.total_length:
                self._report_room(place, frame, str(was.total_length))
                frame_as_recorded = replace(frame, total_length=was.total_length, block_length=was.block_length)
                self._known.meet(expectation, frame_as_recorded, pair)
            else:
                self._known.meet(expectation, frame, pair)
        elif not self._expected.last_known((Pull, *place, 0)):
            self._report_room(place, frame, "none, or none with room")
        elif not self._expected.last_known(key) and place not in self._rooms and not self._regions.ended(frame):
            self._known.unasked(frame, not self._expected.last_known((Notify, *place)))
        if self._known.is_ours(frame):
            self._pulled(frame, expectation)

    def _report_room(self, place: tuple[int, ...], pull: Pull, expected: str) -> None:
        """Report a receive of another length than the recorded one, which changes its blocks."""
        if self._rooms.get(place) != pull.total_length:
            self._rooms[place] = pull.total_length
            found = f"a receive that takes {pull.total_length} bytes of a large message"
            self._known.report(ReplayFinding(Cause.APPLICATION, "", "receive", 0, expected, found))

    def pull_reply(self, frame: PullReply, _now: int) -> None:
        """Take a part of a large message of the live host."""
        expectation = self._expected.take(key_of(frame))
        if expectation is not None:
            self._known.meet(expectation, frame, None)
        elif not self._expected.last_known(key_of(frame)) and not self._expected.is_pull_of_ours(frame):
            self._known.unasked(frame)

    def refusal(self, frame: NackMcp, _now: int) -> None:
        """Take a refusal of a PULL of the played host."""
        self._known.hear_once(key_of(frame), frame, None)
