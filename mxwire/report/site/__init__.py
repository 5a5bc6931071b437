"""Pages of captures: of a user's capture, and of the cells of an interoperability matrix.

``pages.py`` has the templates and the parts that all pages share, ``capture_site.py`` the report of captures,
``ladder_drawing.py`` draws exchanges, and ``graphs.py`` has the data of the graphs and of the table of messages. The
pages need no network: their scripts and styles are copied beside them, from ``static/`` (``site.js``, ``graphs.js``)
and Bokeh.
"""

from __future__ import annotations

from mxwire.report.site.capture_site import write_report

__all__ = ["write_report"]
