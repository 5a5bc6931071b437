"""The files for a public forge agree with the Makefile and with the package."""

import re
import tomllib
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
import yaml

from mxwire import __version__

ROOT = Path(__file__).parents[2]


def _load_tool():
    spec = spec_from_file_location("dist_tool", ROOT / "tools" / "dist.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


dist = _load_tool()
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TARGETS = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PYTHONS = [each.rpartition(" ")[2] for each in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", each)]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_only_call_targets_of_the_makefile(path):
    jobs = yaml.safe_load(path.read_text())["jobs"]
    commands = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    assert commands
    for command in commands:
        called = re.fullmatch(r"make ([a-z]+)", command)
        assert called and called[1] in TARGETS, command


def test_the_issue_form_asks_for_a_capture_and_the_doctor():
    form = yaml.safe_load((ROOT / ".github" / "ISSUE_TEMPLATE" / "problem.yml").read_text())
    required = {part["id"]: part for part in form["body"] if part["validations"]["required"]}
    assert {"capture", "doctor"} <= required.keys()
    doctor = required["doctor"]["attributes"]["description"]
    assert "mxwire doctor" in doctor and "--json" in doctor


def test_the_citation_agrees_with_the_package():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["cff-version"] == "1.2.0" and citation["message"] and citation["authors"]
    assert (citation["title"], citation["license"]) == (PROJECT["name"], PROJECT["license"])
    assert citation["abstract"] == PROJECT["description"]


@pytest.mark.parametrize("name", ["test", "release"])
def test_workflows_use_each_python_that_mxwire_supports(name):
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / f"{name}.yml").read_text())["jobs"]
    matrices = [job["strategy"]["matrix"]["python"] for job in jobs.values() if "strategy" in job]
    assert matrices == [PYTHONS] == [list(dist.VERSIONS)]


def test_only_files_that_passed_all_tests_are_published():
    """With the permissions for this in the last job only, which runs nothing of the repository."""
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text())
    build, publish = workflow["jobs"]["build"], workflow["jobs"]["publish"]
    assert workflow["permissions"] == {"contents": "read"} and "permissions" not in build
    assert [step["run"] for step in build["steps"] if "run" in step] == ["make test", "make dist"]
    assert publish["needs"] == "build" and not any("run" in step for step in publish["steps"])
    assert publish["permissions"] == {"id-token": "write", "attestations": "write"}


def test_a_tag_for_another_version_is_refused(monkeypatch):
    monkeypatch.setenv("GITHUB_REF_TYPE", "tag")
    monkeypatch.setenv("GITHUB_REF_NAME", f"v{__version__}")
    dist.check_tag(__version__)
    monkeypatch.setenv("GITHUB_REF_NAME", "v0.0.1")
    with pytest.raises(dist.DistError, match="the tag is v0"):
        dist.check_tag(__version__)


def test_files_that_differ_when_they_are_built_again_are_named(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    for folder in (one, other):
        folder.mkdir()
        (folder / "mxwire.whl").write_bytes(b"same")
    dist.compare(one, other)
    (other / "mxwire.whl").write_bytes(b"SAME")
    with pytest.raises(dist.DistError, match="two results: mxwire"):
        dist.compare(one, other)


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        (["no-such-program"], "no-such-program cannot be run: No such file or directory"),
        (["sh", "-c", "echo why; exit 3"], "sh -c echo why; exit 3 failed:\nwhy"),
    ],
)
def test_a_program_that_fails_is_named(command, problem):
    with pytest.raises(dist.DistError) as caught:
        dist.run(*command)
    assert str(caught.value) == problem


def test_the_changelog_lists_the_version_below_unreleased_changes():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## \[(.+)\]", text, re.MULTILINE)[:2] == ["Unreleased", __version__]
    # Before the first release there was nothing that could have changed.
    first = text.partition("## [0.9.0]\n")[2]
    assert len(first.splitlines()) < 100 and not re.search(r"^### (Changed|Added|Fixed)$", first, re.MULTILINE)
