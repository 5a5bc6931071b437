"""Options and output that the commands of ``mxwire linerate`` share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mxwire.cli import options
from mxwire.cli.notes import EventReport
from mxwire.cli.option_class import option
from mxwire.cli.progress import LiveLine

if TYPE_CHECKING:
    from mxwire.linerate.control import SinkAddress

interface_option = options.interface_option(required=True)
json_option = options.json_option("JSON Lines: one object per event.")
cpu_option = options.integer_option("Run on this CPU only.  [default: any]", "--cpu")
streams_option = options.integer_option(
    "Streams, which are counted separately.", "--streams", least=1, most=1024, default=1
)
size_option = options.integer_option("Length of the frames.  [default: full]", "--size BYTES", least=60, most=65535)


netns_option = option("Network namespace of the interface (ip netns).", "--netns NAME")
requirements_option = option(
    "Exit with 1 unless met: 4128:>=95%, >=50k/s, <=20us; may be repeated.",
    "--require LIMIT",
    "requirements",
    multiple=True,
)
sink_timeout_option = options.timeout_option(10.0, "Seconds to wait for a sink.")
repetitions_option = options.integer_option(
    "Trials that must pass at the result; for burst, searches.", "--repetitions", least=1, most=1000, default=3
)


class LineReport(EventReport):
    """Prints the beginning of a measurement, and its progress in one line of a terminal."""

    def __init__(self, as_json: bool) -> None:
        super().__init__(as_json)
        self.line = LiveLine(not as_json)

    def show_begin(self, sink: SinkAddress | None, **about: Any) -> None:
        """Print the sink and the ``machine``, one of the other fields of the JSON object."""
        from mxwire.report.linerate import machine_text, sink_text

        record = None if sink is None else sink.record()
        self.emit("begin", **about, sink=record)
        self.print(machine_text(about["machine"]))
        if record is not None:
            self.print(sink_text(record))
