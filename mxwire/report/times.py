"""Times as people read them, exact to the nanosecond."""

from __future__ import annotations

from datetime import UTC, datetime


def seconds_text(nanoseconds: int) -> str:
    """Nanoseconds as seconds with nine digits, aligned to the right."""
    sign = "-" if nanoseconds < 0 else ""
    whole, rest = divmod(abs(nanoseconds), 1_000_000_000)
    return f"{sign}{whole}.{rest:09}".rjust(14)


def time_text(timestamp_ns: int) -> str:
    """A time stamp as date and time, UTC; as plain seconds where the calendar does not reach."""
    whole, rest = divmod(timestamp_ns, 1_000_000_000)
    try:
        date = datetime.fromtimestamp(whole, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return seconds_text(timestamp_ns)
    return f"{date}.{rest:09}"


def duration_text(nanoseconds: float) -> str:
    """A short time in milliseconds, exact to the microsecond: ``0.123 ms``."""
    return f"{nanoseconds / 1_000_000:.3f} ms"
