"""One mutant per cell of tables 1 and 2: a change of a model after which the cell is no longer true.

``python tests/mutants.py --cells`` tries all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from mxwire.bench.models.behaviour import ROWS
from mxwire.bench.models.catalogue import MODELS
from mxwire.bench.models.layer import CallError, CatastropheError
from tests.mutants import Mutant, changed

Change = tuple[str, str, str]
"""Function, old and new text."""
_KEPT: Final = ("ActiveLayer.keep", "self._arrived.append((source, frame))")
_UNNUMBERED: Final = ("ReliableOrder._resend", "self._transmit(partner, flow, number, frame)", "pass")
_LENIENT: Final = (
    "CheckedOrder.take",
    "self._layer.fail(f'network error: frame {frame.sequence} of node {source[0]} instead of {expected}')",
    "pass",
)
_ALONE: Final = ("ModelLayer.shares_node", "False", "True")
_STOPPED: Final = ("ModelLayer.ready", "True", "False")
_ANY_NODE: Final = ("ModelLayer.check_target", "target[0] not in self.nodes", "False")
_GAPS: Final = ("PmLayer._take_data", "frame.sequence != flow.expected", "False")
_UNANSWERED: Final = (
    "ActiveLayer._handle",
    "if message.request and not message.replied:\n    self.answer(source, NO_HANDLER, ())",
    "pass",
)
_BLIND: Final = ("PmLayer._store", "self._arrived.append(buffer)", "pass")
_EMPTY: Final = ("VmmcLayer._take_deposit", "self.transferred.copy(target[frame.offset:], data)", "pass")
_PROCESSES: Final = {
    "am2": ("Am2Layer.shares_node", "True", "False"),
    "pm": ("PmLayer.shares_node", "True", "False"),
    "vmmc2": ("VmmcLayer.shares_node", "True", "False"),
}
_FM: Final = ("fm2", "fm2.1")

CHANGES: Final[dict[str, dict[str, Change]]] = {
    "model": {
        "gam": _UNANSWERED,
        "am2": _UNANSWERED,
        "bip": ("BipLayer.take", "state.filling = True", "state.filling = False"),
        **dict.fromkeys(_FM, ("FastMessagesLayer._handle", "stream.pieces.append(memoryview(frame.data))", "pass")),
        "pm": _BLIND,
        "vmmc2": _EMPTY,
    },
    "transfer": {
        "gam": (*_KEPT, "pass"),
        "am2": (*_KEPT, "pass"),
        "bip": (
            "BipLayer.ready",
            "state.posted is not None and state.length is None and (not state.filling)",
            "True",
        ),
        **dict.fromkeys(_FM, ("FastMessagesLayer.take", "self._ring.append((source, frame))", "pass")),
        "pm": _BLIND,
        "vmmc2": ("VmmcLayer._take_deposit", "frame.flags & FrameFlag.NOTIFIES", "frame.flags & FrameFlag.LAST"),
    },
    "within": {
        **dict.fromkeys(("gam", "am2", *_FM, "pm", "vmmc2"), _STOPPED),
        "bip": (
            "BipLayer.ready",
            "state.posted is not None and state.length is None and (not state.filling)",
            "True",
        ),
    },
    "between": {
        "gam": ("GamLayer.take", "frame.kind in KINDS", "frame.kind in KINDS and frame.key == 0"),
        "am2": ("Am2Layer.take", "frame.key != self.tag", "False"),
        "bip": ("BipLayer.take", "state.queue.append(data)", "pass"),
        "fm2": (
            "FastMessagesLayer._begin",
            "self.fail(f'forged frame of node {source[0]}: handler {number} does not exist')",
            "pass",
        ),
        "fm2.1": ("FastMessagesLayer._begin", "self.registered", "False"),
        "pm": ("PmLayer.take", "frame.key != self.key", "False"),
        "vmmc2": ("VmmcLayer._granted", "frame.key != buffer.key", "False"),
    },
    "multiprogramming": {
        "gam": _ALONE,
        "bip": _ALONE,
        "fm2": ("FastMessagesLayer.shares_node", "self.registered", "True"),
        "fm2.1": ("FastMessagesLayer.shares_node", "self.registered", "False"),
        **_PROCESSES,
    },
    "overflow": {
        **dict.fromkeys(
            ("gam", "am2"),
            (
                "ActiveLayer._ask",
                "self.tokens.setdefault(target, TOKENS) <= 0",
                "self.tokens.setdefault(target, TOKENS) < -999",
            ),
        ),
        "bip": ("BipLayer.take", "len(state.queue) < state.room", "True"),
        **dict.fromkeys(_FM, ("FastMessagesLayer._credit", "return self.credit[target] > 0", "return True")),
        "pm": (
            "PmLayer._take_data",
            "not self.running or (frame.kind is FrameKind.DATA and (not self._free_receive))",
            "not self.running",
        ),
        "vmmc2": ("VmmcLayer._granted", "frame.offset + length > len(buffer.default)", "frame.offset >= 64"),
    },
    "errors": {
        **dict.fromkeys(("gam", "bip", *_FM), _LENIENT),
        "am2": _UNNUMBERED,
        "pm": _GAPS,
        "vmmc2": _UNNUMBERED,
    },
    "management": {
        **dict.fromkeys(("gam", "bip", *_FM, "pm"), _ANY_NODE),
        "am2": ("Am2Layer.take", "self.nodes.add(source[0])", "pass"),
        "vmmc2": ("VmmcLayer.import_buffer", "self.nodes.add(owner[0])", "pass"),
    },
    "send": {
        "gam": ("GamLayer.move", "self.transferred.note(length)", "self.written.note(length)"),
        "am2": ("Am2Layer.move", "self.written.note(length)", "self.transferred.note(length)"),
        "bip": ("BipLayer.send", "self.translated.note(len(part))", "self.send_copies.note(len(part))"),
        **dict.fromkeys(_FM, ("FastMessagesLayer.send_piece", "self.written.note(len(part))", "pass")),
        "pm": ("PmLayer._transmit", "self.transferred.note(len(frame.data))", "self.written.note(len(frame.data))"),
        "vmmc2": ("VmmcLayer.send", "len(data) <= WRITTEN", "True"),
    },
    "receive": {
        **dict.fromkeys(("gam", "am2"), ("ActiveLayer.keep", "self.transferred.note(len(frame.data))", "pass")),
        "bip": ("BipLayer.take", "self.translated.note(len(data))", "self.receive_copies.note(len(data))"),
        **dict.fromkeys(_FM, ("FastMessagesLayer.take", "self.transferred.note(len(frame.data))", "pass")),
        "pm": (
            "PmLayer._store",
            "self.transferred.copy(buffer.memory, data[:buffer.length])",
            "self.receive_copies.copy(buffer.memory, data[:buffer.length])",
        ),
        "vmmc2": (
            "VmmcLayer._take_deposit",
            "self.translated.note(len(data))",
            "self.receive_copies.note(len(data))",
        ),
    },
    "protection": {
        "gam": ("GamLayer.move", "self.send_copies.copy(buffer, frame.data)", "buffer[:] = frame.data"),
        "am2": ("Am2Layer.move", "self.send_copies.note(length)", "pass"),
        "bip": ("BipLayer._tag", "_Tag()", "_Tag(0)"),
        **dict.fromkeys(
            _FM, ("FastMessagesLayer.send_piece", "self.send_copies.note(len(part))", "self.written.note(len(part))")
        ),
        "pm": (
            "PmLayer._take_data",
            "not self.running or (frame.kind is FrameKind.DATA and (not self._free_receive))",
            "frame.kind is FrameKind.DATA and (not self._free_receive)",
        ),
        "vmmc2": ("VmmcLayer._granted", "frame.key != buffer.key", "False"),
    },
    "reliability": {
        **dict.fromkeys(("gam", "bip", *_FM), _LENIENT),
        "am2": ("Am2Layer.move", "self.send_copies.copy(kept, frame.data)", "kept[:] = frame.data"),
        "pm": _GAPS,
        "vmmc2": (
            "VmmcLayer.send",
            "part = data[start:start + self.payload]",
            "part = data[start:start + self.payload]\nself.send_copies.note(len(part))",
        ),
    },
    "notification": {
        **dict.fromkeys(("gam", "am2"), (*_KEPT, "self._handle(source, frame)")),
        "bip": (
            "BipLayer.take",
            "(state.filling, state.length) = (False, min(frame.key, len(state.posted)))",
            "state.filling = False",
        ),
        **dict.fromkeys(
            _FM, ("FastMessagesLayer.take", "self._ring.append((source, frame))", "self._handle(source, frame)")
        ),
        "pm": _BLIND,
        "vmmc2": _EMPTY,
    },
}
"""By row and library."""
CELL_MUTANTS: Final = tuple(
    Mutant(f"{name}, {row}", row, *change, room="bench/models")
    for row, by_library in CHANGES.items()
    for name, change in by_library.items()
)


def shown(mutant: Mutant) -> Any:
    """The value of a mutant's cell as the behaviour of the changed model shows it; the error that ends the model."""
    name = mutant.name.partition(", ")[0]
    with changed(mutant):
        try:
            return ROWS[mutant.rule](name)
        except (AssertionError, CallError, CatastropheError, LookupError, ValueError) as error:
            return f"{type(error).__name__}: {error}"


def survivors() -> Iterator[Mutant]:
    """The mutants that no cell shows."""
    for each in CELL_MUTANTS:
        if shown(each) == getattr(MODELS[each.name.partition(", ")[0]].facts, each.rule):
            yield each


def try_all() -> int:
    """Try all mutants, and print a line for each; return 1 if one survives."""
    alive = {each.name for each in survivors()}
    for each in CELL_MUTANTS:
        found = "SURVIVES" if each.name in alive else str(shown(each)).partition("\n")[0][:80]
        print(f"{each.name:28} {each.function:34} {found}")
    print(f"{len(CELL_MUTANTS) - len(alive)} killed, {len(alive)} alive")
    return 1 if alive else 0
