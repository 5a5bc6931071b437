"""What a run of the matrix has found: a report of cells, and how it is kept in a file, one object a line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final, Literal, get_args

from mxwire.errors import MxwireError
from mxwire.ethernet import mac_bytes, mac_text
from mxwire.report.json_line import json_line, without_seconds
from mxwire.rules import Verdict, Violation

VERDICTS: Final[tuple[Verdict, ...]] = get_args(Verdict)
"""Of a cell. ``pass``: all as expected, which may be a failure in the documented way; ``info``: the same, with notes on
known defects; ``non-strict``: the same, but what is only recommended was not done; ``fail``: not as expected, or a rule
was broken; ``missing``: not run, and the reason says why."""
Kind = Literal["simulated", "live", "external"]
Expectation = Literal["works", "fails", "either"]
"""What is expected of a pair in a case: that it works, that it fails in the documented way, or nothing certain."""

INTERRUPTED: Final = "not played: the run was interrupted"
"""The reason of cells that were not tried, as the run has ended before."""
REPORT_FILE: Final = "report.jsonl"
"""The report in its folder."""
CAPTURES: Final = "captures"
"""The folder of the captures in the folder of the report."""


@dataclass(frozen=True, slots=True)
class Implementation:
    """One of those who are put against each other."""

    name: str
    title: str
    dialect: str
    """What it speaks, for example ``mxoe`` or ``omx:9000/N3``."""
    profile: str | None
    """The profile of ours that it is; None for an external host."""
    kind: Kind = "simulated"
    description: str = ""


@dataclass(frozen=True, slots=True)
class Case:
    """Something that two hosts do together."""

    name: str
    title: str
    group: str
    description: str
    rules: tuple[str, ...]
    """Numbers of the rules that it is about."""


@dataclass(frozen=True, slots=True)
class Impairment:
    """What the link between the hosts does to frames."""

    name: str
    title: str
    description: str


@dataclass(frozen=True, slots=True)
class Cell:
    """One case between two implementations under one impairment, and how it went."""

    left: str
    right: str
    case: str
    impairment: str
    seed: int
    verdict: Verdict
    reason: str
    """Why, in one line."""
    expectation: Expectation = "works"
    expected: str = ""
    """What was expected, in words."""
    findings: tuple[Violation, ...] = ()
    """What the frames show that is against the rules; ``frames`` are numbers in the capture, from 1."""
    rules: tuple[str, ...] = ()
    """Numbers of the rules that the case is about, and of those that were broken."""
    diagnosis: tuple[str, ...] = ()
    """What seems to be the matter, where something does not work, a line each."""
    duration_ns: int = 0
    """How long it took: virtual time of simulated hosts, real time of others."""
    frames: int = 0
    """How many frames were sent."""
    digest: str = ""
    """Of all frames with their times; of simulated hosts it is the same each time."""
    capture: str | None = None
    """Name of the pcapng file in the folder of captures; frames of the findings have comments."""
    command: str = ""
    """Runs this cell again."""
    events: tuple[str, ...] = ()
    """What the applications did and saw, a line each, with the time."""

    @property
    def name(self) -> str:
        """``left/right/case/impairment``: unique in a report."""
        return f"{self.left}/{self.right}/{self.case}/{self.impairment}"

    @property
    def works(self) -> bool:
        """Whether the two have done it, whatever the verdict on how: the reason begins with that."""
        return self.reason.startswith("works")


@dataclass(slots=True)
class Report:
    """All cells of a run, with what their names stand for."""

    title: str
    version: str
    """Of mxwire."""
    started: str
    """ISO 8601, UTC."""
    complete: bool = True
    """False where the run was interrupted, or could not go on."""
    implementations: list[Implementation] = field(default_factory=list)
    cases: list[Case] = field(default_factory=list)
    impairments: list[Impairment] = field(default_factory=list)
    cells: list[Cell] = field(default_factory=list)

    @property
    def counts(self) -> dict[Verdict, int]:
        """How many cells have each verdict, in the order of :data:`VERDICTS`."""
        found = dict.fromkeys(VERDICTS, 0)
        for each in self.cells:
            found[each.verdict] += 1
        return found

    @property
    def as_expected(self) -> bool:
        """Whether no cell failed."""
        return not any(each.verdict == "fail" for each in self.cells)

    def to_json_lines(self) -> Iterator[str]:
        """The report as JSON, one object a line; ``record`` says what each is."""
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
    def from_json_lines(cls, lines: Iterable[str]) -> Report:
        """The report that was written so; ValueError says what is wrong with the lines."""
        report: Report | None = None
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                entry = without_seconds(json.loads(line))
                record = entry.pop("record")
                if report is None:
                    if record != "report":
                        raise ValueError("the first record is not that of a report")
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
    def read(cls, path: str | Path) -> Report:
        """Read a report, given as its file or its folder.

        Raises :class:`~mxwire.errors.MxwireError` where there is none, or what is there is none.
        """
        path = Path(path)
        file = path / REPORT_FILE if path.is_dir() else path
        try:
            with file.open(encoding="utf-8") as lines:
                return cls.from_json_lines(lines)
        except OSError as error:
            raise MxwireError(f"{file}: no report can be read: {error.strerror or error}") from None
        except ValueError as error:
            raise MxwireError(f"{file}: not a report of mxwire interop: {error}") from None

    def write(self, path: str | Path) -> Path:
        """Write it into a folder, or into a file; returns the file. The folder is made where it is missing."""
        path = Path(path)
        file = path if path.suffix == ".jsonl" else path / REPORT_FILE
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            draft = file.with_name(file.name + ".part")
            draft.write_text("".join(f"{line}\n" for line in self.to_json_lines()), encoding="utf-8")
            draft.replace(file)
        except OSError as error:
            raise MxwireError(f"{file}: the report cannot be written: {error.strerror or error}") from None
        return file


def cell_line(cell: Cell) -> str:
    """A cell as a line of JSON."""
    entry = {each.name: getattr(cell, each.name) for each in fields(cell)}
    entry["findings"] = [{**asdict(found), "host": mac_text(found.host)} for found in cell.findings]
    return _line("cell", entry)


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
