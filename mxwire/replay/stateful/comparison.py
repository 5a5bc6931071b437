"""Findings: differences between a live frame and the recorded one, field by field, and rules that the live host breaks.

Not compared are fields that are undefined, free for the sender to choose (sessions, regions, handles, magics), or
dependent on time (acks); the rules check separately whether such values are valid.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from enum import Enum, StrEnum, auto
from typing import Any, Final

from mxwire.ethernet import mac_text
from mxwire.rules import Judge
from mxwire.rules.vantage import Vantage
from mxwire.texts import table_rows
from mxwire.wire import packets
from mxwire.wire.codec import codec_of
from mxwire.wire.dialect import Dialect


class Cause(StrEnum):
    """Cause of a difference."""

    PROTOCOL = "protocol"
    """The host answers differently, whatever its application does."""
    APPLICATION = "application"
    """The application on the host differs: it sends other messages, posts other receives, or is absent."""
    RULE = "rule"
    """A rule of the specification is broken, whatever the recorded host did."""


@dataclass(frozen=True, slots=True)
class ReplayFinding:
    """One difference."""

    kind: Cause
    rule: str
    """Number of the rule that requires the recorded behaviour; empty if applications are free to choose."""
    field: str
    """The field that differs, for example ``Tiny.session``; empty if none."""
    frame: int
    """Number in the capture of the expected frame; 0 if there is none."""
    expected: str
    found: str

    def __str__(self) -> str:
        """Describe the difference in one line."""
        what = f"{self.field}: " if self.field else ""
        where = f" (recorded frame {self.frame})" if self.frame else ""
        return f"{what}{self.found}, expected {self.expected}{where}"


class FieldRelation(Enum):
    """Relation between a field of a live frame and that of the recorded one."""

    SAME = auto()
    """Equal."""
    FREE = auto()
    """Chosen by its sender, dependent on time, or undefined."""
    INDEX = auto()
    """The peer index that the receiver assigned."""
    MINE = auto()
    """An endpoint of the played host, with its recorded number."""
    LIVE = auto()
    """An endpoint of the live host, which may have another number."""
    SESSION = auto()
    """A session of the played host; "no session" is unchanged."""
    KEY = auto()
    """The key of an endpoint."""
    NUMBER = auto()
    """A sequence number of the played host."""
    CONTENT = auto()
    """Content that the application chooses."""


@dataclass(frozen=True, slots=True)
class FieldRequirement:
    """The relation required of a field, and the rule that requires it."""

    how: FieldRelation
    rule: str = ""


FieldRequirements = dict[str, FieldRequirement]
"""Required relations by field."""


def _read_fields() -> Iterator[tuple[type[packets.Frame], FieldRequirements]]:
    required: dict[str, FieldRequirements] = defaultdict(dict)
    for names, (those, relation, rule) in table_rows(__file__, "fields.md"):
        for name in names.split():
            required[name] |= dict.fromkeys(those.split(), FieldRequirement(FieldRelation[relation.upper()], rule))
    required["Truc"] = {each.name: FieldRequirement(FieldRelation.FREE) for each in fields(packets.Truc)}
    for name, requirements in required.items():
        yield getattr(packets, name), requirements


FIELDS: Final = dict(_read_fields())
"""Required relations by packet type and field (``fields.md``)."""

Meaning = Callable[[FieldRelation, int], Any]
"""Function from a relation and a recorded value to the value required now."""


def compare(live: Any, recorded: Any, cut: int, frame: int, meaning: Meaning) -> Iterator[ReplayFinding]:
    """Yield the differences between a live frame and a recorded one of the same type.

    ``cut`` is the number of bytes that the capture cut off the recorded frame, ``frame`` its number there.
    """
    name = type(recorded).__name__
    for field, rule in FIELDS[type(recorded)].items():
        if rule.how is FieldRelation.FREE:
            continue
        was, found = getattr(recorded, field), getattr(live, field)
        if field == "data" and cut:
            kept = max(0, len(was) - cut)
            was, found = was[:kept], found[:kept]
        if field == "data" and len(was) != len(found):
            # A truncated frame: the length field shows how many bytes there were.
            continue
        expected = meaning(rule.how, was)
        if expected is None or found == expected:
            continue
        application = rule.how in (FieldRelation.CONTENT, FieldRelation.KEY) or field == "connect_status_code"
        kind = Cause.APPLICATION if application else Cause.PROTOCOL
        yield ReplayFinding(kind, rule.rule, f"{name}.{field}", frame, _text(field, expected), _text(field, found))


_HEXADECIMAL: Final = ("session", "key", "magic", "handle", "match", "lib_seqnum", "ethertype")


def _text(field: str, value: Any) -> str:
    if isinstance(value, bytes):
        if field.endswith("_mac"):
            return mac_text(value)
        return value.hex() if len(value) <= 16 else f"{value[:16].hex()}… ({len(value)} bytes)"
    return f"{value:#x}" if any(each in field for each in _HEXADECIMAL) else str(value)


_VANTAGE: Final = Vantage(clock_ns=5_000_000, resends_maximum=None)
"""Vantage of the player's clock, at the played host."""

KeepCallback = Callable[[int, bytes], object]
"""Callback for each frame, with its time in ns."""


class RuleWatch:
    """Checks the frames of a live host against the rules of the specification, independently of the recording.

    ``host`` is its Ethernet address; ``keep`` receives all frames of both hosts.
    """

    def __init__(self, dialect: Dialect, host: bytes, keep: KeepCallback | None = None) -> None:
        self._codec = codec_of(dialect)
        self._judge = Judge(dialect, _VANTAGE)
        self._host = host
        self._keep = keep
        self._number = 0
        self.findings: list[ReplayFinding] = []
        """Rules that the live host has broken."""

    def see(self, now: int, raw: bytes) -> None:
        """Take a frame with its time in ns."""
        self._number += 1
        if self._keep is not None:
            self._keep(now, raw)
        for each in self._judge.observe(now, self._codec.parse(raw), raw, self._number):
            if each.host == self._host and each.severity == "violation":
                self.findings.append(ReplayFinding(Cause.RULE, each.rule, "", 0, each.expected, each.found))
