"""Results of live commands as blocks of a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from mxwire.report.document import Row, Table, columns_of
from mxwire.report.times import duration_text

_HOSTS: Final = columns_of("`address, `name, #index, dialect, #answer, ~remarks")


def hosts_table(records: Sequence[Mapping[str, Any]]) -> Table:
    """A table of discovered hosts, from their JSON records."""
    return Table(_HOSTS, tuple(_host(each) for each in records))


def _host(record: Mapping[str, Any]) -> Row:
    answer = "-" if record["answer_ns"] is None else duration_text(record["answer_ns"])
    index = "-" if record["index"] is None else str(record["index"])
    cells = (record["address"], record["name"] or "-", index, record["dialect"] or "-", answer, record["remark"] or "")
    return Row(cells, muted=record["name"] is None)
