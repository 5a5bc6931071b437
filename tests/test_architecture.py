"""Imports run downwards only, and the rooms that compute do no I/O."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "mxwire"
MODULES = sorted(each.relative_to(PACKAGE.parent) for each in PACKAGE.rglob("*.py"))

GROUND = {
    "errors",
    "ethernet",
    "extras",
    "first_use",
    "frames",
    "latency_histogram",
    "native",
    "order_statistics",
    "structured",
    "units",
    "texts",
    "words",
}
"""Single modules that all rooms stand on; they import at most each other."""
MAY_IMPORT = {
    "errors": {"words"},
    "texts": set(),
    "words": set(),
    "latency_histogram": {"units"},
    "order_statistics": set(),
    "structured": set(),
    "units": set(),
    "ethernet": {"errors"},
    "native": set(),
    "extras": {"errors"},
    "first_use": set(),
    "frames": {"words"},
    "wire": GROUND,
    "capture": GROUND,
    "link": GROUND,
    "protocol": GROUND | {"wire"},
    "rules": GROUND | {"wire"},
    "simulation": GROUND | {"wire", "protocol", "rules"},
    "campaign": GROUND,
    "host": GROUND | {"wire", "protocol", "link"},
    "lab": GROUND | {"wire", "protocol", "link"},
    "replay": GROUND | {"wire", "protocol", "rules", "link"},
    "linerate": GROUND | {"wire", "protocol", "link", "lab", "host", "replay"},
    "myriexpress": GROUND | {"wire", "protocol", "link", "lab", "host"},
    "scenarios": GROUND | {"wire", "protocol", "rules", "link", "lab", "host", "simulation"},
    "analysis": GROUND | {"wire", "rules", "capture"},
    "report": GROUND | {"wire", "analysis", "rules"},
}
"""The rooms that each room may import, besides itself. Rooms that are not here may import all but ``cli``."""

OUTSIDE_WORLD = {
    "socket",
    "selectors",
    "select",
    "time",
    "subprocess",
    "signal",
    "threading",
    "asyncio",
    "multiprocessing",
}
UNROLLED = {Path("mxwire/wire/codec.py"): {"exec"}}
"""Modules that may generate a function as text, as dataclasses do: the one that builds frames runs for each of them."""
INPUT_AND_OUTPUT = OUTSIDE_WORLD | {
    "os",
    "io",
    "mmap",
    "pathlib",
    "shutil",
    "tempfile",
    "sys",
    "random",
    "gzip",
    "lzma",
}
TOUCHES_THE_WORLD = {
    "bench",
    "capture",
    "campaign",
    "scenarios",
    "cli",
    "plugin",
    "link",
    "lab",
    "host",
    "replay",
    "linerate",
    "interop",
    "myriexpress",
    "pytest_plugin",
    "pyshark",
    "__main__",
}


STAGE_AND_LIBRARY = {"live_run.py", "files.py", "shipped.py", "driver.py", "local_host.py"}
"""Of the scenarios: what has a clock, what reads files, and what starts processes."""


def room(module: Path) -> str:
    """The room a file lies in: ``wire`` for mxwire/wire/codec.py, ``frames`` for mxwire/frames.py."""
    return module.parts[1].removesuffix(".py")


@cache
def imports(module: Path) -> frozenset[str]:
    """Dotted names of everything a file imports, wherever in it."""
    return frozenset(_imports(module))


@cache
def tree(module: Path) -> ast.Module:
    """A file, absolute or relative to the folder of the package."""
    return ast.parse((PACKAGE.parent / module).read_text(encoding="utf-8"))


@cache
def nodes(module: Path) -> tuple[ast.AST, ...]:
    """All nodes of a file: several tests look at each."""
    return tuple(ast.walk(tree(module)))


def offences(look: Callable[[Path], Iterable[str]], modules: Iterable[Path] = MODULES) -> dict[str, list[str]]:
    """The offences in each module that has any. One test for all modules, since a test takes longer than a module."""
    found = {str(module): sorted(look(module)) for module in modules}
    assert found
    return {name: each for name, each in found.items() if each}


def tops(module: Path) -> set[str]:
    """The names of the packages that a file imports from."""
    return {name.split(".")[0] for name in imports(module)}


def _imports(module: Path) -> Iterator[str]:
    package = list(module.with_suffix("").parts[:-1])
    for node in nodes(module):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            name = ".".join([*base, *([node.module] if node.module else [])])
            yield name
            if name == "mxwire":
                yield from (f"mxwire.{each.name}" for each in node.names if (PACKAGE / each.name).is_dir())


def ours(module: Path) -> set[str]:
    """The rooms that a file imports from, other than its own."""
    rooms = {name.split(".")[1] for name in imports(module) if name.startswith("mxwire.")}
    return rooms - {room(module)}


def test_something_is_looked_at():
    assert {"wire", "capture", "frames", "errors", "cli"} <= {room(each) for each in MODULES}
    assert "wire" in ours(Path("mxwire/report/summary.py"))


def test_imports_run_downwards():
    judged = [each for each in MODULES if room(each) in MAY_IMPORT]
    assert offences(lambda module: ours(module) - MAY_IMPORT[room(module)], judged) == {}


def test_only_the_entry_points_import_the_commands():
    judged = [each for each in MODULES if room(each) not in ("cli", "__main__")]
    assert offences(lambda module: ours(module) & {"cli"}, judged) == {}


def test_the_script_at_the_root_only_calls_the_commands():
    names = {
        node.module
        for node in ast.walk(ast.parse((PACKAGE.parent / "cli.py").read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("mxwire")
    }
    assert names == {"mxwire.__main__"}


def test_no_sockets_and_clocks_below():
    judged = [each for each in MODULES if room(each) not in TOUCHES_THE_WORLD]
    assert offences(lambda module: tops(module) & OUTSIDE_WORLD, judged) == {}


def test_meaning_does_no_io():
    """``generate.py`` writes a source file and does not take part in decoding, ``index.py`` an index of the source."""

    def look(module):
        forbidden = INPUT_AND_OUTPUT - {"random"} if room(module) in ("protocol", "simulation") else INPUT_AND_OUTPUT
        calls = [node.func for node in nodes(module) if isinstance(node, ast.Call)]
        called = {each.id for each in calls if isinstance(each, ast.Name)}
        builtins = {"open", "print", "input", "exec", "eval"} - UNROLLED.get(module, set())
        return tops(module) & forbidden | called & builtins

    rooms = ("wire", "frames", "extras", "words", "protocol", "rules", "simulation")
    judged = [each for each in MODULES if room(each) in rooms and each.name not in ("generate.py", "index.py")]
    assert offences(look, judged) == {}


def test_randomness_is_passed_in():
    """A generator of its own may be made from a seed; the module's global one is never drawn from."""

    def look(module):
        return {
            f"line {node.lineno}: {ast.unparse(node)}"
            for node in nodes(module)
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "random"
        }

    assert offences(look, [each for each in MODULES if room(each) in ("protocol", "simulation")]) == {}


