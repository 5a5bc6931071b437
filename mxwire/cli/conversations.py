"""``mxwire conversations``: who talked to whom."""

from __future__ import annotations

import click

from mxwire.cli.inputs import Inputs, input_options
from mxwire.cli.options import dialect_option, ethertype_option
from mxwire.ethernet import mac_bytes

EPILOG = """\b
A conversation is between two endpoints in the openings that their session ids name: an endpoint that is
reopened begins another one. "retransmits" counts retransmitted frames and re-requests, "duplicates" frames
that the network or the capture doubled.

\b
Examples:
  mxwire conversations trace.pcap
  mxwire conversations -i eth0 --time 10           what passes an interface within 10 s
  mxwire conversations --endpoint 3 --json trace.pcap | jq .connects
"""


@click.command(epilog=EPILOG)
@input_options
@click.option("--json", "as_json", is_flag=True, help="One JSON object a conversation, a line each.")
@click.option("--host", "hosts", metavar="MAC", multiple=True, help="Only conversations of this address.")
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
    """List the conversations of captures: their ends with sessions, connects, and what each end sent."""
    from mxwire.analysis.conversations import Follower
    from mxwire.cli.following import decoder_of, tell_limits
    from mxwire.cli.reading import Failures, judged_batches, refuse_empty
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
            tell_limits(reader.name, follower, decoder)
    failures.end()
