"""Examples in files: texts, each with the answer to it behind ``=``, separated by empty lines."""

from __future__ import annotations

from pathlib import Path


def examples(file: str, name: str) -> list[tuple[str, str]]:
    """The examples in the file ``name`` beside the test ``file``."""
    blocks = Path(file).with_name(name).read_text(encoding="utf-8").removesuffix("\n").split("\n\n")
    return [(text, answer) for text, _, answer in (each.rpartition("\n= ") for each in blocks)]
