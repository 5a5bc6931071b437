"""The runtime folder: one per user, whatever the variables of a session say, and closed to other users."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from mxwire.link import LinkError
from mxwire.link.namespace import NetworkNamespace
from mxwire.link.runtime import namespace_key, runtime_folder

ROOT = Path(__file__).parents[2]


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine of its own, as far as folders go: run and tmp."""
    (tmp_path / "run" / "user").mkdir(parents=True)
    (tmp_path / "tmp").mkdir()
    (tmp_path / "tmp").chmod(0o1777)
    monkeypatch.setattr("mxwire.link.runtime._SYSTEM", tmp_path / "run")
    monkeypatch.setattr("mxwire.link.runtime._TEMPORARY", tmp_path / "tmp")
    monkeypatch.delenv("MXWIRE_RUNTIME_DIR", raising=False)
    return tmp_path


def become(user: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: user)


def owned(folder: Path, user: int, mode: int = 0o700) -> Path:
    """A folder of a user; only root can make one for another user, so others test with their own."""
    folder.mkdir()
    folder.chmod(mode)
    if not os.getuid():
        os.chown(folder, user, -1)
    return folder


USER = 1000 if not os.getuid() else os.getuid()


def test_the_folder_depends_on_the_user_and_not_on_variables(system, monkeypatch):
    become(USER, monkeypatch)
    assert runtime_folder() == system / "tmp" / f"mxwire-{USER}"
    session = owned(system / "run" / "user" / str(USER), USER)
    for variable in ("", "relative", str(session), str(system)):
        monkeypatch.setenv("XDG_RUNTIME_DIR", variable)
        monkeypatch.setenv("TMPDIR", variable)
        assert runtime_folder() == session / "mxwire"
    # A process that was started before the first login uses this one.
    temporary = owned(system / "tmp" / f"mxwire-{USER}", USER)
    assert runtime_folder() == temporary


def test_the_folder_of_root_is_that_of_the_system(system, monkeypatch):
    if os.getuid():
        return
    assert runtime_folder(make=True) == system / "run" / "mxwire"
    assert stat.S_IMODE((system / "run" / "mxwire").stat().st_mode) == 0o700
    # In a user namespace, root is not the owner of the system.
    os.chown(system / "run", 65534, -1)
    assert runtime_folder() == system / "tmp" / "mxwire-0"


def test_the_folder_of_a_session_of_another_user_is_not_used(system, monkeypatch):
    become(USER, monkeypatch)
    session = owned(system / "run" / "user" / str(USER), USER, 0o777)
    assert runtime_folder() == system / "tmp" / f"mxwire-{USER}"
    if not os.getuid():
        session.chmod(0o700)
        os.chown(session, 4, -1)
        assert runtime_folder() == system / "tmp" / f"mxwire-{USER}"


@pytest.mark.parametrize("spoil", ["mode", "user", "file", "link", "loop"])
def test_a_folder_that_others_can_use_is_refused_unchanged(runtime, spoil, tmp_path):
    runtime.parent.chmod(0o1777)
    if spoil == "file":
        runtime.write_text("")
    elif spoil in ("link", "loop"):
        runtime.symlink_to(tmp_path if spoil == "link" else runtime)
    else:
        runtime.mkdir()
        runtime.chmod(0o750 if spoil == "mode" else 0o700)
    if spoil == "user":
        if os.getuid():
            return
        os.chown(runtime, 65534, -1)
    before = runtime.lstat()
    for make in (False, True):
        with pytest.raises(LinkError) as error:
            runtime_folder(make=make)
        text = str(error.value)
        assert str(runtime) in text and "\n" not in text and "MXWIRE_RUNTIME_DIR" in text
        assert f"user {before.st_uid}" in text
    after = runtime.lstat()
    assert (after.st_ino, after.st_mode, after.st_uid) == (before.st_ino, before.st_mode, before.st_uid)


def test_a_folder_that_another_user_could_replace_is_refused(runtime):
    runtime.parent.chmod(0o777)
    with pytest.raises(LinkError, match="any user may replace it"):
        runtime_folder(make=True)


def test_the_chosen_folder_is_an_absolute_path_to_a_possible_place(monkeypatch, tmp_path):
    monkeypatch.setenv("MXWIRE_RUNTIME_DIR", "here")
    with pytest.raises(LinkError, match="MXWIRE_RUNTIME_DIR=here: is not an absolute path"):
        runtime_folder()
    monkeypatch.setenv("MXWIRE_RUNTIME_DIR", str(tmp_path / "a" / "b"))
    assert runtime_folder() == tmp_path / "a" / "b"
    with pytest.raises(LinkError, match="No such file or directory; "):
        runtime_folder(make=True)


def test_a_program_with_privileges_ignores_the_variable(tmp_path):
    """A program of another group than its user's, which the kernel treats as one with file capabilities (AT_SECURE)."""
    if os.getuid():
        return
    python = tmp_path / "python"
    shutil.copy(Path(sys.executable).resolve(), python)
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONHOME": sys.base_prefix, "MXWIRE_RUNTIME_DIR": "/chosen"}
    command = [python, "-c", "from mxwire.link.runtime import runtime_folder; print(runtime_folder())"]
    found = []
    for mode in (0o755, 0o2755):
        os.chown(python, -1, 65534)
        python.chmod(mode)
        found.append(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
    assert found == ["/chosen\n", "/run/mxwire\n"]


def test_a_namespace_has_a_key_of_its_own():
    with NetworkNamespace() as namespace:
        key = namespace_key(namespace)
        assert key == namespace_key(namespace) and f"-{namespace.identity[1]:x}" in key and "/" not in key
        assert len(key) < 30, "paths of sockets have at most 107 bytes"
