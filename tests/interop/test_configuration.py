"""Files of hosts: their contents, and the errors for mistakes in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from mxwire.errors import MxwireError
from mxwire.interop.configuration import read_configuration
from mxwire.interop.live_matrix import plan
from mxwire.interop.matrix import CellSelection
from tests.cli.support import ROOT
from tests.examples import examples

EXAMPLES = ROOT / "examples"
PAIR = '[left]\ninterface = "a"\n[right]\ninterface = "b"\n'
EXTERNAL = '[left]\ninterface = "a"\n[[external]]\nname = "x"\nhost = "x:0"\n'


def written(folder: Path, text: str) -> str:
    path = folder / "hosts.toml"
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.stem)
def test_the_examples_are_well_formed(path):
    assert plan(read_configuration(str(path)), CellSelection())


def test_a_file_assigns_hosts_to_implementations(tmp_path):
    found = read_configuration(
        written(tmp_path, 'implementations = ["native-mx"]\ncases = ["sizes"]\nimpairments = ["loss"]\n' + EXTERNAL)
    )
    assert [each.kind for each in found.implementations] == ["live"]
    assert found.externals[0].taken_for.profile == "open-mx-1.5-as-found"
    orders = plan(found, CellSelection())
    assert {each.name for each in orders} >= {"native-mx/x/size-tiny/loss"}
    assert all(each.command.endswith(found.path) for each in orders)
    chosen = plan(found, CellSelection(cases=("connect",), impairments=("none",), implementations=("native-mx", "x")))
    assert [each.name for each in chosen] == ["native-mx/x/connect/none"]
    for one in ("native-mx", "x"):
        (alone,) = plan(found, CellSelection(cases=("connect",), impairments=("none",), implementations=(one,)))
        assert alone.name == "native-mx/x/connect/none"
    with pytest.raises(MxwireError, match="unknown host 'y': use native-mx, x"):
        plan(found, CellSelection(implementations=("y",)))


def test_mxwire_plays_itself_where_there_are_two_interfaces(tmp_path):
    found = read_configuration(written(tmp_path, 'implementations = ["native-mx", "open-mx-1.5"]\n' + PAIR))
    orders = plan(found, CellSelection(cases=("connect",)))
    assert [(each.left.name, each.right.name) for each in orders] == [
        ("native-mx", "native-mx"),
        ("native-mx", "open-mx-1.5"),
        ("open-mx-1.5", "native-mx"),
        ("open-mx-1.5", "open-mx-1.5"),
    ]


def test_a_program_answers_as_its_role_unless_the_file_differs(tmp_path):
    text = EXTERNAL + "".join(
        f'[[external.program]]\nrole = "{role}"\nstart = "x"\n' for role in ("echo", "perf", "sink")
    )
    (found,) = read_configuration(written(tmp_path, text)).externals
    assert {role: each.answer for role, each in found.programs.items()} == {
        "echo": "content",
        "perf": "length",
        "sink": "content",
    }
    text = text.replace('"perf"\n', '"perf"\nanswer = "content"\n').replace('"echo"\n', '"echo"\nanswer = "length"\n')
    (found,) = read_configuration(written(tmp_path, text)).externals
    assert (found.programs["echo"].answer, found.programs["perf"].answer) == ("length", "content")


@pytest.mark.parametrize(("text", "why"), examples(__file__, "configuration-mistakes.txt"))
def test_a_mistake_is_reported_with_file_and_key(tmp_path, text, why):
    path = written(tmp_path, f"{text}\n".replace("PAIR\n", PAIR).replace("EXTERNAL\n", EXTERNAL))
    with pytest.raises(MxwireError) as error:
        read_configuration(path)
    assert str(error.value).startswith(f"{path}: {why}")
