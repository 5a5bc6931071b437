"""The long tests: all of them run, and each failure is named and fails the whole."""

from pathlib import Path

import pytest

from tools import nightly
from tools.nightly import PARTS, Part, main


@pytest.fixture(autouse=True)
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep output and checkpoints in a folder of the test."""
    monkeypatch.setattr(nightly, "KEPT", tmp_path / "build")
    monkeypatch.setattr(nightly, "ROOT", tmp_path)
    return tmp_path


def script(folder: Path, name: str, text: str) -> str:
    """The name of a program of Python."""
    (folder / name).write_text(text)
    return name


def test_a_failed_part_does_not_end_the_run(kept, capfd):
    wrong = script(kept, "wrong.py", "print('the reason'); raise SystemExit(3)")
    slow = script(kept, "slow.py", "import subprocess; subprocess.run(['sleep', '1000'])")
    parts = (Part("one", wrong, 1), Part("two", slow, 0.01), Part("three", "-c 0", 1))
    assert main([], parts) == 1
    lines = capfd.readouterr().out.splitlines()
    assert "the reason" in lines and "one: exit code 3; see build/one.txt" in lines
    *results, total = lines[-4:]
    assert [each.rpartition(",")[0] for each in results] == [
        "one: exit code 3",
        "two: not ended after 0.01 min",
        "three: passed",
    ]
    assert total.startswith("3 parts in 0 min ") and total.endswith(", failed: one, two")


def test_counts_variables_and_checkpoints_reach_a_part(kept, capfd):
    words = "import os, sys; print(*sys.argv[1:], os.environ['FRAMES'], os.environ['CI'])"
    shown = script(kept, "shown.py", words + "; open(sys.argv[-1], 'w')")
    parts = (Part("one", f"{shown} --seeds 0-99/9 --on ON", 1, "FRAMES=1000/10", resumes=True),)
    for given, seeds, frames, name in (("", "0-99", 1000, "one"), ("--quick", "0-9", 10, "one-quick")):
        assert main([*given.split(), "--on", "dask:there"], parts) == 0
        path = kept / "build" / f"{name}.jsonl"
        printed = (kept / "build" / "one.txt").read_text()
        assert printed == f"--seeds {seeds} --on dask:there --checkpoint {path} {frames} true\n"
        assert not path.exists(), "nothing is left to continue"
        assert capfd.readouterr().out.endswith("all passed\n")


def test_parts_are_chosen_by_name(kept, capfd):
    parts = (Part("one", "-c 0", 1), Part("two", "-c 1/0", 1))
    assert main(["one"], parts) == 0
    assert capfd.readouterr().out.splitlines()[-1].startswith("1 part in ")
    with pytest.raises(SystemExit) as ended:
        main(["on"], parts)
    assert ended.value.code == 2 and "no part 'on': use one of one, two" in capfd.readouterr().err


def test_a_hostile_program_sends_a_million_records():
    [fuzz] = [each for each in PARTS if each.name == "fuzz"]
    assert "--records 1000000/" in fuzz.words
