"""A real browser that opens sites."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

BROWSERS = ("chromium-headless-shell", "chromium", "google-chrome", "chromium-browser", "chrome")
"""In order of preference: the first draws pages and does nothing else, which takes a third of the time."""


class Browser:
    """Opens pages, and collects their errors."""

    def __init__(self, playwright_browser: Any) -> None:
        self._browser = playwright_browser
        self._tabs: dict[tuple[object, ...], Any] = {}

    @contextmanager
    def page(self, path: Path | str, *, width: int = 1280, height: int = 800, **options: Any) -> Iterator[Any]:
        """A page, open; anything on its console, and any request that fails, fails the test.

        Pages with the same options use one tab: a new one has a process of its own, which takes longer to start than
        to show a page.
        """
        kind = tuple(sorted(options.items()))
        page = self._tabs.pop(kind, None) or self._tab(options)
        page.set_viewport_size({"width": width, "height": height})
        complaints: list[str] = []
        listeners = {
            "console": lambda message: complaints.append(message.text),
            "pageerror": lambda error: complaints.append(str(error)),
            "requestfailed": lambda request: complaints.append(request.url),
        }
        try:
            for event, listener in listeners.items():
                page.on(event, listener)
            address, mark, place = str(path).partition("#")
            page.goto(Path(address).as_uri() + mark + place)
            yield page
            assert complaints == []
        except BaseException:
            page.context.close()
            raise
        for event, listener in listeners.items():
            page.remove_listener(event, listener)
        page.context.clear_permissions()
        page.emulate_media(media="null", color_scheme=options.get("color_scheme", "null"))
        page.goto("about:blank")
        self._tabs[kind] = page

    def _tab(self, options: dict[str, Any]) -> Any:
        context = self._browser.new_context(**options)
        context.set_default_timeout(20_000)
        return context.new_page()


def program() -> str | None:
    """The path of the browser, if one is installed."""
    return next((found for name in BROWSERS if (found := shutil.which(name))), None)


@contextmanager
def chromium() -> Iterator[Any]:
    """The browser of playwright, without a window."""
    from playwright.sync_api import sync_playwright

    options = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as running:
        launched = running.chromium.launch(executable_path=program(), args=options)
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A headless Chromium, for one module at a time: while it runs, tests in the same process cannot use asyncio."""
    pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if program() is None:
        pytest.skip("no Chromium is installed (apt-get install chromium)")
    with chromium() as launched:
        yield Browser(launched)
