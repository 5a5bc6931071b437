"""What the options of ``mxwire replay`` say, where frames are sent as they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from mxwire.analysis.selection import FrameRange, FrameSelection
from mxwire.errors import MxwireError
from mxwire.ethernet import ETHERTYPE_MXOE
from mxwire.replay.raw import AsRecorded, AtTopSpeed, Pace, pace_at
from mxwire.wire.dialect import Dialect, dialect_or_auto

_LINGER: Final = 0.2


@dataclass(frozen=True)
class Wishes:
    """What the options say."""

    file: str
    interface: str | None
    selection: FrameSelection
    pace: Callable[[], Pace]
    loop: int
    mapped: tuple[str, ...]
    ethertype: int
    new_ethertype: int | None
    pad: bool
    dry_run: bool
    linger: float
    dialect: Dialect | None
    as_json: bool

    @classmethod
    def of(
        cls,
        *,
        interface: str | None,
        speed: float | None,
        rate: str | None,
        top_speed: bool,
        loop: int | None,
        types: tuple[str, ...],
        frames: list[FrameRange] | None,
        hosts: tuple[str, ...],
        endpoints: tuple[str, ...],
        ethertype: int | None,
        linger: float | None,
        dialect: str,
        dry_run: bool,
        **rest: Any,
    ) -> Wishes:
        """Understand the options; raises :class:`~mxwire.errors.MxwireError` for what is not possible."""
        if interface is None and not dry_run:
            raise MxwireError("say where to send with -i IF, like -i eth0; --dry-run only says what would be sent")
        if loop == 0 and dry_run:
            raise MxwireError("--dry-run with --loop 0 would never end: say how often")
        return cls(
            interface=interface,
            selection=FrameSelection.of(types, hosts, frames, _endpoint(endpoints)),
            pace=_pace(speed, rate, top_speed),
            loop=1 if loop is None else loop,
            ethertype=ETHERTYPE_MXOE if ethertype is None else ethertype,
            linger=_LINGER if linger is None else linger,
            dialect=dialect_or_auto(dialect),
            dry_run=dry_run,
            **rest,
        )


def _endpoint(given: tuple[str, ...]) -> int | None:
    if not given:
        return None
    if len(given) > 1 or not given[0].isdecimal() or int(given[0]) > 0xFF:
        raise MxwireError(f"--endpoint {' '.join(given)}: give one number from 0 to 255 (several go only with --as)")
    return int(given[0])


def _pace(speed: float | None, rate: str | None, top_speed: bool) -> Callable[[], Pace]:
    if (speed is not None) + (rate is not None) + top_speed > 1:
        raise MxwireError("--speed, --rate and --top-speed are different paces: choose one")
    if rate is not None:
        pace_at(rate)
        return lambda: pace_at(rate)
    return AtTopSpeed if top_speed else lambda: AsRecorded(1.0 if speed is None else speed)
