"""Files that cannot be written are reported with the reason and the remedy, where possible before anything is read."""

from __future__ import annotations

import os

import pytest

from mxwire.errors import CaptureOutputError, OutputError, check_writable, create_folder, write_file
from tests.cli.support import open_to_all

NOBODY = 65534
DENIED = "Permission denied; choose a writable place"


def test_a_place_that_is_not_a_file_in_a_directory_is_refused(tmp_path):
    check_writable(tmp_path / "new")
    (tmp_path / "file").touch()
    check_writable(tmp_path / "file")
    for name, why in (
        (".", "Is a directory; name a file in it"),
        ("none/new", "No such file or directory; create its directory first"),
        ("file/new", "Not a directory; a part of its path is a file: choose another place"),
        ("file/below/new", "Not a directory; a part of its path is a file: choose another place"),
    ):
        path = tmp_path / name
        with pytest.raises(OutputError) as caught:
            check_writable(path)
        assert str(caught.value) == f"{path}: cannot be written: {why}"


@pytest.mark.parametrize("place", ["a file", "a folder", "a hidden folder"])
def test_missing_permissions_of_the_effective_user_are_found_beforehand(tmp_path, place):
    folder = tmp_path / "results"
    folder.mkdir()
    path = folder / "x.svg"
    if place == "a file":
        path.touch()
        path.chmod(0o444)
    check_writable(folder / "fine.svg")
    open_to_all(folder)
    folder.chmod({"a file": 0o755, "a folder": 0o555, "a hidden folder": 0}[place])
    root = os.geteuid() == 0
    if root:
        os.seteuid(NOBODY)
    try:
        with pytest.raises(OutputError) as caught:
            check_writable(path)
    finally:
        if root:
            os.seteuid(0)
        folder.chmod(0o755)
    assert str(caught.value) == f"{path}: cannot be written: {DENIED}"
    assert path.exists() is (place == "a file")


def test_files_and_folders_are_written_or_refused(tmp_path):
    create_folder(tmp_path / "a" / "b")
    create_folder(tmp_path / "a" / "b")
    path = tmp_path / "a" / "b" / "text"
    write_file(path, "µ \udcff\n")
    assert path.read_bytes() == b"\xc2\xb5 \\udcff\n"
    write_file(path, b"\0")
    assert path.read_bytes() == b"\0"
    with pytest.raises(OutputError, match=r"text: cannot be created: File exists; a file has the name of a directory"):
        create_folder(path)
    with pytest.raises(OutputError, match=r"^/dev/full: cannot be written: No space left on device; free some space"):
        write_file(type(path)("/dev/full"), "text")


def test_an_error_names_the_file_in_one_line():
    error = CaptureOutputError.of("a\nb", OSError("the stream is\nclosed"))
    assert isinstance(error, CaptureOutputError)
    assert str(error) == r"a\nb: cannot be written: the stream is\nclosed"
