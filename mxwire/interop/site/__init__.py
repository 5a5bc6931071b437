"""The report as static pages: the matrix, a page for each cell and each case, nothing from elsewhere."""

from __future__ import annotations

from mxwire.interop.site.write import write_site

__all__ = ["write_site"]
