"""``mxwire messages --by conversation``: pairs of endpoints, with their sessions, connects and totals."""

from __future__ import annotations

import click

from mxwire.cli import options as shared
from mxwire.cli.filters import FilterOptions


def list_conversations(
    inputs: shared.Inputs, as_json: bool, filters: FilterOptions, decoding: shared.DecodingOptions
) -> None:
    """List the conversations of captures: their endpoints with sessions, connects, and what each endpoint sent."""
    from mxwire.analysis.conversations import Follower
    from mxwire.analysis.selection import ConversationSelector
    from mxwire.cli.notes import note
    from mxwire.cli.reading import Failures, judged_batches, note_messages, refuse_empty, selection_of
    from mxwire.report.document import Paragraph, show
    from mxwire.report.host_labels import labelled
    from mxwire.report.json_line import json_line
    from mxwire.report.messages import conversation_blocks, conversation_record
    from mxwire.report.pointers import SEE_MESSAGES

    limited = filters.selection().is_limited
    failures = Failures()
    for name in inputs.names:
        with failures.noted(), inputs.open(name, decoding.ethertypes, decoding.skip_damage) as reader:
            selector = ConversationSelector(selection_of(filters, name, decoding, live=inputs.live))
            decoder, follower = decoding.decoder(), Follower(marks=selector.needs_marks)
            for decoded in judged_batches(decoder, reader):
                completed = follower.observe(decoded)
                selector.observe(decoded, follower.take_marks, decoder.start_ns)
                selector.note(completed)
            selector.note(follower.finish())
            refuse_empty(reader, decoder, selector.selection)
            known = [each for each in follower.conversations if not each.is_stray]
            chosen = [*filter(selector.takes_conversation, known)]
            if limited and not chosen:
                note(f"{reader.name}: no conversation matches the selection")
            if as_json:
                several = {"file": reader.name} if len(inputs.files) > 1 else {}
                for each in chosen:
                    record = several | conversation_record(each, follower)
                    click.echo(json_line(record, decoder.start_ns))
            else:
                blocks = conversation_blocks(reader.name, follower, chosen, decoder.start_ns or 0)
                named = chosen and follower.messages and not inputs.live
                if filters.by_name:
                    selector.selection.names.add_all(reader.names)
                    blocks = [*labelled(blocks, selector.selection.names)]
                show([*blocks, Paragraph(SEE_MESSAGES)] if named else blocks)
            note_messages(reader.name, follower, decoder)
    failures.end()
