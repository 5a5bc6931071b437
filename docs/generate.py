"""What the documentation takes from the program: command outputs, tables, and a page for each packet type.

A hook of mkdocs (see ``hooks`` in mkdocs.yml), so that none of it is written by hand or can be out of date. A page
says where something goes:

* an ``output`` comment with a command, ``<!-- output: mxwire info FILE -->``, becomes the command and what it prints;
  with ``| head -N`` behind it only the first lines;
* a Python block is run, and an ``<!-- output -->`` comment behind it becomes what the block prints;
* a ``generated`` comment, ``<!-- generated: NAME -->``, becomes one of ``PARTS``.

The commands and Python blocks of a page run in one new directory that has the shipped captures in it.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import inspect
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import mxwire.protocol  # noqa: F401  (its machines are found once it is imported)
from mxwire.analysis.diagnosis import GROUPS, Diagnosis, Examination, catalogue
from mxwire.analysis.table import COLUMN_NAMES, TableBuilder
from mxwire.capture import open_capture
from mxwire.capture.time_order import in_time_order
from mxwire.cli.main import cli
from mxwire.errors import MxwireError
from mxwire.frames import FrameBatch
from mxwire.protocol.machine import Machine
from mxwire.report.diagnosis import advice_of
from mxwire.report.diagnosis import blocks as diagnosis_blocks
from mxwire.report.document import Block, Column, Heading, Paragraph, Row, Table, markdown, markdown_text, plain
from mxwire.report.formats import View, details, listing, overview_table, type_names, views
from mxwire.rules.catalogue import CATALOGUE, chapters
from mxwire.rules.index import places
from mxwire.wire.checks import Reason
from mxwire.wire.decoder import Decoder
from mxwire.wire.detection import HINTS
from mxwire.wire.dialect import MXOE, Dialect, Generation, omx
from mxwire.wire.enums import ConnectStatus, NackType, PacketType, TrucType
from mxwire.wire.formats import MEDIUM_OMX_N3
from mxwire.wire.layout import layout_of

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
CAPTURES = ROOT / "captures"
PACKET_PAGES = "protocol/"
"""Where the pages of the packet types are; the entry of the navigation that names this folder gets them."""
OUTPUT_WIDTH = 100
KEEP = "MXWIRE_DOCS_MADE"
"""Environment variable: a folder that keeps made pages, for those who make the same ones several times."""
DOT_STYLE = ("-Nfontname=sans-serif", "-Efontname=sans-serif", "-Efontsize=10", "-Nshape=box", "-Nstyle=rounded")
EXAMPLE_CAPTURES = ("mxoe-every-type.pcap", "omx9000-vect.pcap")
"""Where the packets come from that the packet pages show: one of `mxoe` with all types, one of `omx`."""

ANSWERS = {"diagnose": (0, 1), "compat": (0, 1)}
"""Exit codes of commands that say something by them, without having failed."""

_MARKER = re.compile(
    r"^```python\n(?P<code>.*?)^```$"
    r"|^<!-- output(?:: (?P<command>.+?)(?: \| head -(?P<lines>\d+))?)? -->$"
    r"|^<!-- generated: (?P<part>.+?) -->$",
    re.MULTILINE | re.DOTALL,
)


# Pages


class PageError(Exception):
    """A page that cannot be made: a command or a block of it fails, or a marker is not understood."""


def render(text: str, name: str) -> str:
    """A page with its markers replaced; raises :class:`PageError` where one of them cannot be."""
    if not _MARKER.search(text):
        return text
    kept = os.environ.get(KEEP)
    place = Path(kept) / hashlib.sha256(f"{name}\n{text}".encode()).hexdigest() if kept else None
    if place is not None and place.exists():
        return place.read_text(encoding="utf-8")
    made = _made(text, name)
    if place is not None:
        unfinished = place.with_suffix(f".{os.getpid()}")
        unfinished.write_text(made, encoding="utf-8")
        unfinished.rename(place)
    return made


def _made(text: str, name: str) -> str:
    with tempfile.TemporaryDirectory(prefix="mxwire-docs-") as folder:
        (Path(folder) / "captures").symlink_to(CAPTURES)
        with contextlib.chdir(folder):
            run = _PageRun(name)
            return _MARKER.sub(run.replace, text)


class _PageRun:
    """The blocks of one page, run one after the other."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.namespace: dict[str, Any] = {"__name__": "__main__"}
        self.printed = ""

    def replace(self, found: re.Match[str]) -> str:
        """What stands in the place of one marker."""
        if found["code"] is not None:
            line = found.string[: found.start()].count("\n") + 1
            self.printed = self._run(found["code"], line)
            return found[0]
        if found["part"] is not None:
            if found["part"] not in PARTS:
                raise PageError(f"{self.name}: there is no part {found['part']!r}, only {', '.join(PARTS)}")
            return PARTS[found["part"]]()
        if found["command"] is not None:
            return command_output(found["command"], int(found["lines"] or 0), self.name)
        return f"```text\n{self.printed.rstrip()}\n```"

    def _run(self, code: str, line: int) -> str:
        printed = io.StringIO()
        try:
            # Empty lines in front make the line numbers of a traceback those of the page.
            with contextlib.redirect_stdout(printed):
                exec(compile("\n" * line + code, self.name, "exec"), self.namespace)
        except Exception as error:
            raise PageError(f"{self.name}: the Python block in line {line} fails: {error!r}") from error
        return printed.getvalue()