def test_scenarios_are_played_without_clock_and_files():
    """But for the live testbed, and for reading the texts."""
    judged = [each for each in MODULES if room(each) == "scenarios" and each.name not in STAGE_AND_LIBRARY]
    assert offences(lambda module: tops(module) & (INPUT_AND_OUTPUT - {"random"}), judged) == {}


@pytest.mark.parametrize("name", ["template", "slots", "accounting", "pacing", "rates", "search", "requirement"])
def test_line_rate_tests_compute_without_clock_and_files(name):
    """Frames, their accounting, and the decisions of searches; the rest runs them on interfaces."""
    assert tops(Path(f"mxwire/linerate/{name}.py")).isdisjoint(INPUT_AND_OUTPUT)


def test_nothing_in_wire_imports_the_generator():
    assert not [each for each in MODULES if "mxwire.wire.generate" in imports(each)]


REDRAWN = {"rich.progress", "rich.live", "rich.status"}
"""Modules that keep a display on the terminal, and redirect standard output through it unless that is disabled."""
DISPLAYS = Path("mxwire/cli/progress.py")


def test_one_module_has_the_displays_that_redraw_themselves():
    """So that nothing else can take standard output away from a pipe or a file."""
    judged = [each for each in MODULES if each != DISPLAYS]
    assert offences(lambda module: imports(module) & REDRAWN, judged) == {}


