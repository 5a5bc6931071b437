"""The decoded fields of frames in compact form: layouts and texts that many frames share are stored once."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, Final

from mxwire.report.exchange import ShownFrame
from mxwire.report.tree import FieldLine

_BYTES_SHOWN: Final = 16
"""Maximum number of bytes shown of data and padding."""
_FIXED: Final = 16
"""Maximum size of fields shown with all their bytes."""


LayoutRow = tuple[int, int, str, str, bool]
"""Offset, size, name, meaning of a field, and whether it is defined."""


class FieldTables:
    """Collects the layouts that frames of all pages refer to."""

    def __init__(self) -> None:
        self.layouts: dict[str, tuple[LayoutRow, ...]] = {}
        """The layouts, by names derived from their content, so that pages made by separate processes agree."""
        self._names: dict[tuple[LayoutRow, ...], str] = {}

    def name(self, layout: tuple[LayoutRow, ...]) -> str:
        """Return the name of a layout."""
        name = self._names.get(layout)
        if name is None:
            name = self._names[layout] = blake2b(repr(layout).encode(), digest_size=4).hexdigest()
            self.layouts[name] = layout
        return name


class FieldRecords:
    """The fields of the frames of one page in compact form: shared texts are stored once."""

    def __init__(self, tables: FieldTables) -> None:
        self._tables = tables
        self._texts: dict[str, int] = {}
        self._frames: dict[int, list[Any]] = {}

    def add(self, seen: ShownFrame) -> None:
        """Add the fields of a frame."""
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
        """Return ``texts``, and ``frames`` by number, each as ``[layout, bytes, indexes of texts, rest]``.

        ``bytes`` are those of the layout's fields, in hexadecimal. ``rest`` are the fields of variable length, each as
        ``[offset, size, name, text, bytes, index of the meaning]``.
        """
        return {"texts": list(self._texts), "frames": self._frames}

    def _place(self, text: str) -> int:
        return self._texts.setdefault(text, len(self._texts))


def _is_fixed(line: FieldLine) -> bool:
    """Return whether a field is complete, and equally long in each frame of the layout."""
    return line.size <= _FIXED and len(line.raw) == line.size and line.name != "padding"