def command_output(command: str, lines: int = 0, page: str = "") -> str:
    """A block with a command and what it prints; the first ``lines`` lines, if that is not 0."""
    program, *arguments = command.split()
    if program != "mxwire":
        raise PageError(f"{page}: only mxwire commands are run, not {command!r}")
    environment = os.environ | {"COLUMNS": str(OUTPUT_WIDTH), "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, "-m", "mxwire", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        env=environment,
        timeout=120,
        check=False,
    )
    if done.returncode not in ANSWERS.get(arguments[0] if arguments else "", (0,)):
        raise PageError(f"{page}: {command!r} ends with exit code {done.returncode}: {done.stdout.strip()}")
    output = done.stdout.rstrip("\n").split("\n")
    if 0 < lines < len(output):
        output = [*output[:lines], "…"]
    return "\n".join(["```console", f"$ {command}", *output, "```"])


def packet_pages() -> dict[str, str]:
    """The pages of the packet types by file name, in order of type."""
    return {f"{PACKET_PAGES}{name.lower()}.md": packet_page(name) for name in type_names()}


def packet_page(name: str) -> str:
    """Everything about one packet type: what it is for, diagram, fields, tests and a real one."""
    shown = views(name)
    packet_type = shown[0].layout.packet_type
    blocks = details(shown, drawn=True)
    if any(view.layout.name == MEDIUM_OMX_N3.name for view in shown):
        old = View(layout_of(MEDIUM_OMX_N3), omx(generation="N3"), is_common=False)
        blocks += [Heading(f"{name}, dialect omx of Open-MX 1.0.901 to 1.3.1"), *listing(old)]
    used = EXAMPLE_CAPTURES if any(not view.is_common for view in shown) else EXAMPLE_CAPTURES[:1]
    examples = [f"<!-- output: mxwire decode -v --type {name} --count 1 captures/{capture} -->" for capture in used]
    return "\n".join(
        [
            f"# {name} ({packet_type.value})\n",
            f"Packet type {packet_type.value} (0x{packet_type.value:02X}), section {shown[0].layout.format.section} of "
            f"the wire format specification. On the command line: `mxwire formats {name}`.\n",
            markdown(blocks),
            "## A real one\n",
            "\n\n".join(examples),
            "",
        ]
    )


# Parts of pages


def _dialect_sizes() -> str:
    dialects = (MXOE, omx(1500), omx(4096), omx(9000))
    rows: list[tuple[str, Callable[[Dialect], object]]] = [
        ("longest frame (M in omx)", lambda dialect: dialect.frame_limit),
        ("data of a MEDIUM fragment (F)", lambda dialect: dialect.fragment_payload),
        ("longest fragment that is received (receive slot)", lambda dialect: dialect.receive_slot),
        ("most fragments of a MEDIUM message", lambda dialect: dialect.fragments_maximum),
        ("longest message that MEDIUM can be set to carry", lambda dialect: dialect.medium_maximum),
        ("data of a full PULL_REPLY (P)", lambda dialect: dialect.reply_payload),
        ("most replies of one PULL (B)", lambda dialect: dialect.frames_per_block),
        ("most bytes of one PULL (P x B)", lambda dialect: dialect.block_length),
        ("header of PULL", lambda dialect: layout_of(dialect.pull_format).header_end),
    ]
    columns = (Column("bytes, or number"), *(Column(f"`{dialect}`", right=True) for dialect in dialects))
    return markdown(
        [Table(columns, tuple(Row((text, *(str(value(dialect)) for dialect in dialects))) for text, value in rows))]
    )


