"""Captures and interfaces as sources of decoded frames and messages: progress and notes."""

from __future__ import annotations

import signal
import sys
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, TypeGuard, TypeVar

from mxwire import capture
from mxwire.cli import progress
from mxwire.cli.notes import counted, damage, end_interrupted_line, listening, note
from mxwire.errors import MxwireError
from mxwire.ethernet import ETHERTYPE_MXOE, mac_text
from mxwire.words import count_of, starvation_text

if TYPE_CHECKING:
    from mxwire.analysis.capture_parts import CapturePart
    from mxwire.analysis.conversations import CapturedMessage, Follower
    from mxwire.analysis.conversations.message_rows import MessageGroup
    from mxwire.analysis.host_names import HostNames
    from mxwire.analysis.selection import MessageSelector, Selection
    from mxwire.capture import CaptureReader
    from mxwire.capture.ring import CaptureRing
    from mxwire.cli.option_groups import DecodingOptions
    from mxwire.frames import FrameBatch
    from mxwire.link.live_source import LiveSource
    from mxwire.wire.decoder import DecodedBatch, Decoder

BatchFilter = Callable[[Iterable["FrameBatch"]], Iterator["FrameBatch"]]

_RING_BYTES: Final = 64 << 20
"""Memory for the frames of an interface that wait while earlier ones are analysed."""


# Sources of batches


class BatchSource(Protocol):
    """A capture (:class:`~mxwire.capture.CaptureReader`) or an interface (:class:`LiveSource`)."""

    @property
    def name(self) -> str:
        """Name of the source in messages."""

    @property
    def bytes_read(self) -> int:
        """Bytes of the file read so far."""

    @property
    def total_bytes(self) -> int | None:
        """The size of the file; None for a pipe and an interface."""

    @property
    def dropped(self) -> int:
        """Frames that were lost for lack of room while they were captured."""

    @property
    def names(self) -> dict[bytes, str]:
        """Host names by Ethernet address in the name resolution blocks read so far."""

    def __iter__(self) -> Iterator[FrameBatch]:
        """Iterate over the batches, once."""


Capture = TypeVar("Capture", "CaptureReader", "CaptureRing")


@contextmanager
def _warned(opened: Capture) -> Iterator[Capture]:
    """Print the warnings of a capture when it is closed."""
    with opened:
        try:
            yield opened
        finally:
            for warning in opened.warnings:
                note(f"warning: {warning}")


def capture_of(path: str, skip_damage: bool = False) -> AbstractContextManager[CaptureReader]:
    """Open a capture; its warnings are printed when it is closed, and damage when the command has finished."""
    return _warned(capture.open_capture(path, damaged=damage.append, skip_damage=skip_damage))


def ring_of(files: Sequence[str], skip_damage: bool = False) -> AbstractContextManager[CaptureRing]:
    """Open the consecutive files of a ring as one capture, as :func:`capture_of` does."""
    from mxwire.capture.ring import CaptureRing

    return _warned(CaptureRing(files, damaged=damage.append, skip_damage=skip_damage))


def part_of(part: CapturePart, ethertypes: Collection[int]) -> AbstractContextManager[CaptureRing]:
    """Open a part of a capture, as :func:`capture_of` does."""
    from mxwire.analysis.capture_parts import RingPart

    return _warned(RingPart(part, ethertypes, damage.append))


def reopened(path: str, skip_damage: bool = False) -> CaptureReader:
    """Open a capture that is also read by :func:`capture_of`, which reports its warnings and damage."""
    return capture.open_capture(path, damaged=lambda _: None, skip_damage=skip_damage)


