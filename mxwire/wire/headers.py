"""Structured dtypes of packet headers, for reading and building many frames of one layout at once."""

from __future__ import annotations

from functools import cache

import numpy as np

from mxwire.wire.layout import Field, Layout


@cache
def header_type(layout: Layout, *, swapped: bool = False, size: int | None = None) -> np.dtype[np.void]:
    """A structured dtype with every defined field of ``layout`` by specification name.

    Integers are in network order, or for ``swapped`` as a little-endian sender writes them; addresses are arrays of six
    bytes. An element has ``size`` bytes, by default ``layout.header_end``. In an array made with :func:`numpy.zeros`,
    undefined bytes are zero.
    """
    return np.dtype(
        {
            "names": [each.name for each in layout.defined],
            "formats": [_format(each, swapped) for each in layout.defined],
            "offsets": [each.offset for each in layout.defined],
            "itemsize": layout.header_end if size is None else size,
        }
    )


def _format(field: Field, swapped: bool) -> str:
    if field.kind == "mac":
        return f"{field.size}u1"
    return f"{'<' if swapped and field.sender_order else '>'}u{field.size}"
