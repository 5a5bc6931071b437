"""Reports of captures, written once."""

from __future__ import annotations

from pathlib import Path

import pytest

from mxwire.wire.codec import build
from mxwire.wire.dialect import MXOE
from mxwire.wire.packets import HostReply, Tiny
from tests.browser import Browser, browser
from tests.captures import write_capture
from tests.cli.support import CAPTURES, mxwire
from tests.frames import make_frame

__all__ = ["Browser", "browser", "hostile", "lossy"]

EVIL = "</script><script>window.harmed=1</script><img src=x onerror='window.harmed=1'>$x^2$"


@pytest.fixture(scope="session")
def lossy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a capture with two large messages and losses."""
    folder = tmp_path_factory.mktemp("lossy") / "report"
    assert mxwire("report", CAPTURES / "mxoe-lossy-1M.pcap", "--html", folder).code == 0
    return folder


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a capture of which the file and a host have names that are markup."""
    folder = tmp_path_factory.mktemp("hostile")
    name = EVIL.encode()[-60:] + b"\0"
    frames = [make_frame(HostReply, hostname=name), make_frame(Tiny, data=b"<b>x")]
    path = write_capture(
        folder / "<img src=x onerror=harmed>.pcapng", [build(each, MXOE) for each in frames], [0, 10**6]
    )
    assert mxwire("report", path, "--html", folder / "report").code == 0
    return folder / "report"
