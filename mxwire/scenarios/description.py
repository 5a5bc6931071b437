"""Descriptions of frames and expectations in the words of the language."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Final

from mxwire.scenarios.conditions import shown
from mxwire.scenarios.expression import Value
from mxwire.scenarios.steps import ExpectStep
from mxwire.wire.codec import Malformed
from mxwire.wire.packets import Frame

_NOT_SAID: Final = {"dst_mac", "src_mac", "ethertype", "ptype"}
LONGEST: Final = 160


def packet_of(frame: Frame | Malformed) -> str:
    """Return the packet name of a frame."""
    return "a malformed frame" if isinstance(frame, Malformed) else frame.layout_name.upper()


def field_values(frame: Frame, names: Iterable[str]) -> dict[str, Value]:
    """Return the values of fields, by attribute; ``match`` combines both halves of the match information."""
    found: dict[str, Value] = {}
    for name in names:
        if name == "match":
            found[name] = getattr(frame, "match_a", 0) << 32 | getattr(frame, "match_b", 0)
        else:
            value = getattr(frame, name, None)
            found[name] = 0 if value is None else value
    return found


def described(frame: Frame | Malformed) -> str:
    """Describe a frame in one line."""
    if isinstance(frame, Malformed):
        return f"a malformed frame ({frame.reason.text})"
    fields = [
        f"{each.name}={shown(value)}"
        for each in dataclasses.fields(frame)
        if each.name not in _NOT_SAID and (value := getattr(frame, each.name)) is not None
    ]
    text = f"{packet_of(frame)} {' '.join(fields)}"
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def expectation_text(step: ExpectStep, conditions: Mapping[str, str]) -> str:
    """Describe the frame that a step expects, with values in place of names."""
    words = [step.packet, *(f"{name}={value}" for name, value in conditions.items())]
    if step.after:
        words.append(f"after {step.after / 1e6:g} ms")
    if step.within is not None:
        words.append(f"within {step.within / 1e6:g} ms")
    return " ".join(words)
