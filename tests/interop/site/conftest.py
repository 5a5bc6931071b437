"""Sites of reports, written once."""

from __future__ import annotations

from pathlib import Path

import pytest

from mxwire.interop.site import write_site
from tests.browser import Browser, browser

from . import samples

__all__ = ["Browser", "browser", "classes_site", "hostile_site", "site"]


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an ordinary report with its site."""
    folder = tmp_path_factory.mktemp("report")
    write_site(samples.ordinary(folder), folder)
    return folder


@pytest.fixture(scope="session")
def classes_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a report in which some classes of messages work."""
    folder = tmp_path_factory.mktemp("classes")
    write_site(samples.classes(), folder)
    return folder


@pytest.fixture(scope="session")
def hostile_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """That of a report that means harm."""
    folder = tmp_path_factory.mktemp("hostile")
    write_site(samples.hostile(folder), folder)
    return folder
