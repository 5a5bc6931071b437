"""Expressions over fields: the verdict of the columns is that of a scalar evaluation over ``decode --json``."""

from __future__ import annotations

import json
import operator
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mxwire.analysis.frame_expression import EXPRESSION_FIELDS, FrameExpression
from mxwire.analysis.marks import FLAGS, FrameMarker
from mxwire.analysis.selection import Selection
from mxwire.capture import open_capture
from mxwire.errors import MxwireError
from mxwire.wire.decoder import Decoder
from tests.cli.support import CAPTURES, mxwire
from tests.examples import examples

FILES = (
    "mxoe-every-type.pcap",
    "mxoe-lossy-1M.pcap",
    "mxoe-early.pcap",
    "omx9000-lossy-1M.pcap",
    "omx1500-pingpong-small-medium.pcap",
    "mxoe-nack-mcp-session.pcap",
)
OPERATORS = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@cache
def decoded_of(name: str):
    decoder, marker = Decoder(), FrameMarker()
    with open_capture(CAPTURES / name) as reader:
        return [(each, marker.observe(each)) for each in decoder.decode_all(reader)], decoder.start_ns


@cache
def objects_of(name: str) -> list[dict[str, Any]]:
    """The objects of ``decode --json``, flattened to the names of an expression."""
    run = mxwire("decode", "--json=full", CAPTURES / name)
    return [flat(json.loads(line)) for line in run.lines]


def flat(made: dict[str, Any]) -> dict[str, Any]:
    values = {key: value for key, value in made.items() if key not in ("fields", "payload", "malformed")}
    values |= made["fields"]
    for group in ("payload", "malformed"):
        values |= {f"{group}_{key}": value for key, value in (made[group] or {}).items()}
    return values


def numbers_selected(expression: str, name: str) -> list[int]:
    batches, start_ns = decoded_of(name)
    made = FrameExpression(expression)
    return [int(n) for each, marks in batches for n in each.batch.number[made.mask(each, marks, start_ns)]]


TEXTS = ("source", "destination", "dialect", "type", "role", "hostname", "malformed_reason")
NUMBERS = [each for each in EXPRESSION_FIELDS if each not in (*TEXTS, "flags", "vlan")]


