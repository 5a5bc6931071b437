"""Insert command outputs, generated tables, and a page for each packet type into the documentation.

A hook of mkdocs (see ``hooks`` in mkdocs.yml), so that these parts are always current. Pages contain markers:

* an ``output`` comment with a command, ``<!-- output: mxwire info FILE -->``, becomes the command and its output; with
  ``| head -N`` or ``| sed -n A,Bp`` at its end, only these lines;
* a Python block is run, and an ``<!-- output -->`` comment after it becomes its output;
* a block with a title is written to the file of that name, for the commands after it;
* a ``generated`` comment, ``<!-- generated: NAME -->``, becomes the result of ``generated/NAME.py``;
* a ``recorded`` comment, ``<!-- recorded: BENCHMARK: SERIES; SERIES -->``, becomes tables of what was measured
  (``benchmarks/recording.jsonl``); without series, of all of them. No page contains a measured figure of its own.

The commands and Python blocks of a page run in a new directory that contains ``captures`` and ``docs``. ``rendering/``
implements this; the functions here are called by mkdocs, which adds this folder to the module path.
"""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

from mxwire.errors import MxwireError
from mxwire.report.formats import type_names
from rendering.basics import PageError
from rendering.packet_pages import PACKET_PAGES, packet_pages
from rendering.page import render

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

# A site is many objects that all live until it is written: with the usual threshold, the collector takes 6% of the
# time.
gc.set_threshold(200_000)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Replace the folder of the packet types in the navigation by their pages."""
    pages = [f"{PACKET_PAGES}{name.lower()}.md" for name in type_names()]
    config.nav = _expanded(config.nav, pages)
    return config


def _expanded(entries: Any, pages: list[str]) -> Any:
    if isinstance(entries, dict):
        return {title: _expanded(below, pages) for title, below in entries.items()}
    if isinstance(entries, list):
        return [new for entry in entries for new in (pages if entry == PACKET_PAGES else [_expanded(entry, pages)])]
    return entries


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that exist only while the site is built."""
    from mkdocs.structure.files import File

    for name, text in packet_pages().items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Replace the markers of a page."""
    from mkdocs.exceptions import PluginError

    try:
        return render(markdown, page.file.src_uri)
    except (PageError, MxwireError) as error:
        raise PluginError(str(error)) from error
