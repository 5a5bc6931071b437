"""Arguments of an application's calls: integers, addresses and memory, checked before they can reach a frame.

Memory is one buffer or a list of buffers, used as one range of bytes (R-SND-07, R-MSC-03).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from operator import index
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mxwire.ethernet import ADDRESS_SIZE
from mxwire.native import native, view_of
from mxwire.protocol.status import ArgumentTypeError, LocalProtocolError, Status

SEGMENTS_MAXIMUM: Final = 256
"""Maximum number of segments per message (R-MSC-03)."""

Bytes = NDArray[np.uint8]

_AT_START: Final = [0]
"""The offset of a single segment."""
_VIEW: Final = memoryview
# Compiled code looks up a name of an interpreted module each time.
_view_of: Final = view_of
_BUFFERS: Final = (bytes, bytearray, memoryview, np.ndarray)


def _array_address(buffer: Any) -> int:
    """Return the address of the bytes of a buffer, which is not empty."""
    return int(np.frombuffer(buffer, np.uint8).__array_interface__["data"][0])


_address_of: Final[Callable[[Any], int]] = _array_address if native is None else native.address_of


def _assign_slice(memory: Any, offset: int, data: Any, start: int, size: int) -> None:
    """Copy ``size`` bytes of ``data`` from ``start`` to ``offset`` in ``memory``, as the native module does in a third
    of the instructions."""
    memory[offset : offset + size] = data[start : start + size]


_store: Final[Callable[[Any, int, Any, int, int], None]] = _assign_slice if native is None else native.store


def checked_integer(name: str, value: Any, maximum: int, status: Status = Status.BAD_REQUEST) -> int:
    """Return ``value`` as an int between 0 and ``maximum``; NumPy's integers are accepted too.

    Raises :class:`~mxwire.protocol.status.ArgumentTypeError` for another type, and
    :class:`~mxwire.protocol.status.LocalProtocolError` with ``status`` for another value; both name the argument.
    """
    if type(value) is int and 0 <= value <= maximum:
        return value
    try:
        number = index(value)
    except TypeError:
        raise ArgumentTypeError(status, f"{name} must be an integer, not {value!r}") from None
    if not 0 <= number <= maximum:
        raise LocalProtocolError(status, f"{name} {number} is not between 0 and {maximum:#x}")
    return number


def ethernet_address(value: Any) -> bytes:
    """Return ``value`` as the six bytes of an Ethernet address.

    Raises :class:`~mxwire.protocol.status.ArgumentTypeError` for another type, and
    :class:`~mxwire.protocol.status.LocalProtocolError` for another length.
    """
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise ArgumentTypeError(Status.BAD_REQUEST, f"{value!r} is not an Ethernet address: pass {ADDRESS_SIZE} bytes")
    if len(bytes(value)) != ADDRESS_SIZE:
        raise LocalProtocolError(
            Status.BAD_REQUEST, f"{value!r} is not an Ethernet address: it has {ADDRESS_SIZE} bytes"
        )
    return bytes(value)


class Segments:
    """The memory of a message. Bytes are copied only by ``take``, ``put`` and ``copy``.

    ``data`` is any object with the buffer protocol, or a sequence of up to 256 of them. Raises
    :class:`~mxwire.protocol.status.LocalProtocolError` for more segments, for an object that is not a
    buffer, and for a read-only buffer if ``writable``.
    """

    __slots__ = ("_arrays", "_only", "_starts", "_views", "length")

    def __init__(self, data: Any, *, writable: bool = False) -> None:
        self._arrays: list[Bytes] | None = None
        """The segments as arrays, created on first use: creating one takes longer than copying a short message."""
        self._only: bytes | memoryview | None = None
        """The only segment; None if there are several, which are then in ``_views``."""
        self._views: list[memoryview] = []
        self._starts = _AT_START
        # Most messages are ``bytes``, which need no check.
        if type(data) is bytes and not writable:
            self._only = data
            self.length = len(data)
            return
        if type(data) is bytearray or (type(data) is _VIEW and _is_flat(data, writable)):
            # Create a separate view, because the caller may release ``data``.
            self._only = _view_of(data)
            self.length = len(data)
            return
        if isinstance(data, _BUFFERS) or not isinstance(data, Sequence) or _is_buffer(data):
            self._only = _flat(data, writable)
            self.length = len(self._only)
            return
        pieces = list(data)
        if len(pieces) > SEGMENTS_MAXIMUM:
            raise LocalProtocolError(
                Status.SEGMENTS_BAD_COUNT, f"{len(pieces)} segments: a message has {SEGMENTS_MAXIMUM} at most"
            )
        self._starts = []
        self.length = 0
        for piece in pieces:
            view = _flat(piece, writable)
            self._views.append(view)
            self._starts.append(self.length)
            self.length += len(view)

    def __len__(self) -> int:
        """The number of bytes."""
        return self.length

    @property
    def _pieces(self) -> list[Bytes]:
        if self._arrays is None:
            views = self._views if self._only is None else [self._only]
            self._arrays = [np.frombuffer(each, np.uint8) if len(each) else np.empty(0, np.uint8) for each in views]
        return self._arrays

    def view(self, offset: int, length: int) -> Bytes | None:
        """A view of ``length`` bytes from ``offset``; None if they are not in one segment."""
        if self._only is not None:
            return self._pieces[0][offset : offset + length]
        for place, start, count in self._spans(offset, length):
            return self._pieces[place][start : start + count] if count == length else None
        return np.empty(0, np.uint8)

    def part(self, offset: int, length: int) -> memoryview | None:
        """A view of ``length`` bytes from ``offset`` that is not an array; None if there are several segments."""
        return None if self._only is None else _view_of(self._only)[offset : offset + length]

    @property
    def only(self) -> bytes | memoryview | None:
        """The memory, if it is one segment."""
        return self._only

    def take(self, offset: int, out: Bytes) -> None:
        """Copy ``len(out)`` bytes, starting at ``offset``, into ``out``."""
        if self._only is not None:
            out[:] = self._pieces[0][offset : offset + len(out)]
            return
        done = 0
        for place, start, count in self._spans(offset, len(out)):
            out[done : done + count] = self._pieces[place][start : start + count]
            done += count

    def put(self, offset: int, data: Bytes | bytes | memoryview, start: int = 0, size: int = -1) -> int:
        """Store ``size`` bytes of ``data`` from ``start``, by default all, at ``offset``, truncated at the end of the
        memory; return the number of bytes stored."""
        room = min(len(data) if size < 0 else size, max(0, self.length - offset))
        if not room:
            return 0
        only: Any = self._only
        if only is not None:
            _store(only, offset, data, start, room)
            return room
        for place, begin, count in self._spans(offset, room):
            _store(self._views[place], begin, data, start, count)
            start += count
        return room

    @property
    def remote(self) -> bool:
        """True if each access is a call of the kernel: ``put_rows`` then also takes a list of buffers."""
        return False

    def put_rows(self, offset: int, rows: Any) -> bool:
        """Store ``rows``, an array of shape (n, length), one after another from ``offset``; return False if they do not
        fit into one segment."""
        view = self.view(offset, rows.size)
        if view is None:
            return False
        view.reshape(rows.shape)[:] = rows
        return True

    def copy(self) -> bytes:
        """A copy of all bytes."""
        if self._only is not None:
            return self._only if isinstance(self._only, bytes) else self._only.tobytes()
        return b"".join(self._views)

    def kept(self) -> Segments:
        """The message in memory that does not change: this object if it is one ``bytes`` object, otherwise a copy."""
        return self if isinstance(self._only, bytes) else Segments(self.copy())

    def places(self) -> list[tuple[int, int]]:
        """Address and length of each segment that is not empty, in the memory of this process; none if it is that of
        another process."""
        views = self._views if self._only is None else [self._only]
        return [(_address_of(each), len(each)) for each in views if len(each)]

    def _spans(self, offset: int, length: int) -> Iterator[tuple[int, int, int]]:
        """Yield the number of a segment, the offset in it and the number of bytes for each segment in a range."""
        place = bisect_right(self._starts, offset) - 1
        while length > 0:
            start = offset - self._starts[place]
            count = min(length, len(self._views[place]) - start)
            if count > 0:
                yield place, start, count
                offset += count
                length -= count
            place += 1


def _is_buffer(data: Any) -> bool:
    """Return whether a sequence is also one buffer, as an ``array.array`` is."""
    try:
        # Released at once: an array cannot be resized while a view of it exists.
        memoryview(data).release()
    except (TypeError, ValueError):
        return False
    return True


def _is_flat_view(view: memoryview, writable: bool) -> bool:
    """Return whether a view consists of plain bytes, and is writable if ``writable``."""
    try:
        return view.format == "B" and view.ndim == 1 and view.contiguous and not (writable and view.readonly)
    except ValueError:
        # The view is released.
        return False


_is_flat: Final[Callable[[memoryview, bool], bool]] = _is_flat_view if native is None else native.is_flat


def _flat(piece: Any, writable: bool) -> memoryview:
    """Return a view of the bytes of a buffer."""
    try:
        view = memoryview(piece)
    except TypeError:
        raise ArgumentTypeError(
            Status.BAD_REQUEST, f"expected a bytes-like object, not {type(piece).__name__}"
        ) from None
    except ValueError as error:
        # A released view, or an array of objects without bytes, such as dates.
        raise LocalProtocolError(Status.BAD_REQUEST, f"{type(piece).__name__} cannot be used: {error}") from None
    if not view.c_contiguous:
        raise LocalProtocolError(Status.BAD_REQUEST, f"{type(piece).__name__} is not contiguous in memory")
    if writable and view.readonly:
        raise LocalProtocolError(Status.BAD_REQUEST, f"{type(piece).__name__} cannot be received into: it is read-only")
    if view.ndim == 1 and view.format == "B":
        return view
    # A view without bytes cannot be cast, and one in the byte order of another machine only by NumPy.
    array: Any = np.frombuffer(view, np.uint8) if view.nbytes else bytearray()
    return memoryview(array)
