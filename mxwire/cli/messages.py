"""``mxwire messages``: the messages of captures, and how each ended; or their conversations."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from mxwire.cli import options as shared
from mxwire.cli.capture_set import CaptureSet, OpenCapture, prepare_dataset, print_results
from mxwire.cli.conflicts import conflicts, requires
from mxwire.cli.filters import FilterOptions
from mxwire.cli.group import command_with
from mxwire.cli.option_class import group, option, options_class
from mxwire.cli.option_groups import DecodingOptions, Inputs, WorkerOptions
from mxwire.cli.reading import (
    followed,
    followed_groups,
    is_live,
    judged_batches,
    note_messages,
    refuse_empty,
    refuse_overwriting,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mxwire.report.conversations import ListedConversations
    from mxwire.report.message_output import MessageOutput


@conflicts("--to", "--json", error="--to writes a table: omit --json")
@requires("--piece", one_of=("--on",), error="--piece divides captures among workers: add --on local")
@conflicts(
    "--by conversation",
    "--to",
    "--on",
    "--incomplete",
    error="--by conversation lists totals: omit --to, --on and --incomplete",
)
@options_class
class MessagesOptions:
    """The options of mxwire messages."""

    inputs: Inputs = group(Inputs)
    as_json: bool | str = shared.full_json_option("JSON Lines: one object per message.")
    target: Path | None = shared.set_table_option
    workers: WorkerOptions = group(WorkerOptions)
    piece: float = shared.piece_option
    filters: FilterOptions = group(FilterOptions)
    by: str = option(
        "List the messages, or the conversations with their totals.", "--by [message|conversation]", default="message"
    )
    incomplete: bool = shared.flag_option("Only messages that failed, or were only partly captured.", "--incomplete")
    decoding: DecodingOptions = group(DecodingOptions)


@command_with(MessagesOptions)
def command(options: MessagesOptions) -> None:
    """List the messages of captures: TINY, SMALL, MEDIUM and large ones (RNDV), each once, regardless of
    retransmissions.

    Filters for single frames (--type, --frames, --between, --flag, --where) select the messages of which at least one
    frame meets all of them. With --by conversation, they select the conversations of which at least one message meets
    them; the totals are those of the whole conversation.

    With --on, many captures are analysed by several processes into one partitioned table, the folder of --to. A message
    that continues in the next file of a ring (capture -C or -G) is followed there. A large capture is divided among the
    processes by pairs of hosts.
    """
    from mxwire.cli.notes import note, wrote

    captures = CaptureSet(
        options.inputs, options.filters, options.decoding, options.workers, piece=round(options.piece * 1e6)
    )
    if options.by == "conversation":
        _list_conversations(captures, options.inputs, bool(options.as_json), options.filters)
        return
    if captures.merges:
        folder = prepare_dataset(options.target, "messages", options.workers)
        rows = sum(counts[0] for counts, _ in captures.run(partial(_write_part, folder, options)))
        wrote(rows, "message", str(options.target), what=f"{captures.title}, ")
        captures.end()
        return
    with ExitStack() as stack:
        output = _output(options, stack)
        seen = sum(counts[1] for counts, _ in captures.run(partial(_list_messages, output, options)))
        output.end()
    if options.target is not None and (output.shown or not captures.failed):
        wrote(output.shown, "message", options.target)
    if seen and not output.shown and not captures.failed:
        note("no message matches the selection")
    captures.end()


def _list_messages(output: MessageOutput, options: MessagesOptions, capture: OpenCapture) -> Iterator[Sequence[int]]:
    """Output the messages of a capture, and yield the number of those that are shown, and of all."""
    from mxwire.analysis.conversations import Follower
    from mxwire.analysis.selection import MessageSelector
    from mxwire.report.message_output import MessageText

    selector, before = MessageSelector(capture.selection), output.shown
    each = options.incomplete or capture.selection.is_limited or is_live(capture.source)
    text = output if isinstance(output, MessageText) and output.takes_rows and not each else None
    own = None if capture.part is None else capture.part.own
    follower = Follower(marks=selector.needs_marks, rows=text is not None, own=own)

    def begin() -> None:
        if output.shown == before:
            names = capture.names if options.filters.by_name else None
            output.begin(capture.name, capture.start_ns or 0, names)

    if text is not None:
        for group in followed_groups(follower, capture.decoder, capture.source, selector):
            if len(group):
                begin()
                text.show_group(group, follower.names)
                output.shown += len(group)
    else:
        for message in followed(follower, capture.decoder, capture.source, streams=output.streams, selector=selector):
            if message.is_incomplete or not options.incomplete:
                begin()
                output.show(message, follower.names)
                output.shown += 1
    refuse_empty(capture.source, capture.decoder, capture.selection)
    yield output.shown - before, follower.messages


def _write_part(folder: Path, options: MessagesOptions, capture: OpenCapture) -> Iterator[Sequence[int]]:
    """Write the messages of a capture into its part of the data set."""
    from mxwire.analysis.dataset import DatasetPart
    from mxwire.report.message_output import MessagePart

    with DatasetPart(folder, capture.name, "start_ns", capture.part) as part:
        output = MessagePart(part, capture.place_of)
        yield from _list_messages(output, options, capture)
        output.end()


def _list_conversations(captures: CaptureSet, inputs: Inputs, as_json: bool, filters: FilterOptions) -> None:
    """List the conversations of captures: their endpoints with sessions, connects, and what each endpoint sent."""
    from mxwire.report.conversations import conversation_blocks
    from mxwire.report.document import Paragraph, show
    from mxwire.report.host_labels import labelled
    from mxwire.report.pointers import SEE_MESSAGES

    for listed, origin in captures.run(partial(_conversations, captures.selection.is_limited)):
        if as_json:
            several = {"file": listed.file} if len(inputs.files) > 1 else {}
            print_results(listed.conversations, origin.start_ns, **several)
            continue
        blocks = conversation_blocks(listed)
        if filters.by_name:
            blocks = [*labelled(blocks, origin.names)]
        named = listed.conversations and listed.messages and not inputs.live
        show([*blocks, Paragraph(SEE_MESSAGES)] if named else blocks)
    captures.end()


def _conversations(limited: bool, capture: OpenCapture) -> Iterator[ListedConversations]:
    """Yield the conversations of a capture."""
    from mxwire.analysis.conversations import Follower
    from mxwire.analysis.selection import ConversationSelector
    from mxwire.cli.notes import note
    from mxwire.report.conversations import ConversationSummary, ListedConversations

    selector, decoder = ConversationSelector(capture.selection), capture.decoder
    follower = Follower(marks=selector.needs_marks)
    for decoded in judged_batches(decoder, capture.source):
        completed = follower.observe(decoded)
        selector.observe(decoded, follower.take_marks, decoder.start_ns)
        selector.note(completed)
    selector.note(follower.finish())
    refuse_empty(capture.source, decoder, capture.selection)
    known = [each for each in follower.conversations if not each.is_stray]
    chosen = [ConversationSummary.of(each, follower) for each in known if selector.takes_conversation(each)]
    if limited and not chosen:
        note(f"{capture.name}: no conversation matches the selection")
    yield ListedConversations(
        capture.name,
        decoder.start_ns or 0,
        chosen,
        follower.messages,
        follower.forgotten_conversations,
        follower.cooked,
    )
    note_messages(capture.name, follower, decoder)


def _output(options: MessagesOptions, stack: ExitStack) -> MessageOutput:
    from mxwire.report.message_output import MessageJson, MessageListing, MessageTableFile

    files, target = options.inputs.files, options.target
    if target is not None:
        from mxwire.analysis.message_table import MessageTable

        refuse_overwriting(files, target)
        return MessageTableFile(stack.enter_context(MessageTable(target)))
    if options.as_json:
        return MessageJson(several=len(files) > 1, full=options.as_json == "full")
    return MessageListing(several=len(files) > 1, live=options.inputs.live)
