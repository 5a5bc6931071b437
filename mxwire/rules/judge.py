"""The judge: takes decoded frames one by one and says which rules they break."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mxwire.rules.finding import Violation
from mxwire.rules.vantage import CAPTURE, Vantage
from mxwire.wire.codec import Malformed
from mxwire.wire.dialect import Dialect
from mxwire.wire.packets import Frame

DialectLookup = Callable[[bytes, bytes], Dialect]
"""The dialect that two hosts speak, by their Ethernet addresses (source, destination)."""


class Judge:
    """Holds the frames of any number of hosts against the rules, as they come; remembers a bounded amount of each
    conversation.

    ``dialect`` is what all hosts speak, or a function from two Ethernet addresses to what these two speak; ``vantage``
    says how the frames were observed.
    """

    def __init__(self, dialect: Dialect | DialectLookup, vantage: Vantage = CAPTURE) -> None:
        self.dialect = dialect
        self.vantage = vantage

    def observe(
        self,
        time_ns: int,
        frame: Frame | Malformed,
        raw: bytes,
        number: int,
        *,
        wire_length: int | None = None,
        delivered_ns: int | None = None,
    ) -> Sequence[Violation]:
        """What is wrong with the next frame, given those before; nothing for nearly all.

        ``time_ns`` is when it was observed, ``raw`` its bytes from the destination address on (untagged) and
        ``number`` what it is called in findings. ``wire_length`` is its length in bytes where ``raw`` was cut.
        ``delivered_ns`` is when it reached its destination, :data:`~mxwire.rules.vantage.LOST` if it never does, None
        if that is not known. Never raises, whatever the frame says.
        """
        return ()

    def restarted(self, host: bytes) -> None:
        """Forget the state of a host that was switched off or whose driver was loaded anew: its peer table is empty
        and its endpoints are gone."""

    def finish(self) -> Sequence[Violation]:
        """What only the end of the observation shows."""
        return ()