@contextmanager
def live_source(
    interface: str,
    *,
    seconds: float | None = None,
    ethertypes: tuple[int, ...] = (),
    ring_bytes: int = _RING_BYTES,
    snap: int | None = None,
    copied: bool = True,
    quiet: bool = False,
) -> Iterator[LiveSource]:
    """Watch an interface; Ctrl-C then ends the batches instead of the program.

    Of each frame ``snap`` bytes are captured, by default all; ``copied`` is that of :class:`LiveSource`. The start, and
    the numbers of frames and of lost frames at the end, are printed on standard error unless ``quiet``. Raises
    :class:`~mxwire.link.errors.LinkError` if the interface cannot be watched, or disappears.
    """
    from mxwire.link import Tap
    from mxwire.link.interface import read_interface
    from mxwire.link.live_source import EndSignals, LiveSource
    from mxwire.link.packet_filter import WHOLE

    wanted, snap = ethertypes or (ETHERTYPE_MXOE,), WHOLE if snap is None else snap
    only = wanted[0] if len(wanted) == 1 else None
    # The kernel can filter for one EtherType only: with several, it passes all frames.
    with Tap.open(interface, ethertype=only, promiscuous=True, ring_bytes=ring_bytes, snap=snap) as tap:
        signals = EndSignals(tap)
        source = LiveSource(tap, signals, seconds, copied=copied)
        try:
            if not read_interface(interface).up:
                note(f"{interface} is down: no frames pass until it is set up")
            if not quiet:
                listening(interface, seconds)
            yield source
        finally:
            signals.restore()
            if signals.seen == signal.SIGINT:
                end_interrupted_line()
        if not quiet:
            note(_live_summary(source))
    if source.error is not None:
        raise source.error


def _live_summary(source: LiveSource) -> str:
    text = f"{source.name}: {count_of(source.frames, 'frame')} in {source.seconds:.1f} s"
    starved_ns = source.starvation.total_ns
    if source.dropped and not starved_ns:
        return f"{text}; {source.dropped} more passed too fast to be analysed: record them (mxwire capture -w FILE)"
    text = f"{text}, {source.dropped} dropped"
    return f"{text}; {starvation_text(starved_ns)}: stop other programs" if starved_ns else text


def is_live(source: BatchSource) -> TypeGuard[LiveSource]:
    """Return whether a source is an interface; links are not imported for files, since that takes a while."""
    module = sys.modules.get("mxwire.link.live_source")
    return module is not None and isinstance(source, module.LiveSource)


def dropped_by(source: BatchSource) -> int:
    """Number of frames that a live source has lost so far; 0 for files."""
    return source.dropped if is_live(source) else 0


# Decoding


def judged_batches(
    decoder: Decoder, reader: BatchSource, watch: BatchFilter = iter, *, streams: bool = False
) -> Iterator[DecodedBatch]:
    """Decode a source in the order of the frames' times, for analyses that depend on the order.

    ``watch`` sees the batches unchanged, with all other protocols, and passes them on. Frames of an interface come in
    order, and are not held back. ``streams`` is that of :func:`decoded_batches`.
    """
    from mxwire.capture.time_order import in_time_order

    def ordered(batches: Iterable[FrameBatch]) -> Iterator[FrameBatch]:
        return watch(batches) if is_live(reader) else in_time_order(watch(batches))

    return decoded_batches(decoder, reader, ordered, streams=streams)


def decoded_batches(
    decoder: Decoder, reader: BatchSource, watch: BatchFilter = iter, *, watched: bool = True, streams: bool = False
) -> Iterator[DecodedBatch]:
    """Decode a source: frames of an interface at once, a file with look-ahead, and with a progress bar if it is large.

    The bar counts frames that the caller has finished: many more may have been read ahead. There is none if ``watched``
    is False, since another one is shown. ``streams`` means that lines are printed while the capture is read, see
    :func:`mxwire.cli.progress.bar`. The batches pass ``watch`` before they are decoded.
    """
    from mxwire.wire.decoder import SETTLE_BYTES

    capture.retain_freed_memory()
    total = reader.total_bytes
    # A pipe is not examined first, because its writer may be slow.
    settle_bytes = 0 if total is None else SETTLE_BYTES
    read: deque[tuple[int, int]] = deque()
    """Frames and bytes of the file after each batch that was read and that the caller has not finished."""

    def tracked() -> Iterator[FrameBatch]:
        frames = 0
        for batch in reader:
            frames += len(batch)
            read.append((frames, reader.bytes_read))
            yield batch

    wanted = watched and total is not None and total >= progress.SHOWN_FROM_BYTES
    with progress.bar(reader.name, total, "bytes", wanted=wanted, streams=streams) as shown:
        if not shown.shown:
            yield from decoder.decode_all(watch(reader), settle_bytes)
            return
        done = 0
        for decoded in decoder.decode_all(watch(tracked()), settle_bytes):
            yield decoded
            done += len(decoded) + decoded.located.skipped
            while read and read[0][0] <= done:
                shown.update(read.popleft()[1])


