"""The frames seen, and the deviations among them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .frames import Frame

Write = Callable[[dict[str, Any]], None]


def _plain(value: Any) -> Any:
    return value.hex(":") if isinstance(value, bytes) else value


class Journal:
    """Yields one dictionary per entry, ready for JSON. ``deviations`` has those that deviate from the examples."""

    def __init__(self, write: Write) -> None:
        self._write = write
        self.deviations: list[dict[str, Any]] = []

    def note(self, event: str, **what: Any) -> None:
        self._write({"event": event, **{name: _plain(value) for name, value in what.items()}})

    def saw(self, frame: Frame) -> None:
        hidden = ("ethertype", "ptype", "dst_mac", "front_zeros", "back_zeros")
        self.note("saw", kind=frame.kind, **{name: value for name, value in frame.fields.items() if name not in hidden})

    def deviation(self, subject: str, expected: Any, found: Any) -> None:
        entry = {"deviation": subject, "expected": _plain(expected), "found": _plain(found)}
        self.deviations.append(entry)
        self._write(entry)

    def expect(self, subject: str, expected: Any, found: Any) -> bool:
        """Return whether it is as expected; record a deviation if not."""
        if found == expected:
            return True
        self.deviation(subject, expected, found)
        return False

    def expect_one_of(self, subject: str, expected: Any, found: Any) -> bool:
        """Return whether it is among the expected values; record a deviation if not."""
        if found in expected:
            return True
        self.deviation(subject, f"one of {list(expected)}", found)
        return False

    def expect_fields(self, frame: Frame, **expected: Any) -> bool:
        """Return whether the fields are as expected; record a deviation for each that is not."""
        found = [self.expect(f"{frame.kind}.{name}", value, frame[name]) for name, value in expected.items()]
        return all(found)
