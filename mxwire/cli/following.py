"""What the commands that follow messages have in common: reading, choosing, and what must be said at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from mxwire.analysis.conversations import Follower, Message, Role, Watch
from mxwire.analysis.conversations.order import InOrder
from mxwire.cli.live_batches import LiveSource, Source
from mxwire.cli.notes import note
from mxwire.cli.reading import capture_of, judged_batches, tell_notes
from mxwire.errors import MxwireError
from mxwire.ethernet import ETHERTYPE_MXOE
from mxwire.report.messages import COOKED
from mxwire.wire.decoder import DecodedBatch, Decoder
from mxwire.wire.dialect import Dialect, dialect_or_auto
from mxwire.words import count_of


def decoder_of(dialect: str, ethertypes: tuple[int, ...]) -> Decoder:
    """What decodes a capture as the options say."""
    chosen: Dialect | None = dialect_or_auto(dialect)
    return Decoder(chosen, ethertypes or (ETHERTYPE_MXOE,))


def followed(follower: Follower, decoder: Decoder, reader: Source, *, streams: bool) -> Iterator[Message]:
    """The messages of a capture in the order in which they appear; of what passes an interface, as they are done.

    ``streams`` says that they are printed meanwhile, as :func:`mxwire.cli.progress.bar` wants to know.
    """
    if isinstance(reader, LiveSource):
        yield from _followed_live(follower, decoder, reader)
        return
    order = InOrder()
    for decoded in judged_batches(decoder, reader, streams=streams):
        yield from order.put(follower.observe(decoded))
    yield from order.put(follower.finish())
    yield from order.rest()
    tell_limits(reader.name, follower, decoder)


def _followed_live(follower: Follower, decoder: Decoder, source: LiveSource) -> Iterator[Message]:
    for decoded in judged_batches(decoder, source):
        yield from follower.observe(decoded)
        yield from follower.wait_until(source.quiet_until_ns)
    yield from follower.finish()
    tell_limits(source.name, follower, decoder)


def watched(
    path: str, number: int, decoder: Decoder, take: Callable[[DecodedBatch, list[tuple[int, Role]], Message], None]
) -> Message:
    """Follow a capture until one message is done, and hand its frames to ``take``; returns the message.

    Raises :class:`~mxwire.errors.MxwireError` where the capture has no message with this number.
    """
    watch = Watch(number)
    follower = Follower(watch)
    with capture_of(path) as reader:
        for decoded in judged_batches(decoder, reader):
            follower.observe(decoded)
            frames = watch.take()
            if watch.message is None:
                continue
            take(decoded, frames, watch.message)
            if watch.message.is_done:
                break
        follower.finish()
        tell_limits(reader.name, follower, decoder)
    if watch.message is None:
        there = f"it has {follower.messages}" if follower.messages else "it has none"
        raise MxwireError(f"{path}: no message {number}: {there} (mxwire messages lists them)")
    return watch.message


def tell_limits(path: str, follower: Follower, decoder: Decoder) -> None:
    """What a reader of the output has to know."""
    tell_notes(path, decoder)
    if follower.cooked:
        note(f"{path}: {COOKED[0].lower()}{COOKED[1:].rstrip('.')}")
    if follower.malformed:
        note(f"{path}: {count_of(follower.malformed, 'malformed frame')} left out (mxwire decode shows them)")
    if follower.evicted:
        note(f"{path}: {count_of(follower.evicted, 'message')} abandoned, as too many were in flight at a time")
