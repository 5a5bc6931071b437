"""A file that is put together out of order, and is there only when it is complete."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from mxwire.analysis.target import check_place
from mxwire.errors import OutputError


class Assembly:
    """Takes pieces at their offsets into a file that nobody sees, and moves it into place at the end.

    ``target`` is None where the bytes go to a stream instead. Raises :class:`~mxwire.errors.OutputError` where nothing
    can be written.
    """

    def __init__(self, target: Path | None) -> None:
        self._target = target
        folder = None if target is None else target.absolute().parent
        if target is not None:
            check_place(target)
        try:
            self._folder = tempfile.TemporaryDirectory(prefix=".mxwire-", dir=folder)
            self._path = Path(self._folder.name) / "content"
            self._file = self._path.open("w+b")
        except OSError as error:
            raise self._problem(error) from None

    def write(self, offset: int, data: bytes) -> None:
        """Take a piece."""
        try:
            self._file.seek(offset)
            self._file.write(data)
        except OSError as error:
            raise self._problem(error) from None

    def finish(self, length: int, stream: BinaryIO | None) -> None:
        """Give the file its length in bytes, and put it where it belongs."""
        try:
            self._file.truncate(length)
            if stream is not None:
                self._file.seek(0)
                shutil.copyfileobj(self._file, stream)
                stream.flush()
            elif self._target is not None:
                self._file.flush()
                self._path.replace(self._target)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise self._problem(error) from None

    def _problem(self, error: OSError) -> OutputError:
        return OutputError(f"{self._target or 'the output'}: cannot be written: {error.strerror or error}")

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take away what is not needed any more."""
        self._file.close()
        self._folder.cleanup()
