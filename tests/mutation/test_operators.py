"""The operators of automatic mutants, and the places of their changes."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.mutation import operators
from tests.mutation.__main__ import Results, sample_of
from tests.mutation.player import ChangedModule

CASES = {
    "comparison": ("return a < b <= c", {"a <= b <= c", "a < b < c"}),
    "arithmetic": ("return a << b", {"a >> b"}),
    "constant": ("return f(1, True)", {"2", "False"}),
    "boolean": ("return not a and b", {"a", "not a or b"}),
    "condition": ("return [a for a in b if a]", {"True"}),
    "return": ("return a", {"return None"}),
    "deletion": ("a.b = 1\n    raise a", {"pass"}),
}


@pytest.mark.parametrize("operator", CASES)
def test_each_operator_has_its_changes(operator: str) -> None:
    body, expected = CASES[operator]
    tree = ast.parse(f'def f(a, b, c):\n    """Text."""\n    assert a > 0, "1"\n    {body}\n')
    found = [each for each in operators.mutants_of("wire/file.py", tree) if each.operator == operator]
    assert {each.change.partition(" → ")[2] for each in found} == expected
    assert len({each.name for each in found}) == len(found)


def test_a_change_is_applied_where_it_was_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file.py").write_text("class C:\n    def f(self, a):\n        return [each + 1 for each in a]\n")
    monkeypatch.setattr(operators, "PACKAGE", tmp_path)
    module = ChangedModule.of("file.py", "file.py:C.f:arithmetic:0")
    space: dict[str, type] = {}
    exec(module.code, space)
    assert space["C"]().f([3]) == [2]
    assert {each.co_name for each in module.functions} == {"C", "f", "<listcomp>"} & {
        each.co_name for each in module.functions.values()
    }


def test_a_larger_sample_contains_a_smaller_one() -> None:
    large = [each.name for each in sample_of("wire", 50, 1)]
    assert (
        [each.name for each in sample_of("wire", 20, 1)]
        == large[:20]
        != [each.name for each in sample_of("wire", 20, 2)]
    )


@pytest.mark.parametrize("name", ["recording.jsonl", "recording.jsonl.gz"])
def test_a_recording_is_read_again_for_the_same_change(tmp_path: Path, name: str) -> None:
    mutant, other = sample_of("wire", 2, 1)
    results = Results(tmp_path / name, first=True)
    test = "tests/wire/test_codec.py::test_it"
    results.lines[mutant.name] = results.line(mutant, [test], [[test, "fails"]])
    results.store()
    again = Results(tmp_path / name, first=True)
    assert again.has(mutant) and not again.has(other)
    assert not Results(tmp_path / name, first=False).has(mutant), "its other killers are not known"
    again.lines[mutant.name]["change"] = "before → after"
    assert not again.has(mutant)
