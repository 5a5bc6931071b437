"""Results as JUnit XML, which test reports of build servers read."""

from __future__ import annotations

from collections.abc import Iterable
from xml.etree.ElementTree import Element, SubElement, indent, tostring


def junit_suite(name: str, **counts: int) -> Element:
    """Return a suite with its ``counts`` of tests and failures; there are no errors of the program."""
    return Element("testsuite", {"name": name, **{each: str(count) for each, count in counts.items()}, "errors": "0"})


def junit_case(suite: Element, name: str, **more: str) -> Element:
    """Add a case to a suite."""
    return SubElement(suite, "testcase", {"classname": suite.attrib["name"], "name": name, **more})


def junit_document(name: str, suites: Iterable[Element]) -> str:
    """Return the XML of all suites."""
    root = Element("testsuites", name=name)
    root.extend(suites)
    indent(root)
    return tostring(root, encoding="unicode", xml_declaration=True)
