"""The documentation is built without complaint, and it shows the program's actual output."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import click
import pytest
from packaging.requirements import Requirement

from mxwire.cli.main import COMMANDS, cli
from mxwire.report.formats import type_names, views
from tests.browser import Browser, browser
from tests.docs.maker import DOCS, PARTS, PageError, output, packet_pages, refreshed, render
from tests.forked import start

__all__ = ["browser"]

ROOT = Path(__file__).resolve().parents[2]
REAL_RUN = output.run
PAGES = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md") if "reference" not in path.parts)


@pytest.fixture(scope="session", autouse=True)
def made_pages(run_folder: Path) -> Iterator[None]:
    """Pages are made once, for their own tests and for the site."""
    folder = run_folder / "made-pages"
    folder.mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MXWIRE_DOCS_MADE", str(folder))
        patch.setattr(output, "run", run_forked)
        yield


def run_forked(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    """Run mxwire as the generator does, but forked."""
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "encoding": "utf-8"}
    process = start([sys.executable, "-m", "mxwire", *arguments], env=os.environ | output.ENVIRONMENT, **streams)
    assert process is not None
    with process:
        text, _ = process.communicate(timeout=120)
    return subprocess.CompletedProcess(arguments, process.returncode, text)


def test_a_fork_prints_the_output_of_the_real_command() -> None:
    assert output.run is run_forked
    done = REAL_RUN(["--version"])
    assert (done.returncode, done.stdout) == (0, run_forked(["--version"]).stdout)


@pytest.mark.parametrize("page", PAGES)
def test_commands_and_snippets_of_a_page_run(page: str) -> None:
    """Every Python block is executed and every command is run; each failure names its page and line."""
    made = render((DOCS / page).read_text(encoding="utf-8"), page)
    assert "<!-- output" not in made and "<!-- generated" not in made, "a marker that nobody understands"
    assert "Traceback" not in made


def test_the_library_guide_has_snippets() -> None:
    text = (DOCS / "library.md").read_text(encoding="utf-8")
    assert text.count("```python") >= 15
    assert all(word in text for word in ("open_capture", "create_capture", "Decoder(", "build(", "Malformed(", "omx("))


@pytest.mark.parametrize("page", ["docs/architecture.md", "CONTRIBUTING.md"])
def test_the_drawing_of_the_house_has_every_room(page: str) -> None:
    drawing = (ROOT / page).read_text(encoding="utf-8").split("```text")[1].split("```")[0]
    rooms = [path.parent.name for path in (ROOT / "mxwire").glob("*/__init__.py")]
    assert [room for room in [*rooms, "frames", "errors"] if room not in drawing] == []


def test_a_failing_snippet_is_reported_with_its_place() -> None:
    with pytest.raises(PageError, match=r"page\.md: the Python block in line 3 fails: ZeroDivisionError"):
        render("One\n\n```python\n1 / 0\n```\n", "page.md")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("<!-- output: mxwire decode nowhere.pcap -->", "ends with exit code 2: mxwire: nowhere.pcap"),
        ("<!-- output: rm -r captures -->", "only mxwire commands are run"),
        ("<!-- generated: nonsense -->", "there is no part 'nonsense'"),
    ],
)
def test_a_failing_marker_is_reported_with_its_command(text: str, complaint: str) -> None:
    with pytest.raises(PageError, match=complaint):
        render(text, "page.md")


def test_head_keeps_the_first_lines() -> None:
    made = render("<!-- output: mxwire formats | head -2 -->", "page.md").splitlines()
    assert made[1] == "$ mxwire formats"
    assert len(made) == 6 and made[-2:] == ["…", "```"]


def test_sed_keeps_the_lines_in_between() -> None:
    whole = render("<!-- output: mxwire formats -->", "page.md").splitlines()
    made = render("<!-- output: mxwire formats | sed -n 3,4p -->", "page.md").splitlines()
    assert made == [*whole[:2], "…", *whole[4:6], "…", "```"]
    with pytest.raises(PageError, match="there is no line 999"):
        render("<!-- output: mxwire formats | sed -n 999,1000p -->", "page.md")


def test_the_readme_shows_commands() -> None:
    """``make check`` runs them, and compares their output."""
    assert (ROOT / "README.md").read_text(encoding="utf-8").count("<!-- output: ") >= 3


def test_a_refreshed_page_keeps_its_markers_and_replaces_stale_output() -> None:
    marker = "<!-- output: mxwire --version -->"
    made = refreshed(f"One\n\n{marker}\n\nTwo\n", "page.md")
    assert made.startswith(f"One\n\n{marker}\n\n```console\n$ mxwire --version\n") and made.endswith("```\n\nTwo\n")
    stale = re.sub(r"\d+\.\d+", "0.0", made)
    assert stale != made
    assert refreshed(stale, "page.md") == refreshed(made, "page.md") == made


def test_pages_have_no_measured_figures_of_their_own() -> None:
    """Those of the papers' claims come from another recording, and bench.md quotes the papers."""
    figure = re.compile(r"\d[\d.,]*\s(?:µs|MB/s|s/GB|messages/s|messages\sper\ssecond)\b|\d\stimes\sas\s(?:fast|slow)")
    pages = [each for each in DOCS.glob("*.md") if each.name not in ("bench.md", "studies.md")]
    for page in [*pages, ROOT / "README.md"]:
        text = re.sub(
            r"(?ms)^ *```.*?^ *```$|`[^`\n]*`|^<!-- generated.*?^<!-- end -->$", "", page.read_text(encoding="utf-8")
        )
        assert figure.findall(text) == [], page.name