def _generations() -> str:
    releases: dict[Generation, str] = {
        "N1": "0.1.0 to 0.5.0",
        "N2": "0.6.0 to 1.0.6",
        "N3": "1.0.901 to 1.3.1",
        "N4": "1.3.2 to 1.5.4",
    }
    rows = []
    for generation, release in releases.items():
        dialect = omx(generation=generation)
        fields = layout_of(dialect.medium_format).by_name
        pipeline = "with" if "frag_pipeline" in fields else "without"
        medium = f"{(fields['length'].size or 0) * 8}-bit length, {pipeline} pipeline"
        rows.append(Row((generation, release, medium, str(dialect.reply_payload), str(dialect.frames_per_block))))
    columns = (
        Column("generation"),
        Column("Open-MX"),
        Column("MEDIUM"),
        Column("P at M = 9000", right=True),
        Column("B", right=True),
    )
    return markdown([Table(columns, tuple(rows))])


def _hints() -> str:
    columns = (Column("evidence"), Column("speaks for"), Column("strength", right=True))
    rows = tuple(Row((hint.text, hint.supports, f"{hint.strength:.0%}")) for hint in HINTS.values())
    return markdown([Table(columns, rows)])


def _value_names() -> str:
    blocks: list[Block] = []
    for kind in (PacketType, TrucType, ConnectStatus, NackType):
        rows = tuple(Row((str(each.value), f"0x{each.value:02X}", each.name)) for each in kind)
        blocks += [
            Heading(_words(kind.__name__), 3),
            Paragraph((kind.__doc__ or "").partition("\n")[0]),
            Table((Column("value", right=True), Column("hex", right=True), Column("name", code=True)), rows),
        ]
    return markdown(blocks)


def _reasons() -> str:
    columns = (Column("value", right=True), Column("reason", code=True), Column("what it means"))
    rows = tuple(Row((str(each.value), each.text, each.explanation)) for each in Reason if each)
    return markdown([Table(columns, rows)])


def _packet_types() -> str:
    """The table of packet types, its names as links to their pages."""
    table = markdown([overview_table()])
    for name in type_names():
        table = table.replace(f"| `{name}`", f"| [{name}]({name.lower()}.md)")
    return table


def _captures() -> str:
    """The index of the captures, without its title."""
    return (CAPTURES / "INDEX.md").read_text(encoding="utf-8").partition("\n")[2]


def _columns() -> str:
    """The columns of the table that `mxwire decode --to` writes, with the meaning of each field."""
    schema = TableBuilder().frame(Decoder().decode(FrameBatch.from_frames([])), "").schema
    meanings: dict[str, dict[str, list[str]]] = {}
    for view in views():
        for field in view.layout.defined:
            types = meanings.setdefault(field.name, {}).setdefault(field.meaning, [])
            if view.layout.packet_type.name not in types:
                types.append(view.layout.packet_type.name)
    rows = []
    for name in COLUMN_NAMES:
        if name not in meanings and name not in _COLUMN_MEANINGS:
            raise PageError(f"column {name} of the table has no description in docs/generate.py")
        of_column = meanings.get(name) or {_COLUMN_MEANINGS[name]: type_names()}
        places = ["all" if len(types) == len(type_names()) else ", ".join(types) for types in of_column.values()]
        for number, (where, meaning) in enumerate(zip(places, of_column, strict=True)):
            rows.append(Row(("" if number else name, "" if number else str(schema[name]), where, meaning)))
    columns = (Column("column", code=True), Column("type", code=True), Column("packet types"), Column("meaning"))
    return markdown([Table(columns, tuple(rows))])


_COLUMN_MEANINGS = {
    "file": "The capture, as it was named on the command line.",
    "frame": "Number of the frame in its capture, from 1, frames of other protocols counted too.",
    "time_ns": "When the frame was captured, in nanoseconds since 1970 (UTC).",
    "wire_length": "Bytes of the frame on the wire, without frame check sequence.",
    "captured": "Bytes of the frame in the capture; fewer than wire_length where a snap length cut it.",
    "source": "Ethernet address of the sender.",
    "destination": "Ethernet address of the receiver; null in Linux cooked captures, which do not have it.",
    "vlan": "VLAN ids, the outermost first; null for untagged frames.",
    "dialect": "What the two hosts speak; null where nothing decides it and the frame was read as mxoe.",
    "type": "Name of the packet type, or its number where it has no name.",
    "hostname": "The name in a HOST_REPLY.",
    "payload_offset": "Where the data starts in the captured frame.",
    "payload_length": "Announced bytes of data; null for frames without data and for malformed ones.",
    "malformed_reason": "Why the frame cannot be what it claims; null where nothing is wrong.",
    "malformed_offset": "The byte of the captured frame where it went wrong.",
}


