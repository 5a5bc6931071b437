"""The work of ``mxwire merge``: both captures are read once to be compared, and once to be written."""

from __future__ import annotations

from pathlib import Path

from mxwire.analysis.merging import Fingerprints, Plan, merged, plan
from mxwire.capture import create_capture, open_capture
from mxwire.capture.time_order import in_time_order
from mxwire.cli.reading import capture_of, refuse_twice


def compare(first: str, second: str, keep_both: bool) -> Plan:
    """Find out what the two files have in common.

    Raises :class:`~mxwire.errors.MxwireError` where they cannot be read, or do not fit together.
    """
    refuse_twice(first, second, "name the captures of two ends")
    return plan(_fingerprints(first), _fingerprints(second), keep_both=keep_both)


def _fingerprints(path: str) -> Fingerprints:
    found = Fingerprints(path)
    with capture_of(path) as reader:
        for batch in in_time_order(reader):
            found.add(batch)
    return found


def write(first: str, second: str, made: Plan, target: str) -> int:
    """Write what is to be kept; returns how many frames that were."""
    names = [f"{which}: {Path(path).name}" for which, path in (("A", first), ("B", second))]
    comment = f"{names[0]}; {names[1]}, its clock set back by {made.alignment.clock.offset_ns} ns"
    with (
        open_capture(first) as one,
        open_capture(second) as other,
        create_capture(target, format="pcapng", comment=comment) as writer,
    ):
        numbers = [writer.add_interface(name) for name in names]
        assert numbers == [0, 1]
        for each in merged(made, in_time_order(one), in_time_order(other)):
            writer.write(each.batch, interfaces=each.origin)
        return writer.frames
