"""A section for each diagnosis, with an example."""

from __future__ import annotations

import tomllib

from mxwire.analysis.diagnosis import GROUPS, Diagnosis, Examination, catalogue
from mxwire.capture import open_capture
from mxwire.capture.time_order import in_time_order
from mxwire.report.diagnosis import ExaminedCapture, advice_of
from mxwire.report.diagnosis import blocks as diagnosis_blocks
from mxwire.report.document import plain
from mxwire.wire.decoder import Decoder
from rendering.basics import OUTPUT_WIDTH, ROOT, PageError

_REAL = tomllib.loads((ROOT / "docs" / "examples" / "real.toml").read_text(encoding="utf-8"))
"""The examples that are captures of real hosts, by diagnosis; the others are in ``docs/examples``."""


def made() -> str:
    """Return the sections, by group."""
    parts = []
    for group, title in GROUPS.items():
        parts.append(f"## {title}")
        parts += [_diagnosis(each) for each in catalogue() if each.group == group]
    return "\n\n".join(parts)


def _diagnosis(diagnosis: Diagnosis) -> str:
    real = _REAL.get(diagnosis.id)
    example = f"captures/{real}.pcap" if real else f"docs/examples/{diagnosis.id}.pcap"
    source = "recorded from real hosts" if real else "made for this page"
    advice = "\n".join(f"{number}. {text}" for number, text in enumerate(advice_of(diagnosis), 1))
    parts = [
        f"### {diagnosis.title} {{ #{diagnosis.id} }}",
        f"`{diagnosis.id}`",
        f"**Symptoms.** {diagnosis.text.users_see}",
        f"**In the capture.** {diagnosis.text.capture_shows}",
        f"**How to distinguish it.** {diagnosis.text.distinction}",
        f"**What to do.**\n\n{advice}",
        f"**An example**, {source}:",
        _diagnosed(diagnosis, example),
    ]
    return "\n\n".join(parts)


def _diagnosed(diagnosis: Diagnosis, example: str) -> str:
    """Return the output of ``mxwire diagnose --only ID FILE``, without starting a process; a test compares the two."""
    decoder = Decoder()
    examination = Examination(decoder)
    with open_capture(str(ROOT / example)) as reader:
        for decoded in decoder.decode_all(in_time_order(examination.watch(reader))):
            examination.observe(decoded)
    examination.finish()
    found = [each for each in examination.findings() if each.id == diagnosis.id]
    if not found:
        raise PageError(f"{example} is the example of {diagnosis.id}, but does not show it")
    examined = ExaminedCapture.of(example, examination, found, 0, lambda frames: (example, [*frames]))
    printed = plain(diagnosis_blocks(examined), OUTPUT_WIDTH)
    return "\n".join(["```console", f"$ mxwire diagnose --only {diagnosis.id} {example}", printed.rstrip("\n"), "```"])
