"""``mxwire conversations``: pairs of endpoints, with their sessions, connects and totals."""

from __future__ import annotations

import click

from mxwire.cli.options import Inputs, dialect_option, ethertype_option, input_options
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
@input_options
@click.option("--json", "as_json", is_flag=True, help="JSON Lines: one object per conversation.")
@click.option(
    "--host", "hosts", metavar="MAC", multiple=True, help="Only conversations of this address; may be repeated."
)
@click.option(
    "--endpoint", metavar="N", type=click.IntRange(0, 255), help="Only conversations of this endpoint number."
)
@dialect_option
@ethertype_option
def command(
    inputs: Inputs,
    as_json: bool,
    hosts: tuple[str, ...],
    endpoint: int | None,
    dialect: str,
    ethertypes: tuple[int, ...],
) -> None:
    """List the conversations of captures: their endpoints with sessions, connects, and what each endpoint sent."""
    from mxwire.analysis.conversations import Follower
    from mxwire.cli.reading import Failures, decoder_of, judged_batches, note_messages, refuse_empty
    from mxwire.report.document import show
    from mxwire.report.json_line import json_line
    from mxwire.report.messages import conversation_blocks, conversation_record

    wanted = {int.from_bytes(mac_bytes(each), "big") for each in hosts}
    failures = Failures()
    for name in inputs.names:
        with failures.noted(), inputs.open(name, ethertypes) as reader:
            decoder, follower = decoder_of(dialect, ethertypes), Follower()
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
                show(conversation_blocks(reader.name, follower, chosen, decoder.start_ns or 0))
            note_messages(reader.name, follower, decoder)
    failures.end()
