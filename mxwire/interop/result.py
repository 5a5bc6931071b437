"""Result of a run of the matrix: a report of cells, its file format with one JSON object per line, and names in it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final, Literal, TypeVar, get_args

from mxwire.errors import MxwireError, OutputError
from mxwire.ethernet import mac_bytes, mac_text
from mxwire.report.json_line import json_line, without_seconds
from mxwire.rules import Verdict, Violation
from mxwire.words import suggestion

VERDICTS: Final[tuple[Verdict, ...]] = get_args(Verdict)
"""Verdicts of a cell. ``pass``: as expected, which may be a documented failure; ``info``: the same, with notes on known
defects; ``non-strict``: the same, but a recommendation was not followed; ``fail``: not as expected, or a rule was
broken; ``missing``: not run, and the reason gives the cause."""
Kind = Literal["simulated", "live", "external"]
Expectation = Literal["works", "fails", "either"]
"""Expectation for a pair in a case: it works, it fails in the documented way, or either."""

INTERRUPTED: Final = "not played: the run was interrupted"
"""Reason of cells that were not tried before the run ended."""
REPORT_FILE: Final = "report.jsonl"
"""Name of the report in its folder."""
CAPTURES: Final = "captures"
"""Name of the folder of captures in the folder of the report."""


@dataclass(frozen=True, slots=True)
class Implementation:
    """An implementation under test."""

    name: str
    title: str
    dialect: str
    """Dialect of the host, for example ``mxoe`` or ``omx:9000/N3``."""
    profile: str | None
    """Profile of the engine; None for an external host."""
    kind: Kind = "simulated"
    description: str = ""


@dataclass(frozen=True, slots=True)
class Case:
    """An exchange between two hosts."""

    name: str
    title: str
    group: str
    description: str
    rules: tuple[str, ...]
    """Numbers of the rules that it tests."""


@dataclass(frozen=True, slots=True)
class Impairment:
    """A kind of faults of the link between the hosts."""

    name: str
    title: str
    description: str


@dataclass(frozen=True, slots=True)
class Cell:
    """Result of one case between two implementations under one impairment."""

    left: str
    right: str
    case: str
    impairment: str
    seed: int
    verdict: Verdict
    reason: str
    """Explanation of the verdict in one line."""
    expectation: Expectation = "works"
    expected: str = ""
    """Description of the expectation."""
    findings: tuple[Violation, ...] = ()
    """Breaches of rules in the frames; ``frames`` are numbers in the capture, from 1."""
    rules: tuple[str, ...] = ()
    """Numbers of the rules that the case tests, and of those that were broken."""
    diagnosis: tuple[str, ...] = ()
    """Probable causes of a failure, one per line."""
    duration_ns: int = 0
    """Duration: virtual time of simulated hosts, real time of others."""
    frames: int = 0
    """Number of frames sent."""
    digest: str = ""
    """Digest of all frames with their times; reproducible for simulated hosts."""
    capture: str | None = None
    """Name of the pcapng file in the folder of captures; frames of findings have comments."""
    command: str = ""
    """Command that runs this cell again."""
    events: tuple[str, ...] = ()
    """Actions and observations of the applications, one per line, with the time."""

    @property
    def name(self) -> str:
        """``left/right/case/impairment``; unique in a report."""
        return f"{self.left}/{self.right}/{self.case}/{self.impairment}"

    @property
    def works(self) -> bool:
        """True if the exchange succeeded, whatever the verdict; the reason begins with this."""
        return self.reason.startswith("works")


@dataclass(slots=True)
class InteropReport:
    """All cells of a run, with the descriptions of their cases, implementations and impairments."""

    title: str
    version: str
    """Version of mxwire."""
    started: str
    """Start in ISO 8601, UTC."""
    complete: bool = True
    """False if the run was interrupted, or could not continue."""
    implementations: list[Implementation] = field(default_factory=list)
    cases: list[Case] = field(default_factory=list)
    impairments: list[Impairment] = field(default_factory=list)
    cells: list[Cell] = field(default_factory=list)

    @property
    def counts(self) -> dict[Verdict, int]:
        """Number of cells by verdict, in the order of :data:`VERDICTS`."""
        counts = dict.fromkeys(VERDICTS, 0)
        for each in self.cells:
            counts[each.verdict] += 1
        return counts

    @property
    def as_expected(self) -> bool:
        """True if no cell failed."""
        return not any(each.verdict == "fail" for each in self.cells)

    def to_json_lines(self) -> Iterator[str]:
        """Yield the report as JSON, one object per line; ``record`` gives its kind."""
        head = {each: getattr(self, each) for each in ("title", "version", "started", "complete")}
        yield _line("report", {**head, "counts": self.counts})
        for record, items in (
            ("implementation", self.implementations),
            ("case", self.cases),
            ("impairment", self.impairments),
        ):
            for each in items:
                yield _line(record, asdict(each))
        for cell in self.cells:
            yield cell_line(cell)

    @classmethod
    def from_json_lines(cls, lines: Iterable[str]) -> InteropReport:
        """Parse such lines; raise ValueError for invalid ones."""
        report: InteropReport | None = None
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                entry = without_seconds(json.loads(line))
                record = entry.pop("record")
                if report is None:
                    if record != "report":
                        raise ValueError("the first record is not of kind report")
                    entry.pop("counts", None)
                    report = cls(**entry)
                    continue
                where, make = _RECORDS[record]
                getattr(report, where).append(make(entry))
            except (ValueError, TypeError, KeyError, AttributeError, MxwireError) as error:
                raise ValueError(f"line {number}: {error}") from None
        if report is None:
            raise ValueError("it is empty")
        return report

    @classmethod
    def read(cls, path: str | Path) -> InteropReport:
        """Read a report, given as its file or its folder.

        Raises :class:`~mxwire.errors.MxwireError` if there is none, or it is not a report.
        """
        path = Path(path)
        file = path / REPORT_FILE if path.is_dir() else path
        try:
            with file.open(encoding="utf-8") as lines:
                return cls.from_json_lines(lines)
        except OSError as error:
            raise MxwireError(f"{file}: the report cannot be read: {error.strerror or error}") from None
        except ValueError as error:
            raise MxwireError(f"{file}: not a report of mxwire interop: {error}") from None

    def write(self, path: str | Path) -> Path:
        """Write the report into a folder, which is created if necessary, or into a file; return the file."""
        path = Path(path)
        file = path if path.suffix == ".jsonl" else path / REPORT_FILE
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            draft = file.with_name(file.name + ".part")
            draft.write_text("".join(f"{line}\n" for line in self.to_json_lines()), encoding="utf-8")
            draft.replace(file)
        except OSError as error:
            raise OutputError.of(file, error) from None
        return file


def cell_line(cell: Cell) -> str:
    """Return a cell as a line of JSON."""
    entry = {each.name: getattr(cell, each.name) for each in fields(cell)}
    entry["findings"] = [{**asdict(violation), "host": mac_text(violation.host)} for violation in cell.findings]
    return _line("cell", entry)


def cell_from_line(line: str) -> Cell:
    """Return the cell of a line of JSON."""
    entry = without_seconds(json.loads(line))
    del entry["record"]
    return _cell(entry)


def _line(record: str, entry: dict[str, Any]) -> str:
    return json_line({"record": record, **entry})


def _cell(entry: dict[str, Any]) -> Cell:
    found = [
        Violation(**{**each, "host": mac_bytes(each["host"]), "frames": tuple(each["frames"])})
        for each in entry.pop("findings")
    ]
    lists = {name: tuple(entry[name]) for name in ("rules", "diagnosis", "events")}
    cell = Cell(**{**entry, **lists, "findings": tuple(found)})
    if cell.verdict not in VERDICTS:
        raise ValueError(f"{cell.verdict!r} is not a verdict")
    return cell


def _case(entry: dict[str, Any]) -> Case:
    return replace(Case(**entry), rules=tuple(entry["rules"]))


_RECORDS: Final[dict[str, Any]] = {
    "implementation": ("implementations", lambda entry: Implementation(**entry)),
    "case": ("cases", _case),
    "impairment": ("impairments", lambda entry: Impairment(**entry)),
    "cell": ("cells", _cell),
}


_Kind = TypeVar("_Kind")


def named(name: str, known: Mapping[str, _Kind], what: str, also: Sequence[str] = ()) -> _Kind:
    """Return the value of ``known`` for a name in upper or lower case; ``also`` are further names to suggest.

    Raises :class:`~mxwire.errors.MxwireError` for an unknown name.
    """
    found = known.get(name.strip().lower())
    if found is None:
        near = suggestion(name, [*known, *also], lister="mxwire interop --list")
        raise MxwireError(f"unknown {what} {name!r}{near}")
    return found
