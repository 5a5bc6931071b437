"""Templates, and their common filters."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from mxwire.interop.result import InteropReport
from mxwire.interop.site.views import MEANINGS, SYMBOLS
from mxwire.rules import CATALOGUE

_BREAKS: Final = re.compile(r"(?<=[-:_/])(?=[^-:_/])")

_MOMENT: Final = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d)[\d:.]*(?:Z|\+00:00)")


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("mxwire.interop.site"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(breakable=_breakable, moment=_moment)
    environment.globals.update(symbols=SYMBOLS, meanings=MEANINGS, catalogue=CATALOGUE)
    return environment


def page(template: str, report: InteropReport, root: str, **values: Any) -> str:
    """Render a template; ``root`` is the path from its folder to that of the report."""
    return _environment().get_template(template).render(report=report, root=root, **values)


def _breakable(text: str) -> Markup:
    """Return a name that may be broken into lines after hyphens and similar characters."""
    return Markup("<wbr>").join(escape(each) for each in _BREAKS.split(text))


def _moment(text: str) -> str:
    """Format an ISO 8601 time for readers; return other text unchanged."""
    found = _MOMENT.fullmatch(text)
    return f"{found[1]} {found[2]} UTC" if found else text
