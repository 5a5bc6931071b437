"""A dialogue on a link transmits and receives, and stops when its result is there or the time is over."""

from __future__ import annotations

from mxwire.link import memory_pair
from mxwire.link.dialogue import converse

from .link_frames import batch, contents, numbered

LONG = 30.0


class Speaker:
    """Transmits one frame at each deadline, and repeats received frames."""

    def __init__(self, greeting: bytes) -> None:
        self.deadline = 0
        self.heard: list[bytes] = []
        self._greeting = greeting
        self._echo: list[bytes] = []

    def transmit(self, now: int) -> list[bytes]:
        outgoing, self._echo = self._echo, []
        if now >= self.deadline:
            self.deadline = now + 10**6
            outgoing.insert(0, self._greeting)
        return outgoing

    def receive(self, raw: bytes) -> None:
        self.heard.append(raw)
        self._echo.append(raw[6:12] + raw[:6] + raw[12:])


def test_the_last_frames_are_answered_before_it_ends() -> None:
    one, other = memory_pair()
    with one, other:
        greeting, *questions = numbered(other.address, 1) + numbered(one.address, 3, sender=other.address)
        speaker = Speaker(greeting)
        other.send(batch(questions))
        assert converse(one, speaker, lambda: len(speaker.heard) or None, LONG) == 3
        assert speaker.heard == questions
        output = contents(other.receive())
        assert output[0] == greeting
        assert [each for each in output if each != greeting] == [
            each[6:12] + each[:6] + each[12:] for each in questions
        ]


def test_a_result_that_exists_already_needs_no_wait() -> None:
    one, other = memory_pair()
    with one, other:
        assert converse(one, Speaker(numbered(other.address, 1)[0]), lambda: "here", LONG) == "here"


def test_it_ends_when_the_time_is_over_and_speaks_until_then() -> None:
    one, other = memory_pair()
    with one, other:
        greeting = numbered(other.address, 1)[0]
        assert converse(one, Speaker(greeting), lambda: None, 0.02) is None
        output = contents(other.receive())
        assert len(output) >= 2 and set(output) == {greeting}
