"""One message of a capture: its choice on the command line, and the capture followed up to its end."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import click

from mxwire.cli.filters import ABOUT_NAMES, FILTERS, FilterOptions
from mxwire.cli.notes import note
from mxwire.cli.option_class import argument, options_class
from mxwire.cli.option_groups import DecodingOptions
from mxwire.cli.options import FILE, given_options, integer_option
from mxwire.cli.reading import capture_of, ethertypes_text, judged_batches, note_messages, reopened, selection_of
from mxwire.errors import MxwireError
from mxwire.words import count_of

if TYPE_CHECKING:
    from mxwire.analysis.conversations import CapturedMessage, FrameMarks, Role
    from mxwire.analysis.host_names import HostNames
    from mxwire.capture import CaptureReader
    from mxwire.wire.decoder import DecodedBatch, Decoder

_LISTED: Final = 5
"""Messages listed in the error if a filter selects several."""


@options_class
class MessageChoice:
    """A message of a capture, by its number, by one of its frames, or as the only one that a filter selects.

    Without an option, the first of two ``words`` is the number; the last word is always the file, even if it is
    digits only.
    """

    words: tuple[str, ...] = argument(metavar="[NUMBER] FILE", nargs=-1, type=FILE)
    number: int | None = integer_option(
        "The message, by its number in mxwire messages: the same as NUMBER.", "--message", least=1
    )
    frame: int | None = integer_option(
        "The message to which this frame belongs; the message that it acknowledges, if it is an ack.",
        "--frame",
        least=1,
    )

    def __post_init__(self) -> None:
        """Raise :class:`~mxwire.errors.MxwireError` unless there are one message and one file."""
        usage = f"{click.get_current_context().command_path} NUMBER FILE"
        options = [name for name, each in (("--message", self.number), ("--frame", self.frame)) if each is not None]
        options += ["a filter"] if self.is_filtered else []
        *numbers, file = self.words or ("",)
        if len(options) > 1:
            raise MxwireError(f"{' and '.join(options)} cannot be combined: choose the message by one of them")
        if len(numbers) > 1 or (numbers and options):
            given = f", as {options[0]} chooses the message" if options else f": write {usage}"
            raise MxwireError(f"{len(self.words)} arguments, but only one FILE is read{given}")
        if not file or (file.isdecimal() and not numbers and not options):
            raise MxwireError(f"no capture given: write {usage}")
        if not numbers and not options:
            raise MxwireError(
                f"no message given: write {usage}, or use --message, --frame or a filter (mxwire messages FILE lists "
                "messages)"
            )
        if numbers and _message_number(numbers[0]) is None:
            raise MxwireError(f"{numbers[0]!r} is not the number of a message, which counts from 1: write {usage}")

    @property
    def file(self) -> str:
        """The capture."""
        return self.words[-1]

    @property
    def is_filtered(self) -> bool:
        """True if a filter chooses the message."""
        return not given_options().keys().isdisjoint(FILTERS - ABOUT_NAMES)

    def number_in(self, decoding: DecodingOptions, filters: FilterOptions) -> int:
        """The number of the message; if it was chosen by a frame or a filter, the capture is read for it.

        Raises :class:`~mxwire.errors.MxwireError` if the frame belongs to no message, or the filter does not select
        exactly one.
        """
        if self.is_filtered:
            return _message_selected(self.file, filters, decoding)
        if self.frame is not None:
            return message_of_frame(self.file, self.frame, decoding.decoder(), decoding.skip_damage)
        number = self.number or _message_number(self.words[0])
        assert number is not None
        return number


def _message_number(word: str) -> int | None:
    # No capture has 10^18 messages, and Python refuses to convert thousands of digits.
    return int(word) or None if word.isdecimal() and len(word) < 19 else None


def follow_message(
    path: str,
    number: int,
    decoder: Decoder,
    take: Callable[[DecodedBatch, list[tuple[int, Role]], CapturedMessage, FrameMarks], None],
    names: HostNames | None = None,
    skip_damage: bool = False,
) -> CapturedMessage:
    """Follow a capture until message ``number`` is complete, pass its frames to ``take``, and return the message.

    ``names`` learns the names of hosts up to there.

    Raises :class:`~mxwire.errors.MxwireError` if the capture has no message with this number.
    """
    from mxwire.analysis.conversations import Follower, MessageWatch

    watch = MessageWatch(number)
    follower = Follower(watch)
    with capture_of(path, skip_damage) as reader:
        for decoded in judged_batches(decoder, reader):
            follower.observe(decoded)
            if names is not None:
                names.learn(decoded)
            marks = follower.take_marks(decoded)
            frames = watch.frames(marks)
            if watch.message is None:
                continue
            take(decoded, frames, watch.message, marks)
            if watch.message.is_done:
                break
        follower.finish()
        if names is not None:
            names.add_all(reader.names)
        note_messages(reader.name, follower, decoder)
    if watch.message is None:
        if not follower.messages:
            raise MxwireError(f"{path}: has no messages to follow (mxwire decode shows its frames)")
        there = f"it has {count_of(follower.messages, 'message')}"
        raise MxwireError(f"{path}: no message {number}: {there} (mxwire messages lists them)")
    return watch.message


def _message_selected(path: str, filters: FilterOptions, decoding: DecodingOptions) -> int:
    """Return the number of the only message of a capture that a filter selects.

    Raises :class:`~mxwire.errors.MxwireError` if there is none, or more than one, and for a pipe, which cannot be read
    again to follow the message.
    """
    from mxwire.analysis.conversations import Follower
    from mxwire.analysis.selection import MessageSelector

    selector = MessageSelector(selection_of(filters.selection(), filters.host_names(), path, decoding))
    follower, decoder = Follower(marks=selector.needs_marks), decoding.decoder()
    numbers: list[int] = []
    with reopened(path, decoding.skip_damage) as reader:
        _refuse_pipe(path, reader, "a filter")
        for decoded in judged_batches(decoder, reader):
            completed = follower.observe(decoded)
            selector.observe(decoded, follower.take_marks, decoder.start_ns)
            numbers += (each.number for each in completed if selector.takes(each))
    numbers += (each.number for each in follower.finish() if selector.takes(each))
    if not numbers:
        raise MxwireError(f"{path}: no message matches the selection (mxwire messages lists them)")
    if len(numbers) > 1:
        listed = ", ".join(map(str, sorted(numbers)[:_LISTED])) + (", …" if len(numbers) > _LISTED else "")
        raise MxwireError(f"{path}: {len(numbers)} messages match the selection ({listed}): choose one by its number")
    return numbers[0]


def _refuse_pipe(path: str, reader: CaptureReader, option: str) -> None:
    if path == "-" or reader.total_bytes is None:
        raise MxwireError(
            f"{reader.name}: {option} reads a capture twice, which a pipe does not allow: save it to a file first"
        )


def message_of_frame(path: str, frame: int, decoder: Decoder, skip_damage: bool = False) -> int:
    """Return the number of the message to which frame number ``frame`` of a capture belongs.

    An ack belongs to the newest message that it acknowledges, unless a message carries it. Raises
    :class:`~mxwire.errors.MxwireError` if the frame belongs to none, is not MXoE or does not exist, and for a pipe,
    which cannot be read again to follow the message.
    """
    from mxwire.analysis.marks import FrameMarker
    from mxwire.report.summary import type_text

    marker = FrameMarker()
    # Without the warnings of capture_of: they are printed when the message is followed.
    with reopened(path, skip_damage) as reader:
        _refuse_pipe(path, reader, "--frame")
        for decoded in judged_batches(decoder, reader):
            marks = marker.observe(decoded)
            for place in (decoded.batch.number == frame).nonzero()[0].tolist():
                number = int(marks.message[place])
                if not number:
                    shown = type_text(decoded.frame(place))
                    raise MxwireError(
                        f"{path}: frame {frame} ({shown}) belongs to no message (mxwire decode -v --frames {frame} "
                        "shows it)"
                    )
                if place in marks.late:
                    note(f"{path}: frame {frame} passed long after message {number} had ended")
                return number
    frames = decoder.skipped + decoder.decoded
    if frame > frames:
        raise MxwireError(f"{path}: no frame {frame}: it has {count_of(frames, 'frame')}")
    raise MxwireError(f"{path}: frame {frame} is not MXoE (EtherType {ethertypes_text(decoder)})")
