"""The models by name, and the rows of the tables that are not models here."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from mxwire.bench.models import am2, bip, fm2, gam, gm, null, pm, portals, unet, vmmc2
from mxwire.bench.models.facts import ModelFacts
from mxwire.bench.models.header import PAYLOAD
from mxwire.bench.models.layer import ModelLayer
from mxwire.bench.models.port import ModelPort
from mxwire.errors import MxwireError
from mxwire.words import suggestion


@dataclass(frozen=True, slots=True)
class Model:
    """A library with its layer and its face for benchmarks."""

    name: str
    layer: type[ModelLayer]
    port: type[ModelPort[Any]]
    facts: ModelFacts
    payload: int = PAYLOAD
    """Payload of its frames, unless the link has less room."""

    @property
    def adapter_takes_messages(self) -> bool:
        """True if the adapter itself puts received data where the program finds them; otherwise a processor does."""
        return self.facts.stages[3] != "o_r"


MODELS: Final = {
    each.name: each
    for each in (
        Model("gam", gam.GamLayer, gam.ActivePort, gam.FACTS),
        Model("am2", am2.Am2Layer, gam.ActivePort, am2.FACTS),
        Model("bip", bip.BipLayer, bip.BipPort, bip.FACTS),
        Model("fm2", fm2.FastMessagesLayer, fm2.FastMessagesPort, fm2.FACTS, fm2.PACKET),
        Model("fm2.1", fm2.RegisteredFastMessagesLayer, fm2.FastMessagesPort, fm2.REGISTERED_FACTS, fm2.PACKET),
        Model("pm", pm.PmLayer, pm.PmPort, pm.FACTS),
        Model("vmmc2", vmmc2.VmmcLayer, vmmc2.VmmcPort, vmmc2.FACTS),
        Model("gm", gm.GmLayer, gm.GmPort, gm.FACTS),
        Model("portals", portals.PortalsLayer, portals.PortalsPort, portals.FACTS),
        Model("unet", unet.UnetLayer, unet.UnetPort, unet.FACTS),
        Model("null", null.NullLayer, null.NullPort, null.FACTS),
    )
}
"""The models that run, in the order of the tables."""
UNSYNCHRONISED: Final = "bip unsynchronised"
VARIANTS: Final = {
    UNSYNCHRONISED: Model(UNSYNCHRONISED, bip.BipLayer, bip.UnsynchronisedBipPort, bip.FACTS),
}
"""Models that are used in another manner."""
COPIED: Final = " copied"
"""Appended to a model: the program's data are in memory of its own."""
CARD: Final = " with card"
"""Appended to a model, before :data:`COPIED`: the adapter's part of the library runs in another process."""
_SOCKETS: Final = {
    "model": "bytes",
    "within": True,
    "between": True,
    "multiprogramming": True,
    "send": "copy",
    "receive": "copy",
    "protection": "kernel + copy",
    "notification": "polling, interrupts",
    "stages": ("o_s", "L", "L", "L", "o_r"),
    "in_place": (1, 1),
    "elsewhere": (1, 1),
    "management": "dynamic, on demand",
    "transfer": "combined",
}
OTHERS: Final = {
    "mx": ModelFacts(
        "mx",
        model="send/recv",
        transfer="combined",
        within=True,
        between=True,
        multiprogramming=True,
        overflow="tolerated",
        errors="tolerated",
        management="dynamic, full",
        send="DMA",
        receive="DMA + copy",
        protection="kernel + copy",
        reliability="library",
        notification="polling, interrupts",
        stages=("-", "o_s", "L", "o_r", "o_r"),
        in_place=(0, 1),
        elsewhere=(0, 1),
        remark="large messages, which the receiver pulls from user memory; not a model: the engine of mxwire itself",
    ),
    "tcp": ModelFacts("TCP", overflow="prevented", errors="tolerated", reliability="kernel + copy", **_SOCKETS),  # type: ignore[arg-type]
    "udp": ModelFacts("UDP", overflow="data loss", errors="data loss", reliability="none", **_SOCKETS),  # type: ignore[arg-type]
    "fm1": replace(
        fm2.FACTS,
        title="FM-1.x",
        elsewhere=(1, 2),
        remark="no code: no paper here describes it, so this row is general knowledge and untested: FM-2.02, but with "
        "handlers that begin when their message lies contiguously in a buffer of the library; so data elsewhere are "
        "copied once more",
        remark_table=0,
    ),
    "myricom-api": ModelFacts(
        "Myricom API",
        model="send/recv",
        transfer="combined",
        within=True,
        between=False,
        multiprogramming=True,
        overflow="data loss",
        errors="data loss",
        management="dynamic, full",
        send="DMA + copy",
        receive="DMA + copy",
        protection="copy",
        reliability="none",
        notification="polling",
        stages=("o_s", "L", "L", "L", "o_r"),
        in_place=(1, 1),
        elsewhere=(1, 1),
        remark="no code: the papers name it without describing it, so this row is general knowledge and untested; "
        "its channels are those of the null model",
    ),
}
"""Rows without a layer: mxwire's engine, sockets, and libraries that no paper describes."""
WITHOUT_CODE: Final = ("fm1", "myricom-api")
"""Rows of libraries that cannot be measured."""


def all_facts() -> dict[str, ModelFacts]:
    """The rows of the tables by name."""
    return {name: each.facts for name, each in MODELS.items()} | OTHERS


def is_model(carrier: str) -> bool:
    """Return whether a carrier of a study is a model."""
    return carrier.removesuffix(COPIED).removesuffix(CARD) in MODELS | VARIANTS


def has_card(carrier: str) -> bool:
    """Return whether the adapter's part of a model runs in another process."""
    return is_model(carrier) and carrier.removesuffix(COPIED).endswith(CARD)


def model_of(carrier: str) -> tuple[Model, bool]:
    """Return the model of a carrier, and whether its data are copied."""
    name = carrier.removesuffix(COPIED)
    return (MODELS | VARIANTS)[name.removesuffix(CARD)], name != carrier


def check_model(name: str) -> str:
    """Return the name of a row. Raises :class:`~mxwire.errors.MxwireError` if there is none of that name."""
    known = all_facts()
    if name not in known:
        end = suggestion(name, known) or f": use some of {', '.join(known)}"
        raise MxwireError(f"there is no model {name!r}{end}")
    return name
