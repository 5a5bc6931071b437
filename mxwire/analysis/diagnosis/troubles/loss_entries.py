"""The entries of the catalogue about frames that get lost."""

from __future__ import annotations

from typing import Final

from mxwire.analysis.diagnosis.registry import Diagnosis
from mxwire.analysis.diagnosis.troubles.builds import DIALECT, FRAME_LIMIT, GENERATION

_BUILDS: Final = frozenset({DIALECT.id, GENERATION.id, FRAME_LIMIT.id})
LOST: Final = Diagnosis(
    id="frames-lost",
    title="Frames are lost on the path",
    group="network",
    users_see="Bandwidth and latency vary, single messages take half a second or a second longer.",
    capture_shows="Messages are retransmitted although their receiver is alive and answers others; blocks of large "
    "messages are re-requested, and arrive.",
    distinction="From a receiver that does not progress: it is silent. From long frames that never pass: here "
    "retransmission helps.",
    advice=(
        "Check the error and drop counters of both network cards (ethtool -S IF, ip -s link) and of the switch "
        "ports between them.",
        "Give the cards larger receive rings (ethtool -G IF rx N), and the switch flow control (ethtool -A IF rx on tx "
        "on): MXoE has no congestion control of its own.",
    ),
    needs=frozenset({"both directions", "every frame"}),
    follows_from=_BUILDS,
)
TAIL: Final = Diagnosis(
    id="tail-loss",
    title="Loss at the end of large messages costs a second each",
    group="network",
    users_see="Some large messages take one second longer than others of the same length.",
    capture_shows="The last blocks of a message are re-requested by the timer of 1000 ms (R-PUL-08). An earlier loss "
    "is noticed as soon as a later block is complete (R-PUL-07); no block follows the last one.",
    distinction="From an earlier loss, which costs a fraction of a millisecond.",
    advice=(
        "Find and stop the loss: see frames-lost. Few frames are enough, as each one at the end costs a second.",
        "Transfer fewer, larger messages: each has only one end.",
    ),
    needs=frozenset({"both directions", "every frame"}),
    follows_from=_BUILDS,
)
BURST: Final = Diagnosis(
    id="burst-loss",
    title="Bursts are lost: no flow control",
    group="network",
    users_see="Small and medium messages are fast, large ones are slow, and slower with several senders.",
    capture_shows="Several consecutive replies of a block are missing: a buffer in a switch, or a receive ring, was "
    "full. A sender puts up to four blocks on the wire at once, whatever the receiver can take (R-SND-05, R-PUL-02).",
    distinction="From random loss, which takes single frames. From a lost PULL, after which a whole block is missing.",
    advice=(
        "Turn Ethernet flow control on, on cards and switch ports (ethtool -A IF rx on tx on).",
        "Give the receiving card a larger ring (ethtool -G IF rx N), and look at its drop counters (ethtool -S IF).",
        "Where a faster host sends to a slower one, or several send to one, only flow control helps.",
    ),
    needs=frozenset({"both directions", "every frame"}),
    follows_from=_BUILDS,
)
