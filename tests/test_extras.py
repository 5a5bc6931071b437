"""Errors about missing optional packages: the command that adds them to an environment of pip, uv or pipx."""

import sysconfig
from importlib import metadata

import pytest

from mxwire.extras import install_command

PIPX = "../../../../pipx_metadata.json"


@pytest.mark.parametrize(
    ("files", "command"),
    [
        ({"INSTALLER": "pip\n"}, "python -m pip install 'polars>=1.30'"),
        ({"INSTALLER": "uv\n"}, "uv pip install --python {} 'polars>=1.30'"),
        ({"INSTALLER": "pip\n", PIPX: "{}"}, "pipx inject mxwire 'polars>=1.30'"),
        ({"INSTALLER": "uv\n", PIPX: "{}"}, "pipx inject mxwire 'polars>=1.30'"),
    ],
)
def test_the_command_fits_the_environment(files, command, tmp_path, monkeypatch):
    prefix = tmp_path / "mxwire"
    folder = prefix / "lib" / "python3" / "site-packages" / "mxwire-1.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text("Name: mxwire\nRequires-Dist: polars>=1.30; extra == 'table'\n")
    for name, text in files.items():
        (folder / name).write_text(text)
    monkeypatch.setattr(metadata, "distribution", lambda _: metadata.PathDistribution(folder))
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(prefix))
    assert install_command("table") == command.format(prefix)
