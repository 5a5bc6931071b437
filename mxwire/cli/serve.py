"""``mxwire serve``: an endpoint that answers, for tests and measurements of others."""

from __future__ import annotations

import click

from mxwire.cli.live import MEETING_POINT, Live, live_options
from mxwire.cli.options import Amount
from mxwire.wire.numbers import DEFAULT_KEY

EPILOG = """\b
It ends with Ctrl-C, and says then what it has served. A client that does not take its answers gets no more of them
while 1024 messages or 256 MiB of it are on their way.
--profile is what kind of host we are: open-mx, open-mx-1.1, native-mx …; see mxwire simulate --help.

\b
Examples:
  mxwire serve --echo -i veth0 --name alpha:0            send every message back to its sender
  mxwire serve --sink -i eth0 --endpoint 3 --key 0x42    take everything, and count it
  mxwire serve -i eth0 --endpoint 1 --endpoint 2         several endpoints
  mxwire serve -i eth0 --json | jq 'select(.event=="summary")'

\b
Exit code: 130 after Ctrl-C or SIGTERM, 2 if it cannot work, or cannot go on.
"""


class Number(click.ParamType):  # type: ignore[type-arg]
    """A number up to a limit, decimal or with 0x."""

    name = "number"

    def __init__(self, maximum: int) -> None:
        self._maximum = maximum

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number."""
        try:
            number = value if isinstance(value, int) else int(str(value), 0)
        except ValueError:
            number = -1
        if not 0 <= number <= self._maximum:
            self.fail(f"{value!r} is no number from 0 to {self._maximum:#x}", param, ctx)
        return number


@click.command(epilog=EPILOG)
@live_options
@click.option("--echo/--sink", default=True, help="Send messages back, or only take and count them.  [default: echo]")
@click.option(
    "--endpoint",
    "endpoints",
    type=click.IntRange(0, 255),
    multiple=True,
    metavar="N",
    help=f"Our endpoint; may be repeated.  [default: {MEETING_POINT}]",
)
@click.option(
    "--key", type=Number(0xFFFF_FFFF), default=DEFAULT_KEY, metavar="K", help="Key of connects.  [default: 0x12345678]"
)
@click.option(
    "--every",
    type=Amount(0.1),
    default=10.0,
    show_default=True,
    metavar="S",
    help="How often it says what it has served; on a terminal that is always shown.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def command(live: Live, echo: bool, endpoints: tuple[int, ...], key: int, every: float, as_json: bool) -> None:
    """Open an endpoint that answers whoever connects and sends to it, until Ctrl-C."""
    from mxwire.cli.serving import serve
    from mxwire.errors import MxwireError

    twice = sorted(each for each in set(endpoints) if endpoints.count(each) > 1)
    if twice:
        raise MxwireError(f"--endpoint {twice[0]} is given twice: an endpoint is opened once")
    serve(live, echo=echo, endpoints=endpoints or (MEETING_POINT,), key=key, every=every, as_json=as_json)