def _rules() -> str:
    """All rules of the specification, with the places where they are judged and tested."""
    found = places()
    columns = (Column("rule"), Column("force"), Column("judged"), Column("what it says"), Column("where"))
    blocks = []
    for title in chapters():
        rows = []
        for rule in (each for each in CATALOGUE.values() if each.chapter == title):
            where = found[rule.number]
            named = [f"{kind}: {_places(listed)}" for kind, listed in asdict(where).items() if listed]
            text = rule.text + (f" *{rule.why}*" if rule.why else "")
            rows.append(Row((f"`{rule.number}`", rule.force, rule.judged, text, "<br>".join(named))))
        blocks.append(f"### {title}\n\n{_raw_markdown_table(columns, rows)}")
    return "\n".join(blocks)


def _mutants() -> str:
    """Which rules find the engine that was broken on purpose, or why none can."""
    sys.path.insert(0, str(ROOT))
    try:
        from tests.mutants import MUTANTS
        from tests.mutants_seen import SEEN, Found
    finally:
        sys.path.remove(str(ROOT))
    columns = (Column("what is wrong"), Column("breaks"), Column("found by"))
    rows = []
    for mutant in MUTANTS:
        seen = SEEN[mutant.name]
        if isinstance(seen, Found):
            found = ", ".join(f"`{rule}`" for rule in sorted(seen.rules))
            found += f" in a capture on host {seen.at}" if seen.at is not None else " in a capture of all frames"
            found += ", with `--from-start`" if seen.from_start else ""
        else:
            found = f"*{seen.why}*"
        before = f" (Open-MX before {mutant.mended_in})" if mutant.mended_in else ""
        rows.append(Row((mutant.name + before, f"`{mutant.rule}`", found)))
    return _raw_markdown_table(columns, rows)


def _places(listed: tuple[str, ...]) -> str:
    """The first of some places, and how many more there are."""
    shown = [f"`{each.removeprefix('mxwire/').removeprefix('tests/')}`" for each in listed[:2]]
    more = f" and {len(listed) - len(shown)} more" if len(listed) > len(shown) else ""
    return ", ".join(shown) + more


def _imports() -> str:
    """Which room of the house imports which, read from the source."""
    package = ROOT / "mxwire"
    rooms = sorted(path.name for path in package.iterdir() if (path / "__init__.py").exists())
    rows = []
    for room in rooms:
        imported = {name for path in sorted((package / room).rglob("*.py")) for name in _imported_rooms(path)}
        summary = ast.get_docstring(ast.parse((package / room / "__init__.py").read_text(encoding="utf-8"))) or ""
        described = summary.partition("\n")[0].replace("``", "`")
        rows.append(Row((room, described, ", ".join(sorted(imported - {room})))))
    return _raw_markdown_table((Column("room"), Column("what it is"), Column("imports")), rows)


