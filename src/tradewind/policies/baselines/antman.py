"""AntMan on edge sites: jobs with guaranteed resources first, opportunistic ones on what is left.

As the Eris paper describes it (Sec. VI-B): every second job is guaranteed its workers, waits for all of them and keeps
them; the others take what there is, slot by slot. A guaranteed job that waits too long goes on as an opportunistic
one. Places go by the posted price.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tradewind.model.errors import InputError
from tradewind.model.setup import Setup
from tradewind.model.spec import Param
from tradewind.model.view import View
from tradewind.policies.baselines.edge import Edge, Rules, Turn, line


class AntMan(Edge):
    """patience: slots that a guaranteed job waits before it becomes opportunistic."""

    def __init__(self, setup: Setup, rules: Rules, patience: int) -> None:
        super().__init__(setup, rules)
        self._patience = patience

    def turns(self, view: View) -> Iterable[Turn]:
        running = [i for i in self.left if i in self.held]
        waiting = [i for i in self.left if i not in self.held and self._guaranteed(view, i)]
        others = [i for i in self.left if i not in self.held and not self._guaranteed(view, i)]
        sure = [Turn(i, exact=True, stays=True) for i in running + waiting]
        return sure + [Turn(i, exact=False, stays=False) for i in others]

    def _guaranteed(self, view: View, index: int) -> bool:
        waited = view.slot - view.job(index).arrive_us // view.setup.slot_us
        return index % 2 == 0 and waited <= self._patience


def _antman(setup: Setup, rules: Rules, params: Mapping[str, Any]) -> AntMan:
    if params["patience"] < 0:
        raise InputError(f"found {params['patience']}; it must not be negative", where="antman.patience")
    return AntMan(setup, rules, params["patience"])


PATIENCE = Param(default=3, doc="slots that a guaranteed job waits before it goes on as an opportunistic one")
ANTMAN = line(
    "antman",
    "Eris's rival: guaranteed jobs first, opportunistic ones on what is left, a fixed number of workers",
    _antman,
    patience=PATIENCE,
)
ANTMAN_ELASTIC = line(
    "antman-elastic", "antman with as many workers as are of use and fit", _antman, patience=PATIENCE
)
