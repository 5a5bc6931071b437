"""Output of decoded frames as a capture file, with their marks as comments."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING

from mxwire.capture import CaptureWriter, create_capture
from mxwire.ethernet import ADDRESS_SIZE
from mxwire.report.frame_output import FrameOutput

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mxwire.analysis.host_names import HostNames
    from mxwire.analysis.marks import FrameMarks
    from mxwire.wire.decoder import DecodedBatch, Decoder


class FrameCapture(FrameOutput):
    """A capture file: pcapng with marks as comments and with the names of hosts, or pcap without both.

    It is created when the first capture has been opened, and closed by ``stack``.
    """

    def __init__(self, target: str, stack: ExitStack) -> None:
        self._target = target
        self._stack = stack
        self._writer: CaptureWriter | None = None

    def begin(self, path: str, decoder: Decoder, names: HostNames | None = None) -> None:
        """Start the frames of a capture, and the file."""
        super().begin(path, decoder)
        self._open()

    def show(self, decoded: DecodedBatch, places: NDArray[np.intp], marks: FrameMarks | None = None) -> None:
        """Write the frames at ``places``."""
        writer = self._open()
        comments: dict[int, str] = {}
        if marks is not None and writer.comments_allowed:
            texts = ((place, _comment(marks, place)) for place in places.tolist())
            comments = {int(decoded.batch.number[place]): text for place, text in texts if text}
        if len(places):
            writer.write(decoded.batch.select(places), comments)

    def end(self, names: Mapping[int, str]) -> None:
        """Write the names of hosts."""
        writer = self._open()
        if names and writer.comments_allowed:
            writer.write_names({key.to_bytes(ADDRESS_SIZE, "big"): name for key, name in names.items() if name})

    def _open(self) -> CaptureWriter:
        if self._writer is None:
            self._writer = self._stack.enter_context(create_capture(self._target))
        return self._writer


def _comment(marks: FrameMarks, place: int) -> str:
    """The message, the role and the mark of a frame; empty if it has none of them."""
    message, role = int(marks.message[place]), marks.role_at(place)
    parts = ([f"message {message}"] if message else []) + ([role] if role else [])
    return ": ".join(filter(None, (", ".join(parts), marks.text(place))))
