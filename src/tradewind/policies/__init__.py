"""The catalogue of policies: a name, and where its line (model.spec.Spec) is written.

A new policy is one file with a Spec in it and one line here. Nothing is imported before it is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from tradewind.model.errors import LookupFailed
from tradewind.model.spec import Spec

CATALOGUE: dict[str, str] = {
    "antman": "tradewind.policies.baselines.antman:ANTMAN",
    "antman-elastic": "tradewind.policies.baselines.antman:ANTMAN_ELASTIC",
    "apsp": "tradewind.policies.apsp:APSP",
    "apsp-paper": "tradewind.policies.apsp_paper:APSP_PAPER",
    "bfp": "tradewind.policies.baselines.fixed_price:BFP",
    "bfp-tau": "tradewind.policies.baselines.fixed_price:BFP_TAU",
    "central": "tradewind.policies.baselines.alone:CENTRAL",
    "dps": "tradewind.policies.dps:DPS",
    "dps-paper": "tradewind.policies.dps:DPS_PAPER",
    "dps-rs": "tradewind.policies.dps:DPS_RS",
    "dps-simple": "tradewind.policies.dps:DPS_SIMPLE",
    "drf": "tradewind.policies.baselines.drf:DRF",
    "eris": "tradewind.policies.eris:ERIS",
    "eris-paper": "tradewind.policies.eris_paper:PAPER",
    "eris-preemptive": "tradewind.policies.eris_preemptive:PREEMPTIVE",
    "eris-printed": "tradewind.policies.eris_paper:PRINTED",
    "eris-units": "tradewind.policies.baselines.scarcity_price:ERIS_UNITS",
    "fcfs": "tradewind.policies.baselines.fcfs:FCFS",
    "fifo": "tradewind.policies.baselines.fifo:FIFO",
    "fifo-backfill": "tradewind.policies.baselines.fifo:BACKFILL",
    "gadget": "tradewind.policies.gadget:GADGET",
    "gadget-paper": "tradewind.policies.gadget_paper:PAPER",
    "las": "tradewind.policies.baselines.las:LAS",
    "liquid": "tradewind.policies.baselines.liquid:LIQUID",
    "liquid-elastic": "tradewind.policies.baselines.liquid:LIQUID_ELASTIC",
    "load-balancing": "tradewind.policies.baselines.wan_rivals:LOAD_BALANCING",
    "local": "tradewind.policies.baselines.local:LOCAL",
    "mlbroker": "tradewind.policies.mlbroker:MLBROKER",
    "mlbroker-paper": "tradewind.policies.mlbroker_paper:MLBROKER_PAPER",
    "most-connected": "tradewind.policies.baselines.wan_rivals:MOST_CONNECTED",
    "oasis": "tradewind.policies.baselines.oasis:OASIS",
    "random": "tradewind.policies.dps:RANDOM_PRICE",
    "random-ps": "tradewind.policies.baselines.wan_rivals:RANDOM_PS",
    "ring-drf": "tradewind.policies.gadget_baselines:DRF",
    "ring-fifo": "tradewind.policies.gadget_baselines:FIFO",
    "ring-las": "tradewind.policies.gadget_baselines:LAS",
    "ring-srtf": "tradewind.policies.gadget_baselines:SRTF",
    "selfish": "tradewind.policies.baselines.alone:SELFISH",
    "shortest-path": "tradewind.policies.baselines.wan_rivals:SHORTEST_PATH",
    "srsf": "tradewind.policies.baselines.srtf:SRSF",
    "srtf": "tradewind.policies.baselines.srtf:SRTF",
    "tiresias": "tradewind.policies.baselines.tiresias:TIRESIAS",
    "tiresias-elastic": "tradewind.policies.baselines.tiresias:TIRESIAS_ELASTIC",
    "top": "tradewind.policies.dps:TOP",
}
"""Name -> "module:attribute" of its Spec."""
BESIDE: dict[str, tuple[str, ...]] = {"eris": ("tiresias-elastic", "antman-elastic", "liquid-elastic")}
"""System -> rivals that every comparison of its policies shows, with the bound: what a lead must be held against."""


def names() -> tuple[str, ...]:
    """All names, sorted."""
    return tuple(sorted(CATALOGUE))


def find(name: str) -> Spec:
    """The catalogue line of a policy, or an error that suggests the nearest name."""
    if name not in CATALOGUE:
        raise LookupFailed("policy", name, CATALOGUE)
    module, _, attribute = CATALOGUE[name].partition(":")
    spec = getattr(import_module(module), attribute)
    assert isinstance(spec, Spec)
    assert spec.name == name
    return spec


def with_rivals(names: Sequence[str]) -> list[str]:
    """These names, and the rivals that belong beside their systems where they are not among them."""
    systems = dict.fromkeys(find(name).system for name in names)
    return list(dict.fromkeys((*names, *(rival for system in systems for rival in BESIDE.get(system, ())))))
