"""Generator of :mod:`mxwire.wire.packets`, the typed frame classes, from the formats.

``python -m mxwire.wire.generate`` writes the file; ``--check`` fails if it is stale. The classes are generated into a
file rather than at import, so that type checkers and editors know every field. The beginning of the file, with the
base class, is hand-written there.
"""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

from mxwire.wire.dialect import MXOE, omx
from mxwire.wire.layout import Field, Layout, layout_of

TARGET = Path(__file__).with_name("packets.py")

_CLASS = """

@dataclass(frozen=True, slots=True, kw_only=True)
class {name}(Frame):
{doc}

    layout_name: ClassVar[str] = "{layout}"

"""


_BEGIN = "\n\n# The rest is generated.\n"


def source() -> str:
    """The source of ``packets.py`` for the current formats."""
    by_class: dict[str, list[Layout]] = {}
    for dialect in (MXOE, omx()):
        for packet_format in dialect.formats:
            by_class.setdefault(packet_format.frame_class, []).append(layout_of(packet_format))
    classes = [_class_source(name, layouts) for name, layouts in by_class.items()]
    table = "".join(f"    {name},\n" for name in by_class)
    written, _, _ = TARGET.read_text(encoding="utf-8").partition(_BEGIN)
    return (
        written
        + _BEGIN
        + "".join(classes)
        + f"\n\nFRAME_CLASSES: tuple[type[Frame], ...] = (\n{table})\n"
        + '"""All packet classes, in order of packet type."""\n'
    )


def _class_source(name: str, layouts: list[Layout]) -> str:
    first = layouts[0]
    doc = textwrap.indent(
        textwrap.fill(f'"""{first.format.summary} [{first.format.section}]"""', 112, break_long_words=False), "    "
    )
    text = _CLASS.format(name=name, doc=doc, layout=first.name)
    for each in _fields_of(layouts):
        everywhere = all(each.name in layout.by_name and _is_defined(layout.by_name[each.name]) for layout in layouts)
        text += _field_source(each, everywhere)
    return text


def _is_defined(each: Field) -> bool:
    return each.kind != "undefined"


def _fields_of(layouts: list[Layout]) -> list[Field]:
    """The fields defined in any of the layouts, except those of the base class."""
    fields: dict[str, Field] = {}
    for layout in layouts:
        for each in layout.fields:
            if _is_defined(each) and each.kind != "mac" and each.name != "ethertype":
                fields.setdefault(each.name, each)
    return list(fields.values())


def _field_source(each: Field, everywhere: bool) -> str:
    kind = "bytes" if each.kind == "payload" else "int"
    if not everywhere:
        line = f"    {each.attribute}: {kind} | None = None\n"
    elif each.default is not None:
        value = f"0x{each.default:X}" if each.hexadecimal and each.default else str(each.default)
        line = f"    {each.attribute}: {kind} = {value}\n"
    else:
        line = f"    {each.attribute}: {kind}\n"
    doc = textwrap.fill(f'"""{each.meaning} [{each.section}]"""', 112, break_long_words=False)
    return line + textwrap.indent(doc, "    ") + "\n"


def main(arguments: list[str]) -> int:
    """Write the file; with ``--check``, only return 1 if it is stale."""
    text = source()
    if arguments == ["--check"]:
        current = TARGET.read_text(encoding="utf-8") == text
        print(f"{TARGET.name} is {'current' if current else 'stale: run python -m mxwire.wire.generate'}")
        return 0 if current else 1
    TARGET.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