def _imported_rooms(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        for name in names:
            package, _, rest = name.partition(".")
            if package == "mxwire" and rest:
                yield rest.partition(".")[0]


def _commands() -> str:
    """All commands with their arguments, options and examples."""
    with click.Context(cli, info_name="mxwire", **cli.context_settings) as context:
        return "\n".join(_commands_of(cli, context))


def _commands_of(group: click.Group, context: click.Context) -> Iterator[str]:
    """The commands of a group, and those of groups among them."""
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is None:
            raise PageError(f"the command {name} is listed but does not exist")
        with click.Context(command, info_name=name, parent=context) as inner:
            yield _command(command, inner)
            if isinstance(command, click.Group):
                yield from _commands_of(command, inner)


def _command(command: click.Command, context: click.Context) -> str:
    usage = " ".join(command.collect_usage_pieces(context))
    text = [f"## {context.command_path}\n", f"```text\n{context.command_path} {usage}\n```\n"]
    text += [
        markdown_text(paragraph.replace("\n", " ")) + "\n"
        for paragraph in _paragraphs(inspect.cleandoc(command.help or ""))
    ]
    rows = []
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None and record[1]:
            names, meaning = record
            rows.append(Row((names, *_without_default(meaning))))
    columns = (Column("option", code=True), Column("what it does"), Column("default", code=True))
    text.append(markdown([Table(columns, tuple(rows))]))
    for paragraph in _paragraphs(command.epilog or ""):
        text.append(_epilog(paragraph))
    return "\n".join(text)


def _paragraphs(text: str) -> list[str]:
    return [paragraph.strip("\n") for paragraph in re.split(r"\n\s*\n", text.strip("\n")) if paragraph.strip()]


def _without_default(meaning: str) -> tuple[str, str]:
    """The help of an option, and its default apart from it."""
    default = re.search(r"\s*\[default: ([^\]]+)\]", meaning)
    return (meaning.replace(default[0], ""), default[1]) if default else (meaning, "")


def _epilog(paragraph: str) -> str:
    """A paragraph after the options: one that begins with a title and goes on indented is a block of examples."""
    lines = paragraph.removeprefix("\b\n").split("\n")
    if len(lines) > 1 and all(line.startswith(" ") for line in lines[1:]):
        examples = "\n".join(line.removeprefix("  ") for line in lines[1:])
        return f"{markdown_text(lines[0])}\n\n```text\n{examples}\n```\n"
    return markdown_text("\n".join(lines)) + "\n"


def _words(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).capitalize()


def _raw_markdown_table(columns: tuple[Column, ...], rows: list[Row]) -> str:
    """A table whose cells are Markdown already."""
    lines = ["| " + " | ".join(column.heading for column in columns) + " |", "|" + "---|" * len(columns)]
    return "\n".join(lines + ["| " + " | ".join(row.cells) + " |" for row in rows]) + "\n"


def _state_machines() -> str:
    """Every table of the engine: what it belongs to, its diagram, and its rows."""
    blocks = []
    for machine in sorted(_machines(Machine), key=lambda each: (each.__module__, each.__name__)):
        path = f"mxwire/{machine.__module__.removeprefix('mxwire.').replace('.', '/')}.py"
        rows = [
            Row((str(row.state), str(row.event), str(row.next), ", ".join(f"`{rule}`" for rule in row.rules)))
            for row in machine.table.rows.values()
        ]
        columns = tuple(Column(title) for title in ("state", "event", "next state", "rules"))
        summary = inspect.cleandoc(machine.__doc__ or "").partition("\n")[0].replace("``", "`")
        blocks.append(
            f"### {machine.table.name.capitalize()}\n\n{summary} `{path}`\n\n{_drawn(machine.table.diagram())}\n\n"
            f'??? note "The table"\n\n{textwrap.indent(_raw_markdown_table(columns, rows), "    ")}'
        )
    return "\n".join(blocks)


def _machines(kind: type[Machine]) -> Iterator[type[Machine]]:
    """All kinds of machines that have a table of their own."""
    for each in kind.__subclasses__():
        if "table" in vars(each):
            yield each
        yield from _machines(each)


def _drawn(diagram: str) -> str:
    """A diagram as a picture in the page, in the colour of its text; as it is written where Graphviz is absent."""
    dot = shutil.which("dot")
    if dot is None:
        return f"```dot\n{diagram}\n```"
    done = subprocess.run([dot, "-Tsvg", *DOT_STYLE], input=diagram, capture_output=True, encoding="utf-8", check=True)
    picture = done.stdout[done.stdout.index("<svg") :]
    for colour, instead in (('stroke="black"', 'stroke="currentColor"'), ('fill="black"', 'fill="currentColor"')):
        picture = picture.replace(colour, instead)
    # Text has no fill of its own, and the page behind the picture is what it is drawn on.
    picture = picture.replace("<text ", '<text fill="currentColor" ').replace('fill="white"', 'fill="none"')
    return '<div class="diagram">' + re.sub(r"<!--.*?-->|\n", "", picture, flags=re.DOTALL) + "</div>"


REAL_EXAMPLES = {
    "mute-peer": "mxoe-discovery-static",
    "wrong-key": "mxoe-connect",
    "endpoint-closed": "mxoe-nack-lib",
    "endpoint-out-of-range": "mxoe-nack-lib",
    "session-changed": "mxoe-nack-mcp-session",
    "session-number-differs": "mxoe-resends-exhausted",
    "partner-given-up": "omx9000-resends-exhausted",
    "no-reverse-connect": "mxoe-no-reverse-connect",
    "late-reverse-connect": "mxoe-pingpong-small-medium",
    "receiver-not-progressing": "omx9000-stopped-receiver",
    "zombie-pull": "omx9000-receiver-killed",
    "frames-lost": "mxoe-lossy-1M",
    "tail-loss": "mxoe-lossy-1M",
    "frames-duplicated": "mxoe-nack-mcp-rdmawin",
    "frames-out-of-order": "mxoe-early",
    "capture-frames-cut": "mxoe-many",
}
"""The captures of real hosts that are examples of diagnoses; all others have one in ``docs/examples``."""


def _diagnosis_table() -> str:
    lines = ["| diagnosis | what it is |", "|---|---|"]
    for group, title in GROUPS.items():
        lines.append(f"| **{title}** | |")
        lines += [f"| [`{each.id}`](#{each.id}) | {each.title} |" for each in catalogue() if each.group == group]
    return "\n".join(lines)


def _diagnoses() -> str:
    parts = []
    for group, title in GROUPS.items():
        parts.append(f"## {title}")
        parts += [_diagnosis(each) for each in catalogue() if each.group == group]
    return "\n\n".join(parts)


def _diagnosis(diagnosis: Diagnosis) -> str:
    real = REAL_EXAMPLES.get(diagnosis.id)
    example = f"captures/{real}.pcap" if real else f"docs/examples/{diagnosis.id}.pcap"
    source = "recorded from real hosts" if real else "made for this page"
    advice = "\n".join(f"{number}. {text}" for number, text in enumerate(advice_of(diagnosis), 1))
    parts = [
        f"### {diagnosis.title} {{ #{diagnosis.id} }}",
        f"`{diagnosis.id}`",
        f"**What users see.** {diagnosis.users_see}",
        f"**What the capture shows.** {diagnosis.capture_shows}",
        f"**How it is told apart.** {diagnosis.told_apart}",
        f"**What to do.**\n\n{advice}",
        f"**An example**, {source}:",
        _diagnosed(diagnosis, example),
    ]
    return "\n\n".join(parts)


def _diagnosed(diagnosis: Diagnosis, example: str) -> str:
    """What ``mxwire diagnose --only ID FILE`` prints, without a process for each of so many; a test compares them."""
    decoder = Decoder()
    examination = Examination(decoder)
    with open_capture(str(ROOT / example)) as reader:
        for decoded in decoder.decode_all(in_time_order(examination.watch(reader))):
            examination.observe(decoded)
    examination.finish()
    found = [each for each in examination.findings() if each.id == diagnosis.id]
    if not found:
        raise PageError(f"{example} is the example of {diagnosis.id}, but does not show it")
    printed = plain(diagnosis_blocks(example, examination, found), OUTPUT_WIDTH)
    return "\n".join(["```console", f"$ mxwire diagnose --only {diagnosis.id} {example}", printed.rstrip("\n"), "```"])


PARTS: dict[str, Callable[[], str]] = {
    "state machines": _state_machines,
    "packet types": _packet_types,
    "dialect sizes": _dialect_sizes,
    "generations": _generations,
    "hints": _hints,
    "value names": _value_names,
    "reasons": _reasons,
    "columns": _columns,
    "commands": _commands,
    "captures": _captures,
    "imports": _imports,
    "rules": _rules,
    "mutants": _mutants,
    "diagnosis table": _diagnosis_table,
    "diagnoses": _diagnoses,
}


# What mkdocs calls


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the pages of the packet types where the navigation names their folder."""
    pages = [f"{PACKET_PAGES}{name.lower()}.md" for name in type_names()]
    config.nav = _expanded(config.nav, pages)
    return config


def _expanded(entries: Any, pages: list[str]) -> Any:
    if isinstance(entries, dict):
        return {title: _expanded(below, pages) for title, below in entries.items()}
    if isinstance(entries, list):
        return [new for entry in entries for new in (pages if entry == PACKET_PAGES else [_expanded(entry, pages)])]
    return entries


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that exist only while the site is built."""
    from mkdocs.structure.files import File

    for name, text in packet_pages().items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Replace the markers of a page."""
    from mkdocs.exceptions import PluginError

    try:
        return render(markdown, page.file.src_uri)
    except (PageError, MxwireError) as error:
        raise PluginError(str(error)) from error
