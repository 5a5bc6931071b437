"""Columns of text: the texts of many rows as one array of bytes, without an object per row.

A column is an array of shape (n, width) with the UTF-8 of a text per row, in which zero bytes stand for nothing,
wherever they are. So a number of any length has its place without being moved, columns are joined side by side, and
one pass removes all zero bytes (:func:`text_of`). Formatting a column takes some nanoseconds per row, the operator
``%`` takes hundreds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import repeat
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mxwire.report.times import seconds_text
from mxwire.units import SECOND
from mxwire.wire.numbers import NUMBER_MASK, SESSION_NUMBER_SHIFT

Text = NDArray[np.uint8]
"""A column, or a constant of shape (1, width)."""
_GROUP: Final = 4
"""Decimal digits that are looked up at once."""
_DIGITS: Final = np.frombuffer(b"0123456789abcdef", np.uint8)
_DECIMAL: Final = _DIGITS[np.indices((10,) * _GROUP).reshape(_GROUP, -1).T.copy()].view(np.uint32)[:, 0]
_HEXADECIMAL: Final = _DIGITS[np.indices((16, 16)).reshape(2, -1).T.copy()].view(np.uint16)[:, 0]
_CHUNK: Final = 1 << 12
"""Rows that are joined at once, which a processor's cache holds."""
_DIRECT: Final = 1 << 16
"""Numbers below it are looked up in a table; others are sorted."""


def constant(text: str) -> Text:
    """The same text in all rows."""
    # File names may contain surrogates, which UTF-8 has no bytes for.
    return np.frombuffer(text.encode(errors="replace"), np.uint8)[None]


def decimals(numbers: NDArray[Any], width: int = 1, fill: str = " ") -> Text:
    """Numbers from 0 in decimal, filled on the left up to ``width`` characters."""
    rest = values = numbers.astype(np.int64)
    greatest = int(values.max(initial=0))
    most = max(len(str(greatest)), width)
    groups = np.empty((len(rest), -(-most // _GROUP)), np.uint32)
    for place in reversed(range(groups.shape[1])):
        higher = rest // 10**_GROUP
        groups[:, place] = _DECIMAL[rest - higher * 10**_GROUP]
        rest = higher
    shown = groups.view(np.uint8)[:, -most:]
    # In most columns all numbers have the same number of digits: then none are compared.
    for digits in range(len(str(int(values.min(initial=greatest)))), most):
        filling = ord(fill) if digits < width else 0
        if filling != ord("0"):
            shown[values < 10**digits if 10**digits <= greatest else slice(None), most - 1 - digits] = filling
    return shown


def hexadecimals(numbers: NDArray[Any]) -> Text:
    """Numbers of 32 bits as 8 hexadecimal digits."""
    octets = numbers.astype(">u4").view(np.uint8)
    return _HEXADECIMAL[octets].view(np.uint8).reshape(len(numbers), 8)


def described(describe: Callable[..., object], *values: Any) -> Text:
    """The texts that ``describe`` returns for the values of each row; all but arrays are the same in all rows."""
    arrays = [each for each in values if isinstance(each, np.ndarray)]
    which: Any = slice(None)
    # Several arrays have about as many combinations as rows.
    if len(arrays) == 1:
        distinct, which = _distinct(arrays[0])
        values = tuple(distinct if isinstance(each, np.ndarray) else each for each in values)
    texts = map(describe, *(each.tolist() if isinstance(each, np.ndarray) else repeat(each) for each in values))
    return chosen(list(map(str, texts)), which)


def _distinct(numbers: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """The different numbers, and the place of that of each row among them."""
    if int(numbers.max(initial=0)) >= _DIRECT:
        distinct, which = np.unique(numbers, return_inverse=True)
        return distinct, which
    places = numbers.astype(np.intp)  # NumPy does not count unsigned integers of 64 bits.
    occurs = np.bincount(places) > 0
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[places]


def seconds_column(nanoseconds: NDArray[np.int64], digits: int = 9) -> Text:
    """The texts of :func:`seconds_text` for several durations."""
    # Only in captures with wrong order: a sign would need a column of its own.
    if len(nanoseconds) and int(nanoseconds.min()) < 0:
        return chosen([seconds_text(each, digits) for each in nanoseconds.tolist()])
    whole = nanoseconds // SECOND
    rest = (nanoseconds - whole * SECOND) // 10 ** (9 - digits)
    return beside(len(whole), decimals(whole, 4), constant("."), decimals(rest, digits, "0"))


def sequence_column(numbers: NDArray[Any]) -> Text:
    """The texts of :func:`~mxwire.wire.enums.sequence_text` for several sequence numbers."""
    session, low = numbers >> SESSION_NUMBER_SHIFT, decimals(numbers & NUMBER_MASK)
    if not session.any():
        return low
    number = beside(len(low), decimals(session), constant("/"))
    # Zero bytes vanish, and with them the prefix.
    number[session == 0] = 0
    return beside(len(low), number, low)


def chosen(texts: Sequence[str], which: NDArray[np.intp] | slice = slice(None)) -> Text:
    """The texts at the places ``which``; all of them without it."""
    table = np.array([each.encode(errors="replace") for each in texts], np.bytes_)
    rows = np.ascontiguousarray(table[which])
    return rows.view(np.uint8).reshape(len(rows), rows.itemsize)


def beside(count: int, *columns: Text) -> Text:
    """Join columns of ``count`` rows."""
    ends = np.cumsum([0, *(each.shape[1] for each in columns)])
    joined = np.empty((count, int(ends[-1])), np.uint8)
    for column, start, end in zip(columns, ends[:-1], ends[1:], strict=True):
        joined[:, start:end] = column
    return joined


def rows_of(count: int, *columns: Text) -> list[bytes]:
    """The texts of ``count`` rows, joined from columns."""
    return text_of(count, *columns).split(b"\n")[:-1]


def text_of(count: int, *columns: Text) -> bytes:
    """The texts of ``count`` rows, each with a newline, as one text: an object per row takes as long as its columns."""
    parts = (*columns, constant("\n"))
    texts = []
    for start in range(0, count, _CHUNK):
        end = min(start + _CHUNK, count)
        # Constants have one row, which is broadcast.
        octets = beside(end - start, *(each[start:end] if len(each) == count else each for each in parts))
        texts.append(octets.tobytes().translate(None, b"\0"))
    return b"".join(texts)


def extended(text: bytes, rests: Mapping[int, str]) -> bytes:
    """Append a text to some rows of :func:`text_of`, by the number of the row."""
    if not rests:
        return text
    rows = sorted(rests)
    ends = np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n"))[rows].tolist()
    parts: list[bytes] = []
    start = 0
    for row, end in zip(rows, ends, strict=True):
        parts += (text[start:end], rests[row].encode())
        start = end
    return b"".join([*parts, text[start:]])
