"""Hypothesis strategies for frames, derived from the layouts."""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from mxwire.wire.dialect import MXOE, Dialect, omx
from mxwire.wire.layout import Field, Layout
from mxwire.wire.numbers import SMALL_MAXIMUM, TINY_MAXIMUM
from mxwire.wire.packets import FRAME_CLASSES, Frame

from .support import layouts

relaxed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
"""For all property tests here: a busy machine is not a failure."""

DIALECTS = (MXOE, omx(9000), omx(4096), omx(1500), omx(9000, "N3"), omx(9000, "N2"))
_CLASSES = {each.__name__: each for each in FRAME_CLASSES}

_VALUES = {
    ("raw_omxoed", "nic_id_hi"): st.integers(0, 0xFFFF),
    ("connect_request", "length"): st.integers(16, 255),
    ("connect_request", "is_reply"): st.just(0),
    ("connect_reply", "length"): st.integers(16, 255),
    ("connect_reply", "is_reply"): st.integers(1, 255),
    ("rndv", "length"): st.integers(8, 0xFFFF),
}
"""Fields whose value is not free: those that a receiver checks, and those that distinguish two layouts."""


def frames(dialect: Dialect, layout_name: str | None = None) -> st.SearchStrategy[Frame]:
    """Frames that a receiver of the dialect would not call malformed, with any values in their fields."""
    names = [layout_name] if layout_name else sorted(layouts(dialect))
    return st.sampled_from(names).flatmap(lambda name: _frame(name, dialect))


def conversations() -> st.SearchStrategy[tuple[Dialect, Frame]]:
    """A dialect and a frame in it."""
    return st.sampled_from(DIALECTS).flatmap(_in_dialect)


@cache
def _in_dialect(dialect: Dialect) -> st.SearchStrategy[tuple[Dialect, Frame]]:
    return st.tuples(st.just(dialect), frames(dialect))


@cache
def _frame(layout_name: str, dialect: Dialect) -> st.SearchStrategy[Frame]:
    """Made once per layout: hypothesis validates each new strategy."""
    layout = layouts(dialect)[layout_name]
    frame_class = _CLASSES[layout.format.frame_class]
    values = {each.attribute: _value(layout, each) for each in layout.defined}
    absent = {each.name for each in dataclasses.fields(frame_class)} - set(values)
    payload = layout.payload
    if payload is None:
        return st.builds(frame_class, **values, **{name: st.none() for name in absent})
    absent.discard(payload.attribute)

    def with_payload(fixed: dict[str, Any], data: bytes) -> Frame:
        length = {payload.length_field: len(data)} if payload.length_field else {}
        return frame_class(**(fixed | length), **dict.fromkeys(absent), **{payload.attribute: data})

    made = st.builds(with_payload, st.fixed_dictionaries(values), _data(layout, dialect))
    return made.filter(lambda frame: not _is_like_an_announcement(frame)) if layout.name == "raw" else made


def _value(layout: Layout, each: Field) -> st.SearchStrategy[Any]:
    if each.kind == "mac":
        return st.binary(min_size=6, max_size=6)
    if each.name == "ptype":
        return st.just(int(layout.packet_type))
    return _VALUES.get((layout.name, each.name), st.integers(0, 256 ** (each.size or 0) - 1))


def _data(layout: Layout, dialect: Dialect) -> st.SearchStrategy[bytes]:
    most = {
        "tiny": TINY_MAXIMUM,
        "small": SMALL_MAXIMUM,
        "host_reply": 255,
        "raw": 1024 - 17,
        "medium": dialect.receive_slot,
        "pull_reply": dialect.reply_payload,
    }[layout.name]
    return st.binary(max_size=min(most, 100)) | st.sampled_from([1, most - 1, most]).map(lambda size: b"\xa5" * size)


def _is_like_an_announcement(frame: Any) -> bool:
    """Return whether a RAW frame has the contents of an announcement, and so is one."""
    return len(frame.opaque) == 64 - 17 and not any(frame.opaque[:17]) and not any(frame.opaque[27:])