SHOWN = {"half round trip": "µs", "windowed rate": "MB/s"}


def test_measured_figures_are_those_of_the_recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mxwire.bench.record import Conditions, Measurement, Recording, Series
    from rendering import recorded

    points = [
        Measurement("mxoe", "µs", (3.0, 4.0, 90.0), {"size": 129}),
        Measurement("tcp", "µs", (5.0,), {"size": 129}),
    ]
    series = [
        Series("half round trip", "µs", measurements=points),
        Series("windowed rate", "MB/s", measurements=points),
    ]
    Recording("curve", Conditions("2026-11-01", processor="P", load=0.25), series).write(tmp_path / "recording.jsonl")
    page = "<!-- recorded: curve: half round trip -->\n\n<!-- recorded: curve -->\n"
    recorded.recordings.cache_clear()
    monkeypatch.setattr(recorded, "RECORDING", tmp_path / "recording.jsonl")
    try:
        made = render(page, "page.md")
        once = refreshed("<!-- recorded: curve: half round trip -->\n\nafter\n", "page.md")
        assert made.count("Half round trip, µs") == 2 and made.count("Windowed rate, MB/s") == 1
        assert "4 ±" in made and "on 2026-11-01" in made and "load 0.25" in made
        assert once.endswith("<!-- end -->\n\nafter\n") and refreshed(once, "page.md") == once
        short = refreshed("<!-- generated: curve in short -->\n\n<!-- end -->\n", "page.md")
        assert "| 129 | 4 |" in re.sub(" +", " ", short)
        with pytest.raises(PageError, match="no series"):
            render("<!-- recorded: curve: luck -->\n", "page.md")
        with pytest.raises(PageError, match="no benchmark luck"):
            render("<!-- recorded: luck -->\n", "page.md")
    finally:
        recorded.recordings.cache_clear()


def test_the_command_reference_has_every_option() -> None:
    reference = PARTS["commands"]()
    context = click.Context(cli, info_name="mxwire")
    for name in COMMANDS:
        command = cli.get_command(context, name)
        assert command is not None
        assert f"## mxwire {name}\n" in reference
        for parameter in command.params:
            for option in parameter.opts if isinstance(parameter, click.Option) and not parameter.hidden else []:
                assert f"{option}" in reference


@pytest.mark.parametrize("name", type_names())
def test_every_packet_type_has_a_page_with_all_its_fields(name: str) -> None:
    page = packet_pages()[f"protocol/{name.lower()}.md"]
    assert page.startswith(f"# {name} (")
    for view in views(name):
        for field in view.layout.fields:
            assert f"| `{field.name}` |" in page
    assert f"--type {name} --count 1" in page


