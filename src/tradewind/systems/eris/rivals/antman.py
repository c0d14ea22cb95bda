"""AntMan on edge sites: jobs with guaranteed resources first, opportunistic ones on what is left.

As the Eris paper describes it (Sec. VI-B): every second job is guaranteed its workers, waits for all of them and keeps
them; the others take what is free, slot by slot. A guaranteed job that waits too long becomes opportunistic. Sites are
chosen by posted price.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from tradewind.model.setup import Setup
from tradewind.model.spec import Param
from tradewind.model.view import View
from tradewind.systems.eris.shared.edge import EdgeRules, EdgeScheduler, Turn, rival_spec


class AntMan(EdgeScheduler):
    """patience: slots that a guaranteed job waits before it becomes opportunistic."""

    def __init__(self, setup: Setup, rules: EdgeRules, patience: int) -> None:
        super().__init__(setup, rules)
        self._patience = patience
        self._late: set[int] = set()
        """Guaranteed jobs that waited too long."""

    def turns(self, view: View) -> Iterable[Turn]:
        self._late &= self.left.keys()
        for index in self.left:
            waited = view.slot - view.job(index).arrive_us // view.setup.slot_us
            if waited > self._patience and index not in self.paid:
                self._late.add(index)
        running = [i for i in self.left if i in self.held]
        waiting = [i for i in self.left if i not in self.held and self._guaranteed(i)]
        others = [i for i in self.left if i not in self.held and not self._guaranteed(i)]
        sure = [Turn(i, exact=True, stays=True) for i in running + waiting]
        return sure + [Turn(i, exact=False, stays=False) for i in others]

    def _guaranteed(self, index: int) -> bool:
        return index % 2 == 0 and index not in self._late

    def save(self) -> bytes:
        return json.dumps([super().save().decode(), sorted(self._late)]).encode()

    def restore(self, state: bytes) -> None:
        rest, late = json.loads(state)
        super().restore(rest.encode())
        self._late = set(late)


def _antman(setup: Setup, rules: EdgeRules, params: Mapping[str, Any]) -> AntMan:
    return AntMan(setup, rules, params["patience"])


PATIENCE = Param(default=3, doc="slots that a guaranteed job waits before it becomes opportunistic", least=0)
ANTMAN = rival_spec(
    "antman",
    "Rival of Eris: guaranteed jobs first, opportunistic ones on what is left; a fixed number of workers",
    _antman,
    patience=PATIENCE,
)
ANTMAN_ELASTIC = rival_spec(
    "antman-elastic", "antman with as many workers as are useful and fit", _antman, patience=PATIENCE
)
