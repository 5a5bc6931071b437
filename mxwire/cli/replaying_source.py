"""The frames of a capture for ``mxwire replay``, chosen and ready to be sent, as often as they are wanted."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Final

from mxwire.cli.reading import capture_of, decoded_batches, tell_notes
from mxwire.cli.replaying_wishes import Wishes
from mxwire.errors import MxwireError
from mxwire.ethernet import mac_bytes
from mxwire.replay.raw import Piece, Preparation, Rewriting
from mxwire.wire.decoder import Decoder
from mxwire.wire.dialect import Dialect

_KEPT_BYTES: Final = 256 << 20
"""So much of a capture is made ready before its first frame is sent; larger ones are read meanwhile."""
_SELF: Final = "self"


class Source:
    """The pieces of a capture, again and again: kept where they fit into memory, read anew otherwise."""

    def __init__(self, wishes: Wishes, own: bytes | None, mtu: int | None) -> None:
        self._wishes = wishes
        self._own = own
        self._open = ExitStack()
        self._decoder = Decoder(ethertypes=(wishes.ethertype,))
        self._preparation = self._prepare(mtu)
        self._kept: list[Piece] = []
        self.bytes = self.frames = 0
        self.left_out = 0
        fresh = self._read()
        self._rest: Iterator[Piece] | None = fresh
        for piece in fresh:
            self._kept.append(piece)
            self.bytes += len(piece.batch.buffer)
            self.frames += len(piece.batch)
            if self.bytes >= _KEPT_BYTES:
                break
        else:
            self._rest = None
            self.left_out = self._preparation.cut
            tell_notes(wishes.file, self._decoder)
        self.whole = self._rest is None
        self._refuse_dialect()

    def _prepare(self, mtu: int | None) -> Preparation:
        wishes = self._wishes
        rewriting = Rewriting(_addresses(wishes.mapped, self._own), wishes.new_ethertype)
        return Preparation(wishes.file, rewriting, mtu, wishes.interface or "", wishes.pad)

    def _read(self) -> Iterator[Piece]:
        """All pieces, read from the file."""
        wishes = self._wishes
        reader = self._open.enter_context(capture_of(wishes.file))
        decoded = decoded_batches(self._decoder, reader, watched=False)
        yield from self._preparation.pieces((each, wishes.selection.places(each)) for each in decoded)

    def pieces(self) -> Iterator[Piece]:
        """All pieces, once more."""
        if self.whole:
            return iter(self._kept)
        if self._rest is not None:
            # What was kept is let go as it is sent.
            kept, rest = self._kept, self._rest
            self._kept, self._rest = [], None
            return itertools.chain(_consumed(kept), rest)
        if self._wishes.file == "-":
            raise MxwireError("standard input can be read once only: write it to a file, and replay that with --loop")
        self._open.close()
        self._decoder = Decoder(ethertypes=(self._wishes.ethertype,))
        return self._read()

    def _refuse_dialect(self) -> None:
        """Frames of one dialect cannot be made into frames of another."""
        wanted = self._wishes.dialect
        for found in self._decoder.detections() if wanted is not None else ():
            spoken = found.dialect
            if wanted is not None and spoken is not None and not _alike(spoken, wanted):
                raise MxwireError(
                    f"{self._wishes.file}: speaks {spoken.name}, and its frames cannot be converted to {wanted.name}: "
                    f"fragments have other sizes and PULLs another layout, so that a message takes other frames; send "
                    f"the messages themselves (mxwire extract, mxwire send --dialect {wanted.name})"
                )

    def why_nothing(self) -> str:
        """What is to be said when there was no frame to send."""
        if self._preparation.cut:
            return ": all its frames are cut off (--pad fills them up)"
        return ": no frame matches the selection" if self._wishes.selection.is_limited else ": it has no frames of MXoE"

    @property
    def cut(self) -> int:
        """Frames that were cut off by the capture, in one loop."""
        return self._preparation.cut

    def close(self) -> None:
        """Close the file."""
        self._open.close()


def _consumed(kept: list[Piece]) -> Iterator[Piece]:
    kept.reverse()
    while kept:
        yield kept.pop()


def _alike(spoken: Dialect, wanted: Dialect) -> bool:
    if spoken.family != wanted.family:
        return False
    return spoken.family == "mxoe" or not spoken.frame_limit_known or spoken.frame_limit == wanted.frame_limit


def _addresses(mapped: tuple[str, ...], own: bytes | None) -> dict[bytes, bytes]:
    found = {}
    for each in mapped:
        old, equals, new = each.partition("=")
        if not equals:
            raise MxwireError(f"--map {each}: write it like 52:54:00:0a:00:01=02:00:00:00:00:07, or …=self")
        if new == _SELF and own is None:
            raise MxwireError(f"--map {each}: self is the address of an interface: say which one with -i IF")
        found[mac_bytes(old)] = own if new == _SELF and own is not None else mac_bytes(new)
    return found