def test_no_display_takes_standard_output():
    made = [
        {each.arg: each.value for each in node.keywords}
        for node in nodes(DISPLAYS)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("Progress", "Live")
    ]
    assert len(made) == 2
    for keywords in made:
        for stream in ("redirect_stdout", "redirect_stderr"):
            value = keywords.get(stream)
            assert isinstance(value, ast.Constant) and value.value is False


def test_class_names_are_unique():
    """A name stands for one class in the whole package, private ones too, so a search for it finds one definition."""
    places: dict[str, list[str]] = {}
    for module in MODULES:
        for node in nodes(module):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name.lstrip("_"), []).append(str(module))
    assert len(places) > 500
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


LARGEST_CIRCLE = 3
"""Files that may import each other in a circle: two or three can still be read as one."""


def edges(module: Path) -> set[Path]:
    """The files that a file imports, wherever in it, and also for type checking only."""
    found: set[Path | None] = set()
    for node in nodes(module):
        if isinstance(node, ast.Import):
            found |= {_file(each.name) for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {_file(f"{node.module}.{each.name}") or _file(node.module) for each in node.names}
    return {each for each in found if each is not None} - {module}


def _file(name: str) -> Path | None:
    """The file of a module of the package; None for any other name."""
    path = Path(*name.split("."))
    return next((each for each in (path.with_suffix(".py"), path / "__init__.py") if each in MODULE_SET), None)


MODULE_SET = set(MODULES)


def circles() -> list[set[Path]]:
    """The sets of files that import each other in a circle (strongly connected components), by Tarjan's algorithm."""
    order: dict[Path, int] = {}
    lowest: dict[Path, int] = {}
    stack: list[Path] = []
    found: list[set[Path]] = []

    def visit(module: Path) -> None:
        order[module] = lowest[module] = len(order)
        stack.append(module)
        for other in sorted(edges(module)):
            if other not in order:
                visit(other)
                lowest[module] = min(lowest[module], lowest[other])
            elif other in stack:
                lowest[module] = min(lowest[module], order[other])
        if lowest[module] == order[module]:
            place = stack.index(module)
            found.append(set(stack[place:]))
            del stack[place:]

    for module in MODULES:
        if module not in order:
            visit(module)
    return [each for each in found if len(each) > 1]


def test_no_circle_of_imports_is_large():
    """Imports in functions and for type checking count: a file that needs another cannot be understood without it."""
    every = circles()
    assert {Path("mxwire/protocol/library/partner.py"), Path("mxwire/protocol/library/inbound.py")} <= set().union(
        *every
    )
    assert not [sorted(map(str, each)) for each in every if len(each) > LARGEST_CIRCLE]


NAMED_FILE = re.compile(r"`([\w.-]+(?:/[\w.-]+)*(?:/|\.py))`")


def _named_files() -> Iterator[tuple[str, Path, str]]:
    """The files and folders that the first comment of each room and the architecture page refer to."""
    for module in MODULES:
        if module.name == "__init__.py":
            text = ast.get_docstring(tree(module)) or ""
            yield from ((str(module), module.parent, name) for name in NAMED_FILE.findall(text))
    page = Path("docs/architecture.md")
    text = (PACKAGE.parent / page).read_text(encoding="utf-8")
    yield from ((str(page), Path(), name) for name in NAMED_FILE.findall(text) if name.startswith("mxwire/"))


def test_files_to_which_a_reader_is_sent_exist():
    named = list(_named_files())
    assert len(named) > 80
    root = PACKAGE.parent
    missing = [
        (where, name) for where, room, name in named if not any((root / at / name).exists() for at in (room, ""))
    ]
    assert not missing, "renamed or removed: correct the text"
