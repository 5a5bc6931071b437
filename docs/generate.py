"""What the documentation takes from the program: command outputs, tables, and a page for each packet type.

A hook of mkdocs (see ``hooks`` in mkdocs.yml), so that none of it is written by hand or can be out of date. A page
says where something goes:

* an ``output`` comment with a command, ``<!-- output: mxwire info FILE -->``, becomes the command and what it prints;
  with ``| head -N`` or ``| sed -n A,Bp`` behind it only these lines;
* a Python block is run, and an ``<!-- output -->`` comment behind it becomes what the block prints;
* a ``generated`` comment, ``<!-- generated: NAME -->``, becomes what ``generated/NAME.py`` makes.

The commands and Python blocks of a page run in one new directory that has the shipped captures in it. ``rendering/``
does all that; here is only what mkdocs calls, which finds the modules of this folder while it loads this file.
"""

from __future__ import annotations

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


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the pages of the packet types where the navigation names their folder."""
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
