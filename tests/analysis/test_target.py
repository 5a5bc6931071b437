"""The formats of tables and figures."""

from __future__ import annotations

from pathlib import Path

import pytest

from mxwire.analysis.table_file import check_format
from mxwire.errors import MxwireError


def test_a_format_is_known_by_the_end_of_the_name():
    check_format(Path("a.CSV"), "table format", (".csv", ".arrow"))
    with pytest.raises(MxwireError, match=r"^a\.xls: no table format for \.xls: use one of \.csv, \.arrow$"):
        check_format(Path("a.xls"), "table format", (".csv", ".arrow"))
    with pytest.raises(MxwireError, match="no figure for a name without suffix"):
        check_format(Path("csv"), "figure", (".svg",))
