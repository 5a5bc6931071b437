"""Requirements: limits that a result must reach, as users write them for exit codes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mxwire.errors import MxwireError

_FORM: Final = re.compile(
    r"(?:(?P<size>\d+)\s*:\s*)?(?P<test>>=|<=)\s*(?P<value>\d+(?:\.\d+)?)\s*(?P<prefix>[kMG]?)(?P<unit>%|/s|bit/s|us|ms|s|)",
    re.ASCII,
)
_PREFIXES: Final = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9}
_TIMES: Final = {"us": 1e3, "ms": 1e6, "s": 1e9}
_KEYS: Final = {"%": "percent", "/s": "frames_per_second", "bit/s": "bits_per_second", "": "count"}
"""The value of a result that a unit is compared with; times are compared with ``p99_ns``."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One limit, for the results of one frame length or of all."""

    text: str
    key: str
    """Name of the value in the record of a result."""
    at_least: bool
    value: float
    size: int | None = None

    @classmethod
    def parse(cls, text: str) -> Requirement:
        """Parse ``4128:>=95%``, ``>=50k/s``, ``60:>=1Gbit/s``, ``<=20us`` or ``>=500`` (frames of a burst).

        Raises :class:`~mxwire.errors.MxwireError` for any other form.
        """
        found = _FORM.fullmatch(text.strip())
        if found is None or (found["prefix"] and found["unit"] in ("%", *_TIMES)):
            raise MxwireError(
                f"--require {text!r}: use a form like 4128:>=95%, >=50k/s, 60:>=1Gbit/s, <=20us or >=500 (frames)"
            )
        unit = found["unit"]
        value = float(found["value"]) * _PREFIXES[found["prefix"]] * _TIMES.get(unit, 1.0)
        size = None if found["size"] is None else int(found["size"])
        return cls(text, _KEYS.get(unit, "p99_ns"), found["test"] == ">=", value, size)

    def concerns(self, result: Mapping[str, Any]) -> bool:
        """Return whether the requirement is about a result."""
        return self.size is None or self.size == result.get("size")

    def failure(self, result: Mapping[str, Any]) -> str | None:
        """Return the reason why a result does not meet the requirement; None if it does."""
        found = result.get(self.key)
        where = f"{result['size']} bytes: " if result.get("size") is not None else ""
        if found is None:
            return f"{where}{self.text} cannot be judged: this result has no such value"
        if found >= self.value if self.at_least else found <= self.value:
            return None
        return f"{where}{_shown(self.key, found)} does not meet {self.text}"


def check_sizes(requirements: tuple[Requirement, ...], sizes: Sequence[int]) -> None:
    """Raise :class:`~mxwire.errors.MxwireError` if a requirement is about a length that is not tested."""
    for each in requirements:
        if each.size is not None and each.size not in sizes:
            raise MxwireError(
                f"--require {each.text!r}: {each.size} bytes are not tested, only {', '.join(map(str, sizes))}"
            )


def _shown(key: str, value: float) -> str:
    units = {"percent": (1.0, "%"), "frames_per_second": (1.0, "/s"), "bits_per_second": (1.0, "bit/s")}
    divisor, unit = (1e3, " us") if key == "p99_ns" else units.get(key, (1.0, ""))
    return f"{value / divisor:,.6g}{unit}"


def failures(requirements: tuple[Requirement, ...], results: list[dict[str, Any]]) -> list[str]:
    """Return all requirements that are not met, or that no result concerns, each as a line."""
    found = []
    for each in requirements:
        concerned = [result for result in results if each.concerns(result)]
        if not concerned:
            found.append(f"{each.text}: there is no result for it")
        found += [text for result in concerned if (text := each.failure(result)) is not None]
    return found
