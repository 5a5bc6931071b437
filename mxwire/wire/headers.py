"""Header rows: the fixed fields of many frames of one layout as a structured array, for building and reading."""

from __future__ import annotations

from functools import cache

import numpy as np

from mxwire.wire.layout import Layout


@cache
def header_type(layout: Layout) -> np.dtype[np.void]:
    """A structured type of ``layout.header_end`` bytes: every defined field in network order, by specification name.

    Addresses are arrays of six bytes. A row made with :func:`numpy.zeros` has zero in its undefined bytes.
    """
    return np.dtype(
        {
            "names": [each.name for each in layout.defined],
            "formats": ["6u1" if each.kind == "mac" else f">u{each.size}" for each in layout.defined],
            "offsets": [each.offset for each in layout.defined],
            "itemsize": layout.header_end,
        }
    )
