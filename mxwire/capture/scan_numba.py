"""The scans of ``scan``, compiled. Import this only where the speed is worth importing numba."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from mxwire.capture.scan import (
    BLOCKS_TO_STOP_AT,
    LARGEST_BLOCK_BYTES,
    RECORD_HEADER_BYTES,
    SMALLEST_BLOCK_BYTES,
    Found,
)


def _compiled(signature: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Compile at once for one signature, and keep the result on disk where numba may write."""

    def compile_function(function: Callable[..., Any]) -> Callable[..., Any]:
        try:
            return numba.njit(signature, cache=True, nogil=True)(function)  # type: ignore[no-any-return]
        except (RuntimeError, OSError):
            # No directory to write to (a read-only install without a home), or a full disk.
            return numba.njit(signature, nogil=True)(function)  # type: ignore[no-any-return]

    return compile_function
