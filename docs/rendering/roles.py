"""Docstrings for mkdocstrings: roles of Sphinx, which editors and ``pydoc`` show literally, become code."""

from __future__ import annotations

import re
from typing import Any

import griffe

_ROLE = re.compile(r":\w+:`(?:([^`<>]+?)\s+<[^`<>]+>|~?(?:[\w.]+\.)?(\w+))`")


class Roles(griffe.Extension):
    """An extension that replaces ``:class:`~mxwire.errors.MxwireError```  by the last name or own text, as code."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring of one object."""
        if obj.docstring:
            obj.docstring.value = _ROLE.sub(lambda found: f"`{found[1] or found[2]}`", obj.docstring.value)
