"""Errors about missing optional packages: the command that adds them to an environment of pip, uv or pipx."""

import sys

import pytest

from mxwire.extras import install_command


@pytest.mark.parametrize(
    ("file", "text", "command"),
    [
        ("pyvenv.cfg", "home = /usr/bin\nversion = 3.11.2\n", "python -m pip install 'polars>=1.30'"),
        ("pyvenv.cfg", "home = /usr/bin\nuv = 0.13.9\n", "uv pip install --python {} 'polars>=1.30'"),
        ("pipx_metadata.json", "{}", "pipx inject mxwire 'polars>=1.30'"),
    ],
)
def test_the_command_fits_the_environment(file, text, command, tmp_path, monkeypatch):
    prefix = tmp_path / "mxwire"
    prefix.mkdir()
    (prefix / file).write_text(text)
    monkeypatch.setattr(sys, "prefix", str(prefix))
    assert install_command("table") == command.format(prefix)