@contextmanager
def reading_bar(*readers: BatchSource) -> Iterator[Callable[[], None]]:
    """A progress bar while large files are read to their end; yield the function that updates it."""
    totals = [each.total_bytes for each in readers]
    total = sum(each or 0 for each in totals)
    wanted = None not in totals and total >= progress.SHOWN_FROM_BYTES
    label = ", ".join(each.name for each in readers)
    with progress.bar(label, total, "bytes", wanted=wanted) as shown:
        yield lambda: shown.update(sum(each.bytes_read for each in readers))


# Filters


def selection_of(
    selection: Selection,
    names: HostNames,
    sources: str | Collection[str],
    decoding: DecodingOptions,
    *,
    live: bool = False,
) -> Selection:
    """Return a selection with the addresses of hosts that are given by name.

    Names are the known ``names`` and those in the captures ``sources``, which are read once more for names that are
    needed, as they may be at the end. Of an interface (``live``) they are learned while frames pass. Raises
    :class:`~mxwire.errors.MxwireError` for unknown names, and for a pipe, which cannot be read twice.
    """
    try:
        return selection.resolved(names, learns=live)
    except MxwireError:
        unknown = [each for each in selection.named if each not in names.values()]
        if not unknown:
            raise
    paths = [sources] if isinstance(sources, str) else [*sources]
    for path in paths:
        if _read_names(path, names, decoding):
            continue
        where = "standard input" if path == "-" else path
        raise MxwireError(
            f"{unknown[0]!r}: {where} cannot be searched for names; give Ethernet addresses, or names with --peers"
        )
    try:
        return selection.resolved(names)
    except MxwireError as error:
        raise MxwireError(f"{', '.join(paths)}: {error}") from None


def _read_names(path: str, names: HostNames, decoding: DecodingOptions) -> bool:
    """Add the names of hosts in a capture to ``names``; return False for a pipe, which cannot be read twice."""
    if path == "-":
        return False
    with reopened(path, decoding.skip_damage) as reader:
        if reader.total_bytes is None:
            return False
        for decoded in decoded_batches(decoding.decoder(), reader):
            names.learn(decoded)
        names.add_all(reader.names)
    return True


# Messages


def followed(
    follower: Follower, decoder: Decoder, reader: BatchSource, *, streams: bool, selector: MessageSelector | None = None
) -> Iterator[CapturedMessage]:
    """The messages of a capture in the order in which they appear; of an interface, as each completes.

    With a ``selector`` only the selected messages. ``streams`` means that they are printed at the same time, see
    :func:`mxwire.cli.progress.bar`.
    """
    from mxwire.analysis.conversations.message import MessageSorter

    live = reader if is_live(reader) else None
    order = None if live is not None else MessageSorter()

    def taken(messages: Iterable[CapturedMessage]) -> Iterator[CapturedMessage]:
        return iter(messages) if selector is None else filter(selector.takes, messages)

    for decoded in judged_batches(decoder, reader, streams=streams):
        completed = follower.observe(decoded)
        if selector is not None:
            selector.observe(decoded, follower.take_marks, decoder.start_ns)
        if live is not None:
            yield from taken(completed)
            yield from taken(follower.wait_until(live.quiet_until_ns))
        elif order is not None:
            yield from taken(order.put(completed))
    rest = follower.finish()
    if order is not None:
        rest = [*order.put(rest), *order.rest()]
    yield from taken(rest)
    note_messages(reader.name, follower, decoder)


def followed_groups(
    follower: Follower, decoder: Decoder, reader: BatchSource, selector: MessageSelector
) -> Iterator[MessageGroup]:
    """The messages of a capture as :func:`followed` returns them, in groups.

    ``follower`` has ``rows``, and ``selector`` takes all messages.
    """
    import numpy as np

    from mxwire.analysis.conversations.message_rows import ROW, GroupSorter, MessageGroup

    none = np.zeros(0, ROW)
    sorter = GroupSorter(none)
    for decoded in judged_batches(decoder, reader, streams=True):
        completed = follower.observe(decoded)
        selector.observe(decoded, follower.take_marks, decoder.start_ns)
        yield from sorter.put([*follower.take_rows(), MessageGroup(none, messages=completed)]).parts()
    rest = follower.finish()
    yield from sorter.put([*follower.take_rows(), MessageGroup(none, messages=rest)], all_left=True).parts()
    note_messages(reader.name, follower, decoder)


