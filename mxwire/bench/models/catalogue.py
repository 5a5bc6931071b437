"""The models by name, and the rows of the tables that are not models here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from mxwire.bench.models import am2, bip, fm2, gam, gm, null, pm, portals, unet, vmmc2
from mxwire.bench.models.facts import FACTS, ModelFacts
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

    @property
    def facts(self) -> ModelFacts:
        """Its row of the tables."""
        return FACTS[self.layer.name]

    @property
    def adapter_takes_messages(self) -> bool:
        """True if the adapter itself puts received data where the program finds them; otherwise a processor does."""
        return self.facts.stages[3] != "o_r"


MODELS: Final = {
    each.name: each
    for each in (
        Model("gam", gam.GamLayer, gam.ActivePort),
        Model("am2", am2.Am2Layer, gam.ActivePort),
        Model("bip", bip.BipLayer, bip.BipPort),
        Model("fm2", fm2.FastMessagesLayer, fm2.FastMessagesPort),
        Model("fm2.1", fm2.RegisteredFastMessagesLayer, fm2.FastMessagesPort),
        Model("pm", pm.PmLayer, pm.PmPort),
        Model("vmmc2", vmmc2.VmmcLayer, vmmc2.VmmcPort),
        Model("gm", gm.GmLayer, gm.GmPort),
        Model("portals", portals.PortalsLayer, portals.PortalsPort),
        Model("unet", unet.UnetLayer, unet.UnetPort),
        Model("null", null.NullLayer, null.NullPort),
    )
}
"""The models that run, in the order of the tables."""
UNSYNCHRONISED: Final = "bip unsynchronised"
VARIANTS: Final = {UNSYNCHRONISED: Model(UNSYNCHRONISED, bip.BipLayer, bip.UnsynchronisedBipPort)}
"""Models that are used in another manner."""
COPIED: Final = " copied"
"""Appended to a model: the program's data are in memory of its own."""
CARD: Final = " with card"
"""Appended to a model, before :data:`COPIED`: the adapter's part of the library runs in another process."""
OTHERS: Final = {name: row for name, row in FACTS.items() if name not in MODELS}
"""Rows without a layer: mxwire's engine, sockets, and libraries that no paper describes."""
WITHOUT_CODE: Final = ("fm1", "myricom-api")
"""Rows of libraries that cannot be measured."""


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
    if name not in FACTS:
        end = suggestion(name, FACTS) or f": use some of {', '.join(FACTS)}"
        raise MxwireError(f"there is no model {name!r}{end}")
    return name
