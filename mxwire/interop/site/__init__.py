"""The report as static pages: the matrix, one page per cell and per case, without external resources."""

from __future__ import annotations

from mxwire.interop.site.write import write_site

__all__ = ["write_site"]
