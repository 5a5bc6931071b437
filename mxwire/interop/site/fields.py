"""The decoded fields of frames, so that what frames of a layout have in common is written once for the whole site."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, Final

from mxwire.interop.site.exchange import Seen
from mxwire.report.tree import FieldLine

_BYTES_SHOWN: Final = 16
"""Of data and padding."""
_FIXED: Final = 16
"""Fields up to this size are shown with all their bytes."""


Described = tuple[int, int, str, str, bool]
"""Offset, size, name, meaning and definedness of a field."""


class FieldTables:
    """Gathers the layouts that the frames of all pages refer to."""

    def __init__(self) -> None:
        self.layouts: dict[str, tuple[Described, ...]] = {}
        """By names that are made of what they hold, so that pages made apart fit together."""
        self._names: dict[tuple[Described, ...], str] = {}

    def name(self, layout: tuple[Described, ...]) -> str:
        """The name of a layout."""
        name = self._names.get(layout)
        if name is None:
            name = self._names[layout] = blake2b(repr(layout).encode(), digest_size=4).hexdigest()
            self.layouts[name] = layout
        return name


class Records:
    """The fields of the frames of one page, small: texts that they share are written once too."""

    def __init__(self, tables: FieldTables) -> None:
        self._tables = tables
        self._texts: dict[str, int] = {}
        self._frames: dict[int, list[Any]] = {}

    def add(self, seen: Seen) -> None:
        """Take the fields of a frame."""
        lines = seen.lines()
        fixed = 0
        while fixed < len(lines) and _is_fixed(lines[fixed]):
            fixed += 1
        layout = tuple((each.offset, each.size, each.name, each.meaning, each.defined) for each in lines[:fixed])
        rest = [
            [each.offset, each.size, each.name, each.text, each.raw[:_BYTES_SHOWN].hex(), self._place(each.meaning)]
            for each in lines[fixed:]
        ]
        raw = "".join(each.raw.hex() for each in lines[:fixed])
        self._frames[seen.number] = [
            self._tables.name(layout),
            raw,
            [self._place(each.text) for each in lines[:fixed]],
            rest,
        ]

    def as_object(self) -> dict[str, Any]:
        """``texts``, and ``frames`` by number: ``[layout, bytes, places of texts, rest]`` each.

        ``bytes`` are those of the fields of the layout, in hexadecimal. The rest are fields that are as long as they
        like: ``[offset, size, name, text, bytes, place of the meaning]`` each.
        """
        return {"texts": list(self._texts), "frames": self._frames}

    def _place(self, text: str) -> int:
        return self._texts.setdefault(text, len(self._texts))


def _is_fixed(line: FieldLine) -> bool:
    """Whether the field is whole, and as long in each frame of the layout."""
    return line.size <= _FIXED and len(line.raw) == line.size and line.name != "padding"
