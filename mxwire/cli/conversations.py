"""``mxwire conversations``: pairs of endpoints, with their sessions, connects and totals."""

from __future__ import annotations

import click

from mxwire.cli import options as shared
from mxwire.ethernet import mac_bytes

EPILOG = """\b
A conversation is between two opened endpoints, identified by their session ids: a reopened endpoint starts another one.
Retransmits include re-requests; duplicates are frames that the network or the capture doubled.

\b
Examples:
  mxwire conversations trace.pcap
  mxwire conversations -i eth0 --duration 10       the frames that pass an interface in 10 s
  mxwire conversations --endpoint 3 --json trace.pcap | jq .connects
"""


@click.command(epilog=EPILOG)
@shared.input_options
@shared.json_option("JSON Lines: one object per conversation.")
@shared.host_option("Only conversations of this address")
@shared.endpoint_option("Only conversations of this endpoint number.")
@shared.decoding_options
def command(
    inputs: shared.Inputs, as_json: bool, hosts: tuple[str, ...], endpoint: int | None, decoding: shared.DecodingOptions
) -> None:
    """List the conversations of captures: their endpoints with sessions, connects, and what each endpoint sent."""
    from mxwire.analysis.conversations import Follower
    from mxwire.cli.reading import Failures, judged_batches, note_messages, refuse_empty
    from mxwire.report.document import Paragraph, show
    from mxwire.report.json_line import json_line
    from mxwire.report.messages import conversation_blocks, conversation_record
    from mxwire.report.pointers import SEE_MESSAGES

    wanted = {int.from_bytes(mac_bytes(each), "big") for each in hosts}
    failures = Failures()
    for name in inputs.names:
        with failures.noted(), inputs.open(name, decoding.ethertypes) as reader:
            decoder, follower = decoding.decoder(), Follower()
            for decoded in judged_batches(decoder, reader):
                follower.observe(decoded)
            follower.finish()
            refuse_empty(reader, decoder)
            chosen = [
                each
                for each in follower.conversations
                if (not wanted or not wanted.isdisjoint(flow.address for flow in each.flows))
                and (endpoint is None or endpoint in [flow.endpoint for flow in each.flows])
            ]
            if as_json:
                several = {"file": reader.name} if len(inputs.files) > 1 else {}
                for each in chosen:
                    record = several | conversation_record(each, follower)
                    click.echo(json_line(record, decoder.start_ns))
            else:
                blocks = conversation_blocks(reader.name, follower, chosen, decoder.start_ns or 0)
                named = chosen and follower.messages and not inputs.live
                show([*blocks, Paragraph(SEE_MESSAGES)] if named else blocks)
            note_messages(reader.name, follower, decoder)
    failures.end()
