"""``packets.py`` is what the formats want it to be, and its classes keep their promises."""

from __future__ import annotations

import dataclasses

import pytest

from mxwire.wire import generate, packets
from mxwire.wire.dialect import MXOE, omx
from mxwire.wire.packets import FRAME_CLASSES, Frame, Medium, Pull, Tiny

from .support import layouts

MACS = {"dst_mac": b"\x02" * 6, "src_mac": b"\x04" * 6}
TINY = Tiny(
    **MACS,
    dst_endpoint=1,
    src_endpoint=2,
    length=2,
    lib_seqnum=3,
    lib_piggyack=4,
    match_a=5,
    match_b=6,
    session=7,
    data=b"hi",
)


def test_file_is_current():
    assert generate.source() == generate.TARGET.read_text(encoding="utf-8")


def test_check_reports_a_current_file(capsys):
    assert generate.main(["--check"]) == 0
    assert "current" in capsys.readouterr().out


def test_check_notices_a_stale_file_and_writing_updates_it(tmp_path, monkeypatch, capsys):
    stale = tmp_path / "packets.py"
    stale.write_text(generate.source().replace("match_a", "match_c"))
    monkeypatch.setattr(generate, "TARGET", stale)
    assert generate.main(["--check"]) == 1
    assert "stale" in capsys.readouterr().out
    assert generate.main([]) == 0
    assert generate.main(["--check"]) == 0


@pytest.mark.parametrize("frame_class", FRAME_CLASSES)
def test_a_class_has_the_fields_of_the_layouts(frame_class):
    """Addresses, every defined field of either dialect, and the payload; nothing undefined."""
    wanted = set()
    for dialect in (MXOE, omx()):
        layout = layouts(dialect)[frame_class.layout_name]
        wanted |= {each.attribute for each in layout.fields if each.kind != "undefined"}
    assert {each.name for each in dataclasses.fields(frame_class)} == wanted
    assert issubclass(frame_class, Frame)


def test_only_the_pipeline_is_missing_in_one_dialect():
    optional = {
        (each.__name__, field.name)
        for each in FRAME_CLASSES
        for field in dataclasses.fields(each)
        if field.default is None
    }
    assert optional == {("Medium", "frag_pipeline")}


def test_every_layout_has_its_class():
    named = {each.layout_name for each in FRAME_CLASSES}
    assert named == set(layouts(MXOE)) == set(layouts(omx()))
    assert all(getattr(packets, each.__name__) is each for each in FRAME_CLASSES)


def test_defaults_are_the_protocols():
    assert TINY.ethertype == 0x86DF
    assert TINY.dst_src_peer_index == 0xFFFF
    assert TINY.ptype == 37
    assert TINY.checksum == 0


def test_frames_are_values():
    assert dataclasses.replace(TINY) == TINY
    assert hash(dataclasses.replace(TINY)) == hash(TINY)
    assert dataclasses.replace(TINY, match_a=0) != TINY


def test_frames_do_not_change():
    with pytest.raises(dataclasses.FrozenInstanceError):
        TINY.length = 3
    with pytest.raises((AttributeError, TypeError)):
        TINY.colour = "blue"


def test_fields_are_named_never_counted():
    with pytest.raises(TypeError):
        Pull(b"\x02" * 6, b"\x04" * 6)
    with pytest.raises(TypeError):
        Medium(**MACS)