# Files that must differ


def refuse_overwriting(files: Iterable[str], target: Path) -> None:
    """Raise :class:`~mxwire.errors.MxwireError` if the output file is one of the input files."""
    for file in files:
        if _is_same(file, target):
            raise MxwireError(f"{target}: is one of the captures; name another file for the output")


def refuse_twice(first: str, second: str, advice: str) -> None:
    """Raise :class:`~mxwire.errors.MxwireError` if two captures to compare are the same file."""
    if _is_same(first, Path(second)):
        raise MxwireError(f"{first} and {second} are the same file; {advice}")


def _is_same(file: str, other: Path) -> bool:
    return other.exists() and Path(file).exists() and other.samefile(file)


# Notes


def refuse_empty(source: BatchSource, decoder: Decoder, selection: Selection | None = None) -> None:
    """Raise if a source has no MXoE frame at all, or none with the name of a host in ``selection``: there is no result.

    Raises :class:`~mxwire.errors.MxwireError` with what to try. A part of a capture may be empty.
    """
    if decoder.known is not None:
        return
    if decoder.decoded:
        unknown = selection.unannounced if selection is not None else []
        if unknown and is_live(source):
            raise MxwireError(f"{source.name}: {unannounced_text(unknown)}")
        return
    types = ethertypes_text(decoder)
    if is_live(source):
        if source.error is not None:
            return  # The error is raised when the source is closed.
        raise MxwireError(
            f"{source.name}: no MXoE frame (EtherType {types}) passed within {source.seconds:.1f} s; "
            f"is any host sending? (mxwire discover -i {source.name}, mxwire doctor -i {source.name})"
        )
    if not decoder.skipped:
        if damage and str(damage[-1]).startswith(source.name):
            raise damage.pop()
        raise MxwireError(f"{source.name}: no frames; record some with mxwire capture")
    raise MxwireError(
        f"{source.name}: no MXoE frames (EtherType {types}) among {counted(decoder.skipped, 'frame')}; is it the right "
        f"capture? For another EtherType use --ethertype (mxwire diagnose finds it)"
    )


def unannounced_text(names: Sequence[str]) -> str:
    """The error about hosts whose names no frame announced."""
    several = "these names" if len(names) > 1 else "this name"
    listed = " or ".join(map(repr, names))
    return (
        f"no host {listed}: no HOST_REPLY with {several} passed; give Ethernet addresses, or names with --peers "
        "(mxwire discover lists the hosts)"
    )


def ethertypes_text(decoder: Decoder) -> str:
    """The EtherTypes that a decoder accepts, as text for messages."""
    return ", ".join(f"0x{each:04x}" for each in decoder.ethertypes)


def note_frames(path: str, decoder: Decoder) -> None:
    """Print notes on the frames of a capture that a reader of the output must know; not for a part of it."""
    if decoder.known is not None:
        return
    if decoder.skipped and decoder.decoded:
        types = ethertypes_text(decoder)
        frames = decoder.skipped + decoder.decoded
        note(f"{path}: {decoder.skipped} of {frames} frames are not MXoE (EtherType {types})")
    for host in decoder.swapped_hosts():
        note(f"{path}: {mac_text(host)} sends its integers in little-endian order (endian option off)")


def note_messages(path: str, follower: Follower, decoder: Decoder) -> None:
    """Print notes on the messages of a capture that a reader of the output must know."""
    from mxwire.report.messages import COOKED

    note_frames(path, decoder)
    if follower.cooked:
        note(f"{path}: {COOKED[0].lower()}{COOKED[1:].rstrip('.')}")
    elif follower.has_strays:
        note(f"{path}: the requests for some large messages were not captured: their conversation is unknown")
    if follower.malformed:
        note(f"{path}: ", follower.malformed, "malformed frame", " left out (mxwire decode shows them)")
    if follower.evicted:
        note(f"{path}: ", follower.evicted, "message", " abandoned, as too many were in flight at a time")


def note_undecided(undecided: list[str], files: int) -> None:
    """Name the captures in which no frame decides the dialect; nothing is wrong with them."""
    if not undecided:
        return
    which = undecided[0] if files == 1 else f"{len(undecided)} of {files} captures"
    note(f"{which}: no packet decides the dialect; all types in it are the same in both (--dialect sets it)")
