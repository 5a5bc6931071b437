"""The files for a public forge agree with the Makefile and with the package."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TARGETS = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


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
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert citation["cff-version"] == "1.2.0" and citation["message"] and citation["authors"]
    assert (citation["title"], citation["license"]) == (project["name"], project["license"])
    assert citation["abstract"] == project["description"]
