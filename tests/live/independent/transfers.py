"""Large messages: how they are cut into blocks and frames (section 6 of the examples), and both ends' memory of one."""

from __future__ import annotations

from dataclasses import dataclass, field

from .frames import Dialect

WINDOW = 4
"""Blocks requested at a time (R-PUL-02)."""
FIRST_COUNTER = 23
"""Of each region (R-RDV-01)."""
MAGIC = 0x21071980
FIRST_GENERATION = 0x23


@dataclass(frozen=True)
class Block:
    """The part of a message that one PULL requests."""

    frame_index: int
    first_frame_offset: int
    block_length: int


@dataclass(frozen=True)
class Piece:
    """The part of a message that one PULL_REPLY carries."""

    number: int
    msg_offset: int
    length: int


def blocks(spoken: Dialect, length: int, offset: int) -> list[Block]:
    """The requests for a message of ``length`` bytes, ``offset`` bytes into its region (R-PUL-01)."""
    payload, count = spoken.pull_payload, spoken.block_frames
    found = []
    start, rest, index = offset % payload, length, 0
    while rest:
        size = min(payload * count - start, rest)
        found.append(Block(index, start, size))
        start, rest, index = 0, rest - size, index + count
    return found


def pieces(spoken: Dialect, block: Block, offset: int) -> list[Piece]:
    """The replies to the request for a block (R-PUL-13)."""
    payload = spoken.pull_payload
    found = []
    start, rest, number = block.first_frame_offset, block.block_length, block.frame_index
    while rest:
        size = min(payload - start, rest)
        found.append(Piece(number, number * payload - offset % payload + start, size))
        start, rest, number = 0, rest - size, number + 1
    return found


@dataclass
class Region:
    """A large message that is sent: what may be pulled, until its NOTIFY."""

    counter: int
    offset: int
    message: bytes
    taken: int
    """The length that the receiver requests, in bytes."""
    number: int
    """Of its RNDV."""
    plan: list[Block]
    handle: int | None = None
    """Of its PULLs."""
    asked: list[Block] = field(default_factory=list)
    """Without repetitions."""
    transferred: int | None = None
    """The length in the NOTIFY, in bytes."""


class Pulling:
    """A large message that is fetched."""

    def __init__(self, spoken: Dialect, wanted: int, region_offset: int, handle: int, magic: int) -> None:
        self.handle = handle
        self.magic = magic
        self.total = wanted
        self.message = bytearray(wanted)
        self.blocks = blocks(spoken, wanted, region_offset)
        self._pieces = {each: pieces(spoken, each, region_offset) for each in self.blocks}
        self._missing = {piece.number: piece for each in self._pieces.values() for piece in each}
        self.awaited: list[Piece] = []
        """The parts that were requested and have not arrived, in this order."""
        self._requested = 0
        self._oldest = 0
        """Place of the first block that lacks a part."""
        self.repeated = False
        """True if something was requested twice; then replies arrive in any order."""

    @property
    def complete(self) -> bool:
        return not self._missing

    def next_requests(self) -> list[Block]:
        """The parts to request now; they then count as requested."""
        while self._oldest < len(self.blocks) and not self._lacks(self.blocks[self._oldest]):
            self._oldest += 1
        fresh = self.blocks[self._requested : self._oldest + WINDOW]
        self._requested += len(fresh)
        self.awaited += [piece for each in fresh for piece in self._pieces[each]]
        return fresh

    def repeat_requests(self) -> list[Block]:
        """The parts to re-request after a silence of 1000 ms (R-PUL-08)."""
        self.repeated = True
        return [each for each in self.blocks[: self._requested] if self._lacks(each)]

    def store(self, piece: Piece, data: bytes) -> bool:
        """Take a part; return whether it was still missing."""
        if self._missing.pop(piece.number, None) is None:
            return False
        self.awaited.remove(piece)
        self.message[piece.msg_offset : piece.msg_offset + piece.length] = data
        return True

    def _lacks(self, block: Block) -> bool:
        return any(piece.number in self._missing for piece in self._pieces[block])
