"""Python values as Lua source."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

LuaValue = bool | int | float | str | None | Mapping[str, "LuaValue"] | Mapping[int, "LuaValue"] | Sequence["LuaValue"]

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_KEYWORD: Final = re.compile(
    "and|break|do|else|elseif|end|false|for|function|goto|if|in|local|nil|not|or|repeat|return|then|true|until|while"
)
_ESCAPES: Final = {"\\": "\\\\", '"': '\\"', "\n": "\\n"}


def lua(value: LuaValue, indent: str = "", width: int = 120) -> str:
    """Return a Lua expression for a value; tables that do not fit on one line have one entry per line."""
    if isinstance(value, (Mapping, Sequence)) and not isinstance(value, str):
        return _table(value, indent, width)
    return _scalar(value)


def _scalar(value: LuaValue) -> str:
    if value is None:
        return "nil"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)
    assert isinstance(value, str)
    return '"' + "".join(_ESCAPES.get(each, each) for each in value) + '"'


def _table(value: Mapping[str, LuaValue] | Mapping[int, LuaValue] | Sequence[LuaValue], indent: str, width: int) -> str:
    inner = indent + "  "
    if isinstance(value, Mapping):
        entries = [f"{_key(key)} = {lua(each, inner, width)}" for key, each in value.items() if each is not None]
    else:
        entries = [lua(each, inner, width) for each in value]
    line = "{ " + ", ".join(entries) + " }" if entries else "{}"
    if "\n" not in line and len(indent) + len(line) <= width:
        return line
    return "{\n" + "".join(f"{inner}{each},\n" for each in entries) + indent + "}"


def _key(key: str | int) -> str:
    if isinstance(key, int):
        return f"[{key}]"
    return key if _NAME.match(key) and not _KEYWORD.fullmatch(key) else f'["{key}"]'
