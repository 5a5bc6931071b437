"""Text forms of times."""

from __future__ import annotations

from datetime import UTC, datetime

from mxwire.units import SECOND


def seconds_text(nanoseconds: int, digits: int = 9) -> str:
    """Seconds with ``digits`` decimals, truncated and right-aligned."""
    sign = "-" if nanoseconds < 0 else ""
    whole, rest = divmod(abs(nanoseconds), SECOND)
    return f"{sign}{whole}.{f'{rest:09}'[:digits]}".rjust(digits + 5)


def time_text(timestamp_ns: int) -> str:
    """Date and time in UTC; plain seconds if outside the range of the calendar."""
    whole, rest = divmod(timestamp_ns, SECOND)
    try:
        date = datetime.fromtimestamp(whole, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return seconds_text(timestamp_ns)
    return f"{date}.{rest:09}"


def day_text(timestamp_ns: int, digits: int) -> str:
    """Time of day in UTC, with ``digits`` decimals."""
    whole, rest = divmod(timestamp_ns, SECOND)
    of_day = whole % 86_400
    return f"{of_day // 3600:02}:{of_day // 60 % 60:02}:{of_day % 60:02}.{f'{rest:09}'[:digits]}"


def duration_text(nanoseconds: float) -> str:
    """Milliseconds with three decimals: ``0.123 ms``."""
    return f"{nanoseconds / 1_000_000:.3f} ms"
