"""The input of ``mxwire send``."""

from __future__ import annotations

import io

import pytest

from mxwire.cli.send import messages_of, size_of, split
from mxwire.errors import MxwireError


class Modest(io.BytesIO):
    """A stream that refuses large reads: Python reserves memory for the whole length."""

    def read(self, size: int | None = -1, /) -> bytes:
        assert size is not None and 0 < size <= 1 << 20
        return super().read(size)


@pytest.mark.parametrize("length", [0, 1, (1 << 20) - 1, 1 << 20, 3_000_000])
@pytest.mark.parametrize("chunk", [None, 700_000, 1 << 20, (1 << 32) - 1])
def test_available_input_is_read_in_small_steps(length, chunk):
    content = bytes(range(251)) * (length // 251 + 1)
    found = list(split("it", Modest(content[:length]), chunk))
    assert b"".join(data for _, data in found) == content[:length]
    if chunk is None:
        assert [name for name, _ in found] == ["it"], "nothing is a message, too"
    else:
        assert len(found) == -(-length // chunk) and all(len(data) == chunk for _, data in found[:-1])


def test_files_in_order(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).write_bytes(name.encode() * 2)
    files = [str(tmp_path / name) for name in ("one", "two")]
    assert list(messages_of(files, None)) == [(files[0], b"oneone"), (files[1], b"twotwo")]
    assert (size_of(files), size_of([*files, "-"])) == (12, None)
    with pytest.raises(MxwireError, match="/nowhere: no such file"):
        messages_of([*files, "/nowhere"], None)
    with pytest.raises(MxwireError, match=f"{tmp_path}: cannot be read: Is a directory"):
        list(messages_of([str(tmp_path)], None))
