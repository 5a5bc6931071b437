"""Results: one declaration for JSON, tables and checkpoints."""

from __future__ import annotations

import json

from mxwire.report.document import plain
from mxwire.report.result import Result, column, internal, keys, packed, result, table, unpacked


@result()
class Inner(Result):
    size: int


@result("outer")
class Outer(Result):
    name: str = column(code=True)
    origin: str = column(key="from")
    inner: list[Inner] = column("sizes", right=True, text=lambda inner: ",".join(str(each.size) for each in inner))
    secret: int = internal(default=7)

    @property
    def muted(self) -> bool:
        return self.name == "dull"


FOUND = Outer("one", "here", [Inner(1), Inner(2)], secret=3)


def test_json_has_the_keys_of_the_declaration():
    assert FOUND.record() == {"record": "outer", "name": "one", "from": "here", "inner": [{"size": 1}, {"size": 2}]}
    assert [key for key, _ in keys(Outer)] == ["name", "from", "inner"]


def test_a_table_has_the_chosen_columns():
    made = table(Outer, [FOUND, Outer("dull", "there", [])], "name", "inner")
    assert plain([made]).split() == ["name", "sizes", "----", "-----", "one", "1,2", "dull"]
    assert [row.muted for row in made.rows] == [False, True]


def test_results_pass_through_json():
    assert unpacked(json.loads(json.dumps(packed([FOUND, 5, "text"])))) == [FOUND, 5, "text"]
