"""Files of hosts: their contents, and the errors for mistakes in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from mxwire.errors import MxwireError
from mxwire.interop.configuration import read_configuration
from mxwire.interop.live_matrix import plan
from mxwire.interop.matrix import CellSelection
from tests.cli.support import ROOT

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


PROGRAM = EXTERNAL + '[[external.program]]\nrole = "echo"\nstart = "x"\n'


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("left = 3", "left: 3 is not a table: [left]"),
        ("", "left: is missing: give a table: [left]"),
        ("x = [", "not TOML: "),
        ('[left]\ninterface = "a"\n', "right: is missing: give [right] with an interface, or [[external]] hosts"),
        ('[left]\ninterface = ""\n', "left.interface: is empty"),
        ("[left]\ninterface = 3\n", "left.interface: 3 is not a text"),
        ('[left]\ninterface = "a"\nmtu = 3\n', "left.mtu: unknown key"),
        ("colour = 3\n" + PAIR, "colour: unknown key"),
        ("mtu = 3\n" + PAIR, "mtu: 3 is not between 576 and 65535"),
        ("mtu = true\n" + PAIR, "mtu: True is not a number"),
        ("make = true\n" + PAIR, "make: needs left.namespace and right.namespace"),
        ('implementations = ["y"]\n' + PAIR, "implementations: unknown implementation 'y'"),
        ("implementations = [3]\n" + PAIR, "implementations: 3 is not a name"),
        ('cases = ["y"]\n' + PAIR, "cases: unknown case 'y'"),
        ('impairments = ["y"]\n' + PAIR, "impairments: unknown impairment 'y'"),
        ("external = [3]\n" + PAIR, "external: must be written as [[external]]"),
        (EXTERNAL + 'dialect = "z"\n', "external[1].dialect: no dialect 'z'"),
        (EXTERNAL + 'address = "z"\n', "external[1].address: "),
        ('[left]\ninterface = "a"\n[[external]]\nname = "x"\n', "external[1].host: is missing"),
        ('[left]\ninterface = "a"\n[[external]]\nname = "x/y"\nhost = "x"\n', "external[1].name: 'x/y': has no slash"),
        (EXTERNAL + '[[external]]\nname = "x"\nhost = "y"\n', "external: two hosts are called x"),
        (PROGRAM.replace("echo", "ping"), "external[1].program[1].role: 'ping' is not one of nothing, echo, "),
        (PROGRAM + 'answer = "x"\n', "external[1].program[1].answer: 'x' is not one of content, length"),
        (
            PROGRAM.replace("echo", "sink") + 'answer = "length"\n',
            "external[1].program[1].answer: a program for 'sink' does not answer",
        ),
        (PROGRAM + 'by = "mail"\n', "external[1].program[1].by: 'mail' is not one of command, ssh, serial, hand"),
        (
            PROGRAM + 'stop = "kill \'it"\n',
            'external[1].program[1].stop: "kill \'it" is not a command line: No closing',
        ),
        (PROGRAM + 'by = "ssh"\n', "external[1].program[1].target: is missing"),
        (PROGRAM + 'by = "serial"\n', "external[1].program[1].device: is missing"),
        (PROGRAM + "endpoint = 256\n", "external[1].program[1].endpoint: 256 is not between 0 and 255"),
        (PROGRAM + PROGRAM[len(EXTERNAL) :], "external[1].program[2].role: there are two programs for 'echo'"),
    ],
)
def test_a_mistake_is_reported_with_file_and_key(tmp_path, text, why):
    path = written(tmp_path, text)
    with pytest.raises(MxwireError) as error:
        read_configuration(path)
    assert str(error.value).startswith(f"{path}: {why}")