def values_of(field: str) -> list[Any]:
    found = {each.get(field) for name in FILES for each in objects_of(name)} - {None}
    return sorted(found)[:: max(1, len(found) // 40)]


@st.composite
def leaves(draw):
    """A text and the function of a JSON object that it stands for."""
    kind = draw(st.sampled_from(["number", "text", "flag", "alone", "within", "two", "flags", "chain"]))
    if kind == "flag":
        name = draw(st.sampled_from(list(FLAGS)))
        return f"flags.{name}", lambda row: name in row["flags"]
    if kind == "flags":
        name, negated = draw(st.sampled_from(list(FLAGS))), draw(st.booleans())
        return f"'{name}' {'not ' * negated}in flags", lambda row: (name in row["flags"]) != negated
    if kind == "alone":
        name = draw(st.sampled_from(EXPRESSION_FIELDS))
        return name, lambda row: bool(row.get(name))
    if kind == "text":
        name, op = draw(st.sampled_from(TEXTS)), draw(st.sampled_from(["==", "!="]))
        value = draw(st.sampled_from([*values_of(name), *(["PULL", "RAW"] if name == "type" else [])] or ["x"]))
        return f"{name} {op} {value!r}", lambda row: row.get(name) is not None and OPERATORS[op](row[name], value)
    name, op = draw(st.sampled_from(NUMBERS)), draw(st.sampled_from(list(OPERATORS)))
    value = draw(st.sampled_from([*values_of(name), 0, 255, 256, -1, 2**32, 2**70, -(2**70), 1e6, 0.5, 1e300]))
    if kind == "within":
        values, negated = (
            draw(st.lists(st.sampled_from([*values_of(name), 0, -1, 2**70]), max_size=4)),
            draw(st.booleans()),
        )
        return (
            f"{name} {'not ' * negated}in {values!r}",
            lambda row: row.get(name) is not None and (row[name] in values) != negated,
        )
    if kind == "two":
        other = draw(st.sampled_from(NUMBERS))
        return (
            f"{name} {op} {other}",
            lambda row: (
                row.get(name) is not None and row.get(other) is not None and OPERATORS[op](row[name], row[other])
            ),
        )
    if kind == "chain":
        high = draw(st.sampled_from([*values_of(name), 1000]))
        return (
            f"{value!r} <= {name} {op} {high!r}",
            lambda row: row.get(name) is not None and value <= row[name] and OPERATORS[op](row[name], high),
        )
    return f"{name} {op} {value!r}", lambda row: row.get(name) is not None and OPERATORS[op](row[name], value)


def larger(inner):
    def negated(one):
        return f"not ({one[0]})", lambda row: not one[1](row)

    def joined(parts, word, combine):
        return f" {word} ".join(f"({each[0]})" for each in parts), lambda row: combine(each[1](row) for each in parts)

    several = st.lists(inner, min_size=2, max_size=4)
    return st.one_of(
        inner.map(negated),
        several.map(lambda parts: joined(parts, "and", all)),
        several.map(lambda parts: joined(parts, "or", any)),
    )


@given(st.recursive(leaves(), larger, max_leaves=6), st.sampled_from(FILES))
def test_columns_decide_as_a_scalar_evaluation_over_json_does(made, name):
    text, holds = made
    assert numbers_selected(text, name) == [row["frame"] for row in objects_of(name) if holds(row)]


@pytest.mark.parametrize("text, same", examples(__file__, "expression-spellings.txt"))
def test_two_spellings_select_the_same_frames(text, same):
    found = numbers_selected(text, "mxoe-lossy-1M.pcap")
    assert found and found == numbers_selected(same, "mxoe-lossy-1M.pcap")


def test_a_comparison_with_a_missing_field_is_false_and_its_negation_true():
    name = "mxoe-every-type.pcap"
    assert numbers_selected("not total_length > 0", name) == numbers_selected("type != 0", name)[:0] + [
        row["frame"] for row in objects_of(name) if not row.get("total_length")
    ]
    assert numbers_selected("total_length != 0 or total_length == 0", name) == [
        row["frame"] for row in objects_of(name) if "total_length" in row
    ]


@pytest.mark.parametrize("text, answer", examples(__file__, "expression-mistakes.txt"))
def test_errors_point_at_the_column(text, answer):
    column, problem = answer.split(" ", 1)
    with pytest.raises(MxwireError) as raised:
        FrameExpression(text)
    assert str(raised.value).startswith(f"expression, column {column}: ") and problem in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "text", ["", "  ", "(" * 5000, "not " * 100_000 + "frame", "frame == \0", "9" * 10_000, "5or 3"]
)
def test_hopeless_texts_are_one_line(text, capsys):
    with pytest.raises(MxwireError) as raised:
        FrameExpression(text)
    assert "\n" not in str(raised.value) and capsys.readouterr() == ("", "")


@given(st.text(max_size=60) | st.text("()[]{}'\".,=<>!&|+-0123456789 aeflnotx", max_size=60))
def test_any_text_is_an_expression_or_an_error(text):
    try:
        made = FrameExpression(text)
    except MxwireError:
        return
    batches, start_ns = decoded_of("mxoe-early.pcap")
    assert made.mask(*batches[0], start_ns).dtype == np.bool_


def test_a_selection_by_marks_refuses_batches_without_marks():
    ((decoded, _), *_), _ = decoded_of("mxoe-early.pcap")
    for selection in (Selection.of(flags=["gap"]), Selection.of(where="message == 1")):
        with pytest.raises(ValueError, match="needs the marks"):
            selection.places(decoded)
