"""A campaign: pieces of work, played in chunks by workers, and answered in order.

Theory of operation
===================

The pieces are independent and deterministic: a seed, a plan of faults, a cell, a capture. The answers are yielded in
the order of the pieces, and are the same for any number of workers of any kind: it does not matter which worker plays a
piece, when, or how often.

A chunk is a run of pieces. Its size follows the pace observed so far, so that a chunk takes at least
``WorkerPool.chunk_seconds``, and its transfer is negligible. A worker has at most one chunk at a time: more would not
be faster, and the loss of a worker affects only that chunk.

A worker may die for reasons unrelated to its chunk: a job reaches its time limit, or a node loses power. The chunk is
therefore repeated. If its workers die repeatedly, it is divided in two, until a single piece remains that kills each
worker. The answer to that piece is a :class:`FatalPiece`; the campaign continues with the others.

Answers of finished chunks are appended to a checkpoint, if there is one. A campaign that is restarted with the same
checkpoint reads them from there.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from mxwire import __version__
from mxwire.campaign.checkpoint import AnswerCodec, Checkpoint
from mxwire.campaign.workers import WorkerPool, refuse_version
from mxwire.errors import MxwireError

_Answer = TypeVar("_Answer")

_GROWTH: Final = 4
"""Maximum ratio of a chunk's size to that of the largest finished one: the first pieces may be unusually short."""
_LARGEST_CHUNK: Final = 100_000
_REPEATED: Final = 2
"""Losses of workers after which a chunk is divided."""
_FATAL: Final = 3
"""Losses of workers after which a single piece is reported as their cause."""


@dataclass(frozen=True, slots=True)
class FatalPiece:
    """The answer to a piece that ended each worker that played it."""

    piece: Any
    workers: int
    """Number of workers that were lost while they played it."""

    def __str__(self) -> str:
        """Return a description in one line."""
        return f"it ended each of {self.workers} worker processes"


@dataclass(slots=True)
class _Chunk:
    first: int
    end: int
    losses: int = 0


@dataclass(frozen=True, slots=True)
class _PlayedChunk:
    answers: list[Any]
    seconds: float


def _play(version: str, function: Callable[[Any], Any], pieces: Sequence[Any]) -> _PlayedChunk:
    """Answer the pieces of a chunk; runs in a worker."""
    refuse_version(version, "the campaign")
    start = time.perf_counter()
    return _PlayedChunk([function(each) for each in pieces], time.perf_counter() - start)


class Campaign:
    """Plays series of pieces with the same workers and the same checkpoint."""

    def __init__(self, workers: WorkerPool, checkpoint: Checkpoint | None = None) -> None:
        self.workers = workers
        self._checkpoint = checkpoint

    def play(
        self,
        function: Callable[[Any], _Answer],
        pieces: Sequence[Any],
        *,
        section: str = "",
        codec: AnswerCodec | None = None,
        finished: Callable[[int], None] | None = None,
    ) -> AnswerSeries[_Answer]:
        """Return the answers of ``function``, which must be importable, to ``pieces``, in order.

        ``section`` distinguishes the series in the checkpoint, for which ``codec`` converts answers to JSON.
        ``finished`` is called with the number of pieces finished so far, in any order.
        """
        return AnswerSeries(self.workers, function, pieces, self._checkpoint, section, codec, finished)


