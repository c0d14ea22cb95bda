"""Whole runs and the papers' figures.

A study is one file per system with a `STUDY` (see `study.py`): for each figure or table of the paper its claim, a pure
function that makes our rows, a judge that says whether they reproduce the claim, and how to draw them. One line
here, and `tradewind reproduce NAME` writes CSV, pictures and a page.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from tradewind.model.errors import LookupFailed

if TYPE_CHECKING:
    from tradewind.studies.study import Study

CATALOGUE: dict[str, str] = {
    "apsp": "tradewind.studies.apsp:STUDY",
    "cross": "tradewind.studies.cross:STUDY",
    "dps": "tradewind.studies.dps:STUDY",
    "eris": "tradewind.studies.eris:STUDY",
    "gadget": "tradewind.studies.gadget:STUDY",
    "live": "tradewind.studies.live_study:STUDY",
    "mlbroker": "tradewind.studies.mlbroker:STUDY",
}
"""System -> "module:attribute" of its Study."""


def names() -> tuple[str, ...]:
    """All systems with a study, sorted."""
    return tuple(sorted(CATALOGUE))


def find(name: str) -> Study:
    """The study of a system, or an error that suggests the nearest name."""
    if name not in CATALOGUE:
        raise LookupFailed("study", name, CATALOGUE)
    module, _, attribute = CATALOGUE[name].partition(":")
    study: Study = getattr(import_module(module), attribute)
    return study
