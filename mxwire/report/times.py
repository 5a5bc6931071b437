"""Times as people read them, exact to the nanosecond."""

from __future__ import annotations

from datetime import UTC, datetime

from mxwire.units import SECOND


def seconds_text(nanoseconds: int, digits: int = 9) -> str:
    """Nanoseconds as seconds with so many digits behind the point, cut off, aligned to the right."""
    sign = "-" if nanoseconds < 0 else ""
    whole, rest = divmod(abs(nanoseconds), SECOND)
    return f"{sign}{whole}.{f'{rest:09}'[:digits]}".rjust(digits + 5)


def time_text(timestamp_ns: int) -> str:
    """A time stamp as date and time, UTC; as plain seconds where the calendar does not reach."""
    whole, rest = divmod(timestamp_ns, SECOND)
    try:
        date = datetime.fromtimestamp(whole, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return seconds_text(timestamp_ns)
    return f"{date}.{rest:09}"


def day_text(timestamp_ns: int, digits: int) -> str:
    """The time of the day of a time stamp, UTC, with so many digits behind the point."""
    whole, rest = divmod(timestamp_ns, SECOND)
    of_day = whole % 86_400
    return f"{of_day // 3600:02}:{of_day // 60 % 60:02}:{of_day % 60:02}.{f'{rest:09}'[:digits]}"


def duration_text(nanoseconds: float) -> str:
    """A short time in milliseconds, exact to the microsecond: ``0.123 ms``."""
    return f"{nanoseconds / 1_000_000:.3f} ms"
