"""The policy `mlbroker-paper`: the paper's regularised fractional step, rounding and transport (Algorithms 1-3).

Corrected where the printed version cannot run: the chord relaxes the price, no division by a demand of zero, solver
noise is snapped before rounding, traffic of every worker is billed. See docs/systems/mlbroker.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.model.job import Job
from tradewind.model.setup import Setup
from tradewind.model.spec import Param
from tradewind.systems.mlbroker.kernels.fractional import fractional_step
from tradewind.systems.mlbroker.kernels.limits import within_limits
from tradewind.systems.mlbroker.kernels.rounding import dependent, dependent_light, greedy, independent
from tradewind.systems.mlbroker.kernels.sites import Weights
from tradewind.systems.mlbroker.kernels.slot import Slot
from tradewind.systems.mlbroker.shared.policy import WEIGHTS, SlotPolicy, mlbroker_spec

Rounding = Callable[[Slot, Floats, Floats, np.random.Generator], tuple[Ints, Ints]]
"""Slot, fractional workers and servers (I, R), random numbers -> workers (I, R), server site (I,)."""
ROUNDINGS: dict[str, Rounding] = {
    "dependent": dependent,
    "dependent-light": dependent_light,
    "independent": independent,
    "greedy": greedy,
}


class Pipeline:
    """Fractional step, then rounding. State: the fractional presence v of every job, and the random generator."""

    def __init__(self, eps: float, rounding: Rounding, rng: np.random.Generator) -> None:
        self._eps = eps
        self._rounding = rounding
        self._rng = rng
        self._presence: dict[int, Floats] = {}

    def choose(self, slot: Slot, jobs: Sequence[Job]) -> tuple[Ints, Ints]:
        """The rounded fractional decision, repaired where it breaks a limit."""
        nowhere = np.zeros(slot.shape[1])
        before = np.array([self._presence.get(job.index, nowhere) for job in jobs])
        step = fractional_step(slot, before, self._eps)
        self._presence = {job.index: step.presence[i] for i, job in enumerate(jobs)}
        workers, server = self._rounding(slot, step.workers, step.server, self._rng)
        return within_limits(slot, workers, server)

    def state(self) -> Any:
        """Presence of every job, and the random generator."""
        presence = {str(job): v.tolist() for job, v in self._presence.items()}
        return {"presence": presence, "random": self._rng.bit_generator.state}

    def resume(self, state: Any) -> None:
        """Continue from :meth:`state`."""
        self._presence = {int(job): np.array(v) for job, v in state["presence"].items()}
        self._rng.bit_generator.state = state["random"]


def _paper(setup: Setup, params: Mapping[str, Any], rng: np.random.Generator) -> SlotPolicy:
    rounding = ROUNDINGS[str(params["rounding"])]
    return SlotPolicy(setup, Pipeline(float(params["eps"]), rounding, rng), Weights.read(params))


MLBROKER_PAPER = mlbroker_spec(
    name="mlbroker-paper",
    summary="The mlBroker paper's pipeline: regularised fractional step, dependent rounding, transport",
    factory=_paper,
    params={
        "eps": Param(default=0.01, doc="epsilon of the regulariser", least=1e-9, most=1e9),
        "rounding": Param(
            default="dependent",
            doc="rounding: the paper's A_round, its second half alone, or a baseline of Fig. 7",
            choices=tuple(ROUNDINGS),
        ),
        **WEIGHTS,
    },
)
