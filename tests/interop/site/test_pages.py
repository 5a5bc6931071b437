"""The pages as files: every link leads somewhere, nothing is loaded from other sites, and errors take one line."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

from mxwire.errors import MxwireError
from mxwire.interop.cell_player import CellOrder, play_simulated
from mxwire.interop.implementations import implementation_by_name
from mxwire.interop.result import CAPTURES, INTERRUPTED, InteropReport
from mxwire.interop.site import write, write_site
from mxwire.report.site.pages import FileNames

from . import samples


class Page(HTMLParser):
    """The links of a page, the targets on it, and its outline."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.references: list[str] = []
        self.names: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.tags.append((tag, found))
        self.references += [found[each] or "" for each in ("href", "src") if each in found]
        self.names += [found["id"] or ""] if "id" in found else []


@cache
def pages(folder: Path) -> list[tuple[Path, Page]]:
    return [(path, Page(path)) for path in sorted(folder.rglob("*.html"))]


@pytest.mark.parametrize("which", ["site", "hostile_site"])
def test_every_link_leads_to_something_in_the_folder(which, request):
    folder = request.getfixturevalue(which)
    found = dict(pages(folder))
    checked = 0
    for path, page in found.items():
        assert len(page.names) == len(set(page.names)), f"{path.name} has a name twice"
        for reference in page.references:
            if reference == "data:,":
                continue
            address, _, name = reference.partition("#")
            target = (path.parent / unquote(address)).resolve() if address else path
            assert target.is_relative_to(folder) and target.is_file(), f"{path.name}: {reference}"
            if name:
                assert unquote(name) in found[target].names, f"{path.name}: {reference}"
            checked += 1
    assert checked > 30


def test_nothing_comes_from_elsewhere(site):
    for path in site.rglob("*"):
        # The library mentions addresses in its notices; the policy of each page lets it load nothing.
        if path.suffix in (".html", ".css", ".js") and path.name != "bokeh.js":
            assert not re.findall(r"https?:|url\(|@import|//cdn", path.read_text(encoding="utf-8")), path


def test_the_policy_of_each_page_forbids_other_places(site):
    for path, page in pages(site):
        (policy,) = (each["content"] for tag, each in page.tags if each.get("http-equiv") == "Content-Security-Policy")
        assert policy.startswith("default-src 'none';") and "script-src 'self' file:;" in policy, path
        assert "http" not in policy and "*" not in policy


def test_every_page_is_built_for_all_readers(site):
    for path, page in pages(site):
        tags = [tag for tag, _ in page.tags]
        assert ("html", {"lang": "en"}) in page.tags, path
        assert tags.count("h1") == tags.count("main") == tags.count("title") == 1, path
        assert all(found.get("scope") for tag, found in page.tags if tag == "th"), path
        assert not [found for tag, found in page.tags for each in found if each.startswith("on")], "a script in a tag"
        assert not [found for _, found in page.tags if "style" in found], "looks are for the style sheet"


def test_an_exchange_of_some_size_makes_small_pages(site):
    sizes = {path.name: path.stat().st_size for path in (site / "cells").iterdir()}
    assert max(sizes.values()) < 100_000, sizes
    assert (site / "frames" / "native-mx--open-mx-1.5--large-lossy--loss.html").is_file()
    assert len(list((site / "frames").iterdir())) == 2, "only long exchanges have a page with all frames"


def test_a_missing_capture_is_reported_on_the_page(tmp_path):
    report = samples.ordinary(tmp_path)
    (tmp_path / CAPTURES / report.cells[0].capture).unlink()
    (tmp_path / CAPTURES / report.cells[1].capture).write_bytes(b"not a capture")
    write_site(report, tmp_path)
    for place, words in ((0, "The capture cannot be shown"), (1, "The capture cannot be shown"), (5, "No frames were")):
        name = report.cells[place].name.replace("/", "--")
        text = (tmp_path / "cells" / f"{name}.html").read_text()
        assert words in text and "<svg" not in text


def test_a_report_without_cells_and_one_that_names_nothing_have_pages(tmp_path):
    write_site(InteropReport("empty", "1", "never"), tmp_path / "empty")
    assert "no seeds" in (tmp_path / "empty" / "index.html").read_text()
    report = samples.ordinary(tmp_path)
    report.cases, report.impairments, report.implementations = [], [], []
    write_site(report, tmp_path)
    assert "large-lossy" in (tmp_path / "index.html").read_text()