@pytest.mark.longest
def test_the_site(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """One test, since the site takes long to build. Pages that no test has rendered yet are rendered first, forked."""
    pytest.importorskip("mkdocs", reason="mkdocs is not installed")
    pytest.importorskip("material", reason="mkdocs-material is not installed")
    folder = tmp_path / "site"
    for page in PAGES:
        render((DOCS / page).read_text(encoding="utf-8"), page)
    for page, text in packet_pages().items():
        render(text, page)
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    is_complete(folder)
    loads_nothing_from_the_network(folder)
    has_all_characters(folder)
    has_whole_links(folder)
    # Last: without a browser the test is skipped here.
    browser: Browser = request.getfixturevalue("browser")
    is_searched_without_a_server(folder, browser)
    shows_the_first_example_whole(folder, browser)
    fits_a_phone(folder, browser)
    follows_the_scheme(folder, browser)


def is_complete(site: Path) -> None:
    pages = {path.relative_to(site).as_posix() for path in site.rglob("*.html")} - {"404.html"}
    expected = {page.removesuffix(".md") for page in PAGES} | {f"protocol/{name.lower()}" for name in type_names()}
    assert pages == {f"{page}.html" for page in expected}
    assert not list(site.rglob("*.py"))


def loads_nothing_from_the_network(site: Path) -> None:
    loads = re.compile(
        r"<(?:script|img|iframe)[^>]*\ssrc=\"?(?:https?:)?//|<link[^>]*rel=\"?(?:stylesheet|preconnect)"
        r"[^>]*href=\"?(?:https?:)?//"
    )
    for page in site.rglob("*.html"):
        assert not loads.search(page.read_text(encoding="utf-8")), f"{page.name} loads from the network"
    for sheet in site.rglob("*.css"):
        assert not re.search(r"@import\s+url\(\"?https?:|url\(\"?https?:", sheet.read_text(encoding="utf-8"))


def has_all_characters(site: Path) -> None:
    """Characters that mean something to Markdown or HTML arrive as they were meant."""
    page = (site / "protocol" / "medium.html").read_text(encoding="utf-8")
    assert "frag_seqnum &lt;&lt; frag_pipeline" in page
    for path in site.rglob("*.html"):
        assert "\\_" not in path.read_text(encoding="utf-8"), path.name


def is_searched_without_a_server(site: Path, browser: Browser) -> None:
    """Opened from disk: what is typed gives results, found by a part of a field's name too, and they lead somewhere."""
    result = ".md-search-result__item a"
    # One page for both widths: it takes a second to build its index.
    with browser.page(site / "protocol" / "pull.html", width=390) as page:
        page.click("label[for=__search]")
        page.click(".md-search__input")
        page.keyboard.type("pipeline")
        page.wait_for_selector(result)
        found = page.eval_on_selector_all(result, "links => links.map(link => link.href)")
        assert any("/protocol/medium.html" in each for each in found), found
        page.click(result, trial=True)
        page.set_viewport_size({"width": 1360, "height": 800})
        page.click(".md-search__input")
        page.click(result)
        page.wait_for_url(lambda address: "pull.html" not in address)
        assert page.url.startswith(site.as_uri()) and page.title()


def shows_the_first_example_whole(site: Path, browser: Browser) -> None:
    for width in (1360, 390):
        with browser.page(site / "index.html", width=width) as page:
            assert page.evaluate(
                "() => { const code = document.querySelector('pre > code');"
                " return code.scrollWidth <= code.clientWidth; }"
            )


def test_each_extra_for_users_is_explained_with_its_size_and_part_of_all() -> None:
    rows = re.findall(r"^\| `(\w+)` \| \S.* \| (\d+) MB \|$", PARTS["extras"](), re.MULTILINE)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    users = extras.keys() - {"compile", "docs", "test"}
    assert {extra for extra, _ in rows} == users
    assert set(Requirement(extras["all"][0]).extras) == users - {"all"}
    assert max(rows, key=lambda row: int(row[1]))[0] == "all"


def pages_of(site: Path) -> list[Path]:
    """Return the pages, without that of errors, which a server returns for any address."""
    return sorted(path for path in site.rglob("*.html") if path.name != "404.html")


class LinkParser(HTMLParser):
    """Collects the links, pictures and anchors of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.links.add(value)
            elif name == "id" or (name == "name" and tag == "a"):
                self.anchors.add(value or "")


def has_whole_links(site: Path) -> None:
    """Links between pages, and to pictures, lead to a file and an anchor that exist."""
    pages = {}
    for path in pages_of(site):
        pages[path] = LinkParser()
        pages[path].feed(path.read_text(encoding="utf-8"))
    broken = []
    for path, page in pages.items():
        for link in page.links:
            address = urlsplit(link)
            if address.scheme or address.netloc:
                continue
            target = Path(os.path.normpath(path.parent / unquote(address.path))) if address.path else path
            target = target / "index.html" if target.is_dir() else target
            found = pages.get(target)
            anchor = unquote(address.fragment)
            if not target.is_file() or (found and anchor and anchor not in found.anchors):
                broken.append(f"{path.relative_to(site)}: {link}")
    assert broken == []


def fits_a_phone(site: Path, browser: Browser) -> None:
    """No page is wider than a phone: what is wide, such as output and tables, is scrolled by itself."""
    wide = []
    for path in pages_of(site):
        # Without scripts, which make no page narrower, it takes a third of the time.
        with browser.page(path, width=390, java_script_enabled=False) as page:
            width = page.evaluate("() => document.documentElement.scrollWidth")
            missing = page.evaluate(
                "() => [...document.images].filter(each => !each.naturalWidth).map(each => each.src)"
            )
        if width > 390 or missing:
            wide.append(f"{path.relative_to(site)}: {width} pixels, {missing}")
    assert wide == []


def follows_the_scheme(site: Path, browser: Browser) -> None:
    shades = []
    for scheme in ("light", "dark"):
        with browser.page(site / "sick-cluster.html", width=390, color_scheme=scheme) as page:
            colour = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
            shades.append(sum(map(int, re.findall(r"\d+", colour)[:3])))
    assert shades[0] > 600 and shades[1] < 200
