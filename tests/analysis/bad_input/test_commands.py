"""No capture, however bad, makes an analysis command fail except with a line that gives the reason."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from mxwire.cli.main import cli
from mxwire.errors import MxwireError
from tests.captures import CAPTURES, batch_of, records_of, write_capture
from tests.cli.support import mxwire

from .mangling import MANGLERS, Mangler, queues, queues_with_wrong_times

NAMES = ("mxoe-every-type.pcap", "omx9000-truncated.pcap")
COMMANDS: dict[str, tuple[str, ...]] = {
    "messages": ("messages", "--json=full", "{bad}"),
    "messages-text": ("messages", "{bad}"),
    "conversations": ("messages", "--by", "conversation", "--json", "{bad}"),
    "conversations-text": ("messages", "--by", "conversation", "{bad}"),
    "follow": ("follow", "--message", "1", "{bad}"),
    "extract": ("extract", "--message", "2", "--partial", "--json", "-w", "{out}", "{bad}"),
    "stats": ("stats", "--json", "{bad}"),
    "stats-text": ("stats", "{bad}"),
    "verify": ("verify", "--json", "{bad}"),
    "verify-text": ("verify", "{bad}"),
    "diagnose": ("diagnose", "--json", "{bad}"),
    "diagnose-text": ("diagnose", "{bad}"),
    "compat": ("compat", "--json", "{bad}", "{good}"),
    "compat-text": ("compat", "{bad}"),
    "merge": ("merge", "--json", "-w", "{out}", "{good}", "{bad}"),
    "merge-text": ("merge", "{bad}", "{good}"),
}


def run(words: tuple[str, ...], **paths: Path) -> Result:
    """A command in this process; whatever it may end with is checked here."""
    result = CliRunner().invoke(cli, [word.format(**paths) for word in words])
    allowed = result.exception is None or isinstance(result.exception, (SystemExit, MxwireError))
    assert allowed, (words, result.exception)
    if isinstance(result.exception, MxwireError):
        assert len(str(result.exception).splitlines()) == 1
    else:
        assert result.exit_code in (0, 1, 2), result.output
    if "--json" in words:
        for line in result.stdout.splitlines():
            json.loads(line)
    return result


@pytest.fixture(scope="module", params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    chosen: str = request.param
    return chosen


@pytest.mark.parametrize("mangler", MANGLERS, ids=lambda each: each.__name__)
def test_mangled_frames(name: str, mangler: Mangler, tmp_path: Path) -> None:
    bad = write_capture(tmp_path / "bad.pcapng", batch_of(mangler(list(records_of(name)))))
    for words in COMMANDS.values():
        run(words, bad=bad, good=CAPTURES / name, out=tmp_path / "out.pcapng")


@pytest.mark.parametrize("name", ["mxoe-every-type.pcap", "omx9000-truncated.pcap"])
@pytest.mark.parametrize("share", [0.0, 0.001, 0.1, 0.5, 0.77, 0.999])
def test_files_that_are_cut_anywhere(name: str, share: float, tmp_path: Path) -> None:
    whole = (CAPTURES / name).read_bytes()
    bad = tmp_path / "bad.pcap"
    bad.write_bytes(whole[: int(len(whole) * share)])
    for words in COMMANDS.values():
        run(words, bad=bad, good=CAPTURES / name, out=tmp_path / "out.pcapng")


def test_half_seen_messages_are_reported_as_such(tmp_path: Path) -> None:
    frames = list(records_of("mxoe-every-type.pcap"))
    by_name = {
        each.__name__: write_capture(tmp_path / f"{each.__name__}.pcapng", batch_of(each(frames))) for each in MANGLERS
    }

    def said(command: str, mangler: str) -> str:
        paths = {"bad": by_name[mangler], "good": CAPTURES / "mxoe-every-type.pcap", "out": tmp_path / "out.pcapng"}
        return run(COMMANDS[command], **paths).output

    assert "the other direction was not seen" in said("messages", "one_direction")
    assert "the capture ends first" in said("messages", "ended_early")
    assert "are not MXoE" in said("messages", "others_mixed_in")
    assert "malformed frames left out" in said("messages", "rubbish")
    assert "no frames" in said("stats", "nothing")
    assert '"unknown"' in said("compat", "one_frame")
    disordered = write_capture(
        tmp_path / "many.pcapng", batch_of(queues_with_wrong_times(list(records_of("omx9000-many.pcap"))))
    )
    assert '"disordered":true' in run(COMMANDS["verify"], bad=disordered).output


@pytest.mark.parametrize("command", ["messages", "verify", "diagnose"])
def test_frames_in_the_wrong_order_come_out_of_a_pipe_as_out_of_a_file(command: str, tmp_path: Path) -> None:
    bad = write_capture(tmp_path / "bad.pcap", batch_of(queues(list(records_of("mxoe-many.pcap")))))
    piped = mxwire(command, "--json", "-", stdin=bad.read_bytes())
    named = mxwire(command, "--json", bad)
    assert piped.code == named.code
    assert piped.lines and piped.out == named.out.replace(str(bad), "standard input")
