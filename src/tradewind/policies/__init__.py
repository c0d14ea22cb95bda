"""The catalogue of policies: a name, and where its line (model.spec.Spec) is written.

A new policy is one file with a Spec in it and one line here. Nothing is imported before it is asked for.
"""

from __future__ import annotations

from importlib import import_module

from tradewind.model.errors import LookupFailed
from tradewind.model.spec import Spec

CATALOGUE: dict[str, str] = {
    "drf": "tradewind.policies.baselines.drf:DRF",
    "fifo": "tradewind.policies.baselines.fifo:FIFO",
    "fifo-backfill": "tradewind.policies.baselines.fifo:BACKFILL",
    "las": "tradewind.policies.baselines.las:LAS",
    "srsf": "tradewind.policies.baselines.srtf:SRSF",
    "srtf": "tradewind.policies.baselines.srtf:SRTF",
}
"""Name -> "module:attribute" of its Spec."""


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