def test_cells_that_an_interrupted_run_has_not_tried_are_in_the_matrix_without_a_page(tmp_path):
    report = samples.ordinary(tmp_path)
    report.cells[2:] = [replace(each, verdict="missing", reason=INTERRUPTED, capture=None) for each in report.cells[2:]]
    write_site(report, tmp_path)
    assert len(list((tmp_path / "cells").iterdir())) == 2
    found = Page(tmp_path / "index.html")
    assert sum(reference.startswith("cells/") for reference in found.references) == 2
    assert sum(each.get("title") == INTERRUPTED for tag, each in found.tags if tag == "span") == 4
    case = Page(tmp_path / "cases" / "large-lossy.html")
    assert not any("cells/" in reference for reference in case.references)


def test_writing_again_leaves_nothing_of_before(tmp_path):
    report = samples.ordinary(tmp_path)
    write_site(report, tmp_path)
    report.cells = report.cells[:1]
    write_site(report, tmp_path)
    assert len(list((tmp_path / "cells").iterdir())) == 1
    assert len(list((tmp_path / CAPTURES).iterdir())) == 5, "captures are not its own"


def test_a_folder_that_cannot_be_written_is_reported(tmp_path):
    (tmp_path / "cells").write_text("in the way")
    with pytest.raises(MxwireError, match=r"cells: cannot be written: File exists"):
        write_site(InteropReport("a", "1", "now"), tmp_path)


def test_the_same_report_makes_the_same_site_in_any_number_of_processes(tmp_path, monkeypatch):
    monkeypatch.setattr(write, "CELLS_OF_A_JOB", 2)
    made = []
    for name, jobs in (("one", 1), ("two", 1), ("three", 2)):
        folder = tmp_path / name
        write_site(samples.ordinary(folder), folder, jobs=jobs)
        made.append({each.relative_to(folder): each.read_bytes() for each in folder.rglob("*.*") if each.is_file()})
    assert made[0] == made[1] == made[2] and len(made[0]) > 15


def test_names_of_pages_are_harmless_and_differ():
    names = FileNames()
    made = [names.of(each) for each in ("a/b", "a b", "A-B", "../..", "", "\0", "x" * 400, "x" * 400 + "y", "ü")]
    assert made == [
        "a-b.html",
        "a-b-2.html",
        "A-B-3.html",
        "unnamed.html",
        "unnamed-2.html",
        "unnamed-3.html",
        "x" * 120 + ".html",
        "x" * 120 + "-2.html",
        "unnamed-4.html",
    ]


def test_cells_of_one_name_have_a_page_each(tmp_path):
    report = samples.ordinary(tmp_path)
    report.cells = [replace(report.cells[0], seed=seed) for seed in (1, 2)]
    write_site(report, tmp_path)
    assert len(list((tmp_path / "cells").iterdir())) == 2


def test_templates_are_loaded_only_when_a_site_is_written():
    program = "import sys, mxwire.cli.main, mxwire.interop.result; print('jinja2' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "False", done.stderr
    package = samples.ROOT / "mxwire"
    for path in [*package.glob("interop/*.py"), *package.glob("cli/*.py")]:
        outermost = ast.parse(path.read_text()).body
        names = [each.module or "" for each in outermost if isinstance(each, ast.ImportFrom)]
        assert not [each for each in names if each.startswith("mxwire.interop.site")], path


def test_a_page_shows_the_recording_of_the_matrix(tmp_path):
    one, two = (implementation_by_name(each) for each in ("open-mx-1.5", "native-mx"))
    report = InteropReport("one cell", "1", "now", implementations=[one, two])
    (tmp_path / CAPTURES).mkdir()
    report.cells.append(play_simulated(CellOrder(one, two, "lost-middle-reply", "none", 1), tmp_path / CAPTURES))
    write_site(report, tmp_path)
    (page,) = (tmp_path / "cells").iterdir()
    text = page.read_text(encoding="utf-8")
    assert text.count('<tspan class="fate">LOST</tspan> <tspan>PULL_REPLY</tspan>') == 1
    assert text.count("<em>lost in the network</em>") == 1
    assert re.findall(r'<text class="host[^"]*" [^>]*>([^<]*)</text>', text) == ["ms", "left", "right"]
    assert "mxwire interop --cell open-mx-1.5/native-mx/lost-middle-reply/none --seed 1" in text
