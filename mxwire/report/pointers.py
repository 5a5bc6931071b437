"""Commands that show a frame or a message, for the end of outputs that name them."""

from __future__ import annotations

from typing import Final

from mxwire.words import count_of

SEE_FRAME: Final = "mxwire decode -v --frames NUMBER FILE shows a frame; mxwire follow --frame NUMBER FILE its message."
SEE_MESSAGE: Final = "mxwire follow NUMBER FILE shows a message; mxwire extract NUMBER FILE -w OUT writes its bytes."
SEE_MESSAGES: Final = "mxwire messages FILE lists the messages; mxwire follow NUMBER FILE shows the frames of one."


def left_out_text(findings: int) -> str:
    """A sentence about findings that a filter left out."""
    return f"The filter left out {count_of(findings, 'finding')}; all frames were analysed."
