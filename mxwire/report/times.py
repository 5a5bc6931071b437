"""Text forms of times."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from mxwire.units import SECOND

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def seconds_text(nanoseconds: int, digits: int = 9) -> str:
    """Seconds with ``digits`` decimals, truncated and right-aligned."""
    sign = "-" if nanoseconds < 0 else ""
    whole, rest = divmod(abs(nanoseconds), SECOND)
    return f"{sign}{whole}.{f'{rest:09}'[:digits]}".rjust(digits + 5)


def seconds_texts(nanoseconds: NDArray[np.int64], digits: int = 9) -> list[str]:
    """The texts of :func:`seconds_text` for several durations."""
    template, *columns = seconds_columns(nanoseconds, digits)
    return list(map(template.__mod__, zip(*columns, strict=True)))


def seconds_columns(nanoseconds: NDArray[np.int64], digits: int = 9) -> tuple[str, *tuple[list[Any], ...]]:
    """A template of the operator ``%`` for the texts of :func:`seconds_text`, and its values for several durations."""
    if len(nanoseconds) and int(nanoseconds.min()) < 0:
        return "%s", [seconds_text(each, digits) for each in nanoseconds.tolist()]
    whole, rest = nanoseconds // SECOND, nanoseconds % SECOND
    return f"%4d.%0{digits}d", whole.tolist(), (rest // 10 ** (9 - digits)).tolist()


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
