"""The JSON of commands that analyse captures, from the declarations of their results."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator

from mxwire.report import compatibility, conversations, diagnosis, inventory, merge, pairs, timing, verification
from mxwire.report.document import Block, Column, Heading, Paragraph, Row, Table, markdown
from mxwire.report.result import Result, keys, result_class

_COMMANDS: dict[str, tuple[type[Result], ...]] = {
    "mxwire info": (inventory.CaptureContents,),
    "mxwire messages --by conversation": (conversations.ConversationSummary,),
    "mxwire verify": (verification.BrokenRule, verification.VerificationLimits, verification.HostVerdict),
    "mxwire diagnose": (diagnosis.DiagnosedTrouble, diagnosis.ExaminedCapture, diagnosis.MergedTrouble),
    "mxwire stats": (
        *(timing.CaptureTotals, timing.DurationStatistics, timing.GapCounts, timing.InFlight),
        *(pairs.PairMeasurement, pairs.MergedPair),
    ),
    "mxwire merge": (merge.MergedCaptures,),
    "mxwire compat": (compatibility.SideFacts, compatibility.ClassVerdict, compatibility.Conclusion),
}
_COLUMNS = (Column("key", code=True), Column("value"), Column("meaning", wraps=True))
_NAMES: dict[type[Result], str] = {
    timing.DurationStatistics: "half_iteration, half_answer or transfer, also with _class, or delay",
    pairs.PairMeasurement: "host_pair or endpoint_pair",
}
"""The names of records that have no single one."""
_WORDS = {
    "str": "text",
    "int": "integer",
    "float": "number",
    "bool": "true or false",
    "None": "null",
    "dict[str, Any]": "object",
    "Any": "value",
    "list[Any]": "list",
}


def made() -> str:
    """Return a section per command, with a table of the keys of each record."""
    blocks: list[Block] = []
    for command, kinds in _COMMANDS.items():
        blocks.append(Heading(f"{command} --json"))
        for kind in kinds:
            name = _NAMES.get(kind, kind.KIND)
            text = inspect.cleandoc(kind.__doc__ or "")
            blocks.append(Paragraph(f"Record {name}: {text[:1].lower()}{text[1:]}" if name else text))
            blocks.append(Table(_COLUMNS, tuple(_rows(kind))))
    return markdown(blocks)


def _rows(kind: type[Result], path: str = "") -> Iterator[Row]:
    """Yield a row per key, those of objects in a list behind that of the list."""
    meanings = _meanings(kind)
    for key, field in keys(kind):
        text, inner = _type(str(field.type))
        yield Row((f"{path}{key}", text, meanings.get(field.name, "")))
        if inner is not None:
            yield from _rows(inner, f"{path}{key}{'[]' if text.startswith('list') else ''}.")


def _type(text: str) -> tuple[str, type[Result] | None]:
    """Return the type of a value in words, and the class of the objects in it."""
    if " | " in text:
        (first, inner), (second, _) = map(_type, text.split(" | "))
        return f"{first} or {second}", inner
    if text in _WORDS:
        return _WORDS[text], None
    if text.startswith("list["):
        of, inner = _type(text[5:-1])
        return f"list of {_several(of)}", inner
    if text.startswith("dict[str, "):
        return f"object of {_several(_type(text[10:-1])[0])}", None
    return "object", result_class(text)


def _several(words: str) -> str:
    """Return words in the plural: ``objects of texts``."""
    first, of, rest = words.partition(" of ")
    return f"{first}s{of}{rest}"


def _meanings(kind: type[Result]) -> dict[str, str]:
    """Return the documentation below each attribute."""
    (declared,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(declared, ast.ClassDef)
    meanings = {}
    for field, text in zip(declared.body, declared.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
            assert isinstance(field.target, ast.Name)
            meanings[field.target.id] = " ".join(str(text.value.value).replace("``", "").split())
    return meanings