class AnswerSeries(Generic[_Answer], Iterator["_Answer | FatalPiece"]):
    """The answers to a series of pieces, in order. After an exception, iteration may be resumed."""

    def __init__(
        self,
        workers: WorkerPool,
        function: Callable[[Any], _Answer],
        pieces: Sequence[Any],
        checkpoint: Checkpoint | None,
        section: str,
        codec: AnswerCodec | None,
        finished: Callable[[int], None] | None,
    ) -> None:
        self._workers = workers
        self._function = function
        self._pieces = pieces
        self._checkpoint = checkpoint
        self._section = section
        self._codec = codec or AnswerCodec()
        self._notify = finished
        self._next = 0
        """The first piece that was neither played nor given to a worker."""
        self._again: deque[_Chunk] = deque()
        """Chunks whose worker was lost."""
        self._under_way: dict[Future[_PlayedChunk], _Chunk] = {}
        self._answers: dict[int, _Answer | FatalPiece] = {}
        """Answers that are not yielded yet, by the position of their piece."""
        self._yielded = 0
        self._finished = 0
        self._seconds = 0.0
        self._played = 0
        self._largest = 1
        self._stopped = False

    def __iter__(self) -> AnswerSeries[_Answer]:
        """Return self."""
        return self

    def __next__(self) -> _Answer | FatalPiece:
        """Return the next answer, as soon as it is known."""
        while self._yielded not in self._answers:
            if self._yielded >= len(self._pieces):
                raise StopIteration
            if self._is_known(self._yielded):
                self._recall(self._yielded)
                break
            if not self._stopped:
                self._hand_out()
            if not self._under_way:
                raise StopIteration
            self._collect()
        answer = self._answers.pop(self._yielded)
        self._yielded += 1
        return answer

    def stop(self) -> None:
        """Give no further chunk to a worker: iteration ends with the last answer of the chunks in progress."""
        self._stopped = True

    def _is_known(self, place: int) -> bool:
        """Return whether the checkpoint has the answer at a place."""
        return self._checkpoint is not None and self._checkpoint.has(self._section, place)

    def _recall(self, place: int) -> None:
        """Take the answer at a place from the checkpoint."""
        assert self._checkpoint is not None
        value = self._checkpoint.take(self._section, place)
        self._finish(place, [self._codec.decode(value, self._pieces[place])])

    def _hand_out(self) -> None:
        """Give each idle worker a chunk."""
        while len(self._under_way) < self._workers.size():
            chunk = self._again.popleft() if self._again else self._following()
            if chunk is None:
                return
            pieces = [self._pieces[place] for place in range(chunk.first, chunk.end)]
            self._under_way[self._workers.submit(_play, __version__, self._function, pieces)] = chunk

    def _following(self) -> _Chunk | None:
        """Return the next chunk that has not been played, without pieces that the checkpoint has."""
        total = len(self._pieces)
        while self._next < total and self._is_known(self._next):
            self._next += 1
        if self._next >= total:
            return None
        first = self._next
        most = min(first + self._chunk_size(), total)
        self._next = first + 1
        while self._next < most and not self._is_known(self._next):
            self._next += 1
        return _Chunk(first, self._next)

    def _chunk_size(self) -> int:
        """Return the number of pieces that take ``chunk_seconds`` at the pace so far."""
        if not self._played:
            return 1
        pace = max(self._seconds / self._played, 1e-6)
        count = int(self._workers.chunk_seconds / pace) + 1
        return min(count, self._largest * _GROWTH, _LARGEST_CHUNK)

    def _collect(self) -> None:
        """Wait for a chunk, and take the answers of all that are finished."""
        done, _ = wait(self._under_way, return_when=FIRST_COMPLETED)
        for future in done:
            chunk = self._under_way[future]
            if future.cancelled():
                raise MxwireError("the workers are gone: repeat the command; a --checkpoint continues where it ended")
            error = future.exception()
            if error is None:
                self._take(chunk, future.result())
            else:
                losses = self._workers.losses(error)
                if not losses:
                    del self._under_way[future]
                    raise error
                self._lose(chunk, losses)
            del self._under_way[future]

    def _take(self, chunk: _Chunk, played: _PlayedChunk) -> None:
        self._seconds += played.seconds
        self._played += len(played.answers)
        self._largest = max(self._largest, len(played.answers))
        if self._checkpoint is not None:
            self._checkpoint.add(self._section, chunk.first, [self._codec.encode(each) for each in played.answers])
        self._finish(chunk.first, played.answers)

    def _finish(self, first: int, answers: Sequence[_Answer | FatalPiece]) -> None:
        self._answers.update(enumerate(answers, first))
        self._finished += len(answers)
        if self._notify is not None:
            self._notify(self._finished)

    def _lose(self, chunk: _Chunk, losses: int) -> None:
        """Repeat a chunk whose worker was lost, divide it, or report its only piece."""
        chunk.losses += losses
        single = chunk.end - chunk.first == 1
        if chunk.losses < (_FATAL if single else _REPEATED):
            self._again.append(chunk)
        elif single:
            self._finish(chunk.first, [FatalPiece(self._pieces[chunk.first], chunk.losses)])
        else:
            middle = (chunk.first + chunk.end) // 2
            # Either half may be the cause, so one more loss divides it.
            self._again += (_Chunk(chunk.first, middle, 1), _Chunk(middle, chunk.end, 1))
