"""A real browser to look at sites with."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

BROWSERS = ("chromium", "google-chrome", "chromium-browser", "chrome")


class Browser:
    """Opens pages, and keeps whatever they complain about."""

    def __init__(self, playwright_browser: Any) -> None:
        self._browser = playwright_browser

    @contextmanager
    def page(self, path: Path, *, width: int = 1280, height: int = 800, **options: Any) -> Iterator[Any]:
        """A page, open; anything on its console, and any request that fails, fails the test."""
        with self.context(width, height, **options) as context:
            page = context.new_page()
            complaints: list[str] = []
            page.on("console", lambda message: complaints.append(message.text))
            page.on("pageerror", lambda error: complaints.append(str(error)))
            page.on("requestfailed", lambda request: complaints.append(request.url))
            address, mark, place = str(path).partition("#")
            page.goto(Path(address).as_uri() + mark + place)
            yield page
            assert complaints == []

    @contextmanager
    def context(self, width: int, height: int, **options: Any) -> Iterator[Any]:
        context = self._browser.new_context(viewport={"width": width, "height": height}, **options)
        context.set_default_timeout(20_000)
        try:
            yield context
        finally:
            context.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A headless Chromium. For a module at a time: while it is there, no test of the process can use asyncio."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if program is None:
        pytest.skip("no Chromium is installed (apt-get install chromium)")
    options = ["--no-sandbox"] if os.geteuid() == 0 else []
    with playwright.sync_playwright() as running:
        launched = running.chromium.launch(executable_path=program, args=options)
        yield Browser(launched)
        launched.close()
