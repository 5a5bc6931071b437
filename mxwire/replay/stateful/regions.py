"""Large messages of the played host, and the answers to PULLs for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from mxwire.protocol.card.replies import message_offset, replies_needed
from mxwire.replay.stateful.records import Record
from mxwire.wire.dialect import Dialect
from mxwire.wire.packets import NackMcp, Notify, Pull, PullReply, Rndv

_LONGEST: Final = 1 << 30
"""Maximum plausible length of a recorded message in bytes; no host has sent a longer one."""
_REPLIES: Final = 256
RegionKey = tuple[int, int, int]
"""Endpoint of the played host, with number and use counter of its region."""


class PlayedRegions:
    """Content of PULL_REPLYs, reassembled from the recorded ones; zeros where the recording has none."""

    def __init__(self, records: list[Record], dialect: Dialect) -> None:
        self._dialect = dialect
        self._content: dict[int, bytearray] = {}
        """By the number of the recorded RNDV."""
        self._present: dict[RegionKey, bytearray] = {}
        """Present content of the regions."""
        self._unanswered: set[tuple[Any, ...]] = set()
        """PULLs that the played host refused or did not answer before its end."""
        self._ended: set[RegionKey] = set()
        """Regions whose end is in the recording: replies are limited to the recorded ones."""
        pulled: dict[tuple[int, int], bytearray] = {}
        last: dict[RegionKey, bytearray] = {}
        for record in records:
            frame = record.frame
            # Numbers and use counters of regions recur, so that each RNDV has content of its own.
            if record.is_played and isinstance(frame, Rndv) and record.news and frame.msg_length <= _LONGEST:
                last[_place(frame.src_endpoint, frame)] = self._content[record.number] = bytearray(frame.msg_length)
            elif not record.is_played and isinstance(frame, Pull):
                whole = last.get(_place(frame.dst_endpoint, frame))
                if whole is not None:
                    pulled[frame.src_magic, frame.src_pull_handle] = whole
            elif record.is_played and isinstance(frame, PullReply):
                whole = pulled.get((frame.dst_magic, frame.dst_pull_handle))
                if whole is not None and frame.msg_offset + frame.frame_length <= len(whole):
                    whole[frame.msg_offset : frame.msg_offset + frame.frame_length] = frame.data
        self._find_unanswered(records)

    def announced(self, record: Record) -> None:
        """Record the transmission of a RNDV: its region has the content of its message from now on."""
        if record.number in self._content:
            self._present[_place(record.frame.src_endpoint, record.frame)] = self._content[record.number]

    def _find_unanswered(self, records: list[Record]) -> None:
        replied: dict[tuple[int, int], list[tuple[int, int]]] = {}
        refused: set[tuple[int, int]] = set()
        for record in records:
            frame = record.frame
            if record.is_played and isinstance(frame, PullReply):
                replied.setdefault((frame.dst_pull_handle, frame.dst_magic), []).append(
                    (record.number, frame.msg_offset)
                )
            elif record.is_played and isinstance(frame, NackMcp):
                refused.add((frame.src_pull_handle, frame.src_magic))
        for record in records:
            pull = record.frame
            if record.is_played or not isinstance(pull, Pull) or not record.news:
                continue
            first = message_offset(pull, self._dialect)
            handle = pull.src_pull_handle, pull.src_magic
            replies = [(place, at) for place, at in replied.get(handle, ()) if place > record.number]
            answered = any(first <= at < first + pull.block_length for _, at in replies)
            if not answered and (handle in refused or not replies):
                # Lost replies are not a refusal: others follow.
                self._unanswered.add(_requested_part(pull))
                self._ended.add(_place(pull.dst_endpoint, pull))

    def ended(self, frame: Pull | Notify) -> bool:
        """Return whether the recording contains the end of a frame's region."""
        return _place(frame.dst_endpoint, frame) in self._ended

    def is_there(self, frame: Notify) -> bool:
        """Return whether a region has been announced."""
        return _place(frame.dst_endpoint, frame) in self._present

    def replies(self, pull: Pull, recorded: Pull | None) -> Iterator[PullReply]:
        """Yield the answers to a live PULL; none if the played host did not answer the recorded one."""
        content = self._present.get(_place(pull.dst_endpoint, pull))
        if content is None or (recorded is not None and _requested_part(recorded) in self._unanswered):
            return
        if recorded is None and self.ended(pull):
            return
        payload = self._dialect.reply_payload
        at, left = message_offset(pull, self._dialect), pull.block_length
        room = payload - pull.first_frame_offset
        for step in range(min(replies_needed(pull, self._dialect), _REPLIES)):
            size = min(room, left)
            if size < 0 or at + size > len(content):
                return
            yield PullReply(
                dst_mac=pull.src_mac,
                src_mac=pull.dst_mac,
                frame_seqnum=(pull.frame_index + step) & 0xFF,
                frame_length=size,
                msg_offset=at,
                dst_pull_handle=pull.src_pull_handle,
                dst_magic=pull.src_magic,
                data=bytes(content[at : at + size]),
            )
            at, left, room = at + size, left - size, payload


def _place(played: int, frame: Any) -> RegionKey:
    return played, int(frame.pulled_rdma_id), int(frame.pulled_rdma_seqnum)


def _requested_part(frame: Pull) -> tuple[Any, ...]:
    return frame.dst_endpoint, frame.src_endpoint, frame.src_pull_handle, frame.frame_index
