"""Rows of Tables 4-5 and Figures 15-17: the scaled real experiment, with the time that instances wait for parameters.

The paper bills "the running time of each instance" and explains Table 5 by the time spent waiting for communication. It
does not say how long a GB takes, but Tables 4 and 5 do: Cost4 at 0.02 USD per GB is the traffic between zones, and the
running time above Central's, which has none, is the waiting.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from tradewind.lab.study import Effort, Row
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.model.setup import Setup
from tradewind.model.spec import Spec
from tradewind.systems.mlbroker.explain.slots import decided_slots
from tradewind.systems.mlbroker.kernels.sites import Weights
from tradewind.systems.mlbroker.paper import MLBROKER_PAPER
from tradewind.systems.mlbroker.policy import MLBROKER
from tradewind.systems.mlbroker.rivals.alone import CENTRAL
from tradewind.systems.mlbroker.rivals.local import LOCAL
from tradewind.systems.mlbroker.rivals.oasis import OASIS, Oasis
from tradewind.systems.mlbroker.shared.policy import SlotPolicy, mlbroker_spec
from tradewind.systems.mlbroker.study.rows import PARTS, compared
from tradewind.systems.mlbroker.workload.real import GB_USD, INSTANCE_USD_PER_HOUR, real_experiment
from tradewind.worlds.simulate import simulate

COST4_USD = {"mlbroker": 34.5, "local": 119.1, "central": 0.0, "oasis": 50.7}
"""Table 4: cost of parameters between zones."""
RUNNING_HOURS = {"mlbroker": 392.2, "local": 417.7, "central": 388.6, "oasis": 396.7}
"""Table 5: running time of all instances."""
TOTAL_USD = {"mlbroker": 1070.1, "local": 1386.1, "central": 1099.8, "oasis": 1201.0}
"""Table 4: overall cost."""
NAMES = (MLBROKER.name, MLBROKER_PAPER.name, CENTRAL.name)


def waiting_hours_per_gb() -> float:
    """Instance hours of waiting per GB between zones: least squares through zero over Tables 4 and 5 (about 16 s)."""
    gb = np.array([COST4_USD[name] / GB_USD for name in RUNNING_HOURS])
    hours = np.array([RUNNING_HOURS[name] - RUNNING_HOURS["central"] for name in RUNNING_HOURS])
    return float(gb @ hours / (gb @ gb))


def _list_prices(setup: Setup, params: object, rng: np.random.Generator) -> SlotPolicy:
    del params
    return SlotPolicy(setup, Oasis(rng), Weights())


OASIS_LIST: Spec = mlbroker_spec(
    "oasis-list", "OASiS at list prices that draws among equally cheap sites", _list_prices
)
"""The zones have one list price: `oasis` follows the discount of the previous slot to one zone, this one spreads."""


def outcome(made: Scenario, run: Run) -> dict[str, float]:
    """Costs, instance hours and discount rate of a run; rent and hours include the waiting for parameters."""
    needed, listed = instance_hours(made, run)
    parts = {part: run.metrics[f"cost_{part}_usd"] for part in PARTS}
    rate = parts["rent"] / listed
    waiting = parts["traffic"] / GB_USD * waiting_hours_per_gb()
    waiting_usd = waiting * INSTANCE_USD_PER_HOUR * rate
    parts["rent"] += waiting_usd
    return {
        "cost": run.value + waiting_usd,
        **parts,
        "hours": needed + waiting,
        "waiting": waiting,
        "discount": rate,
    }


def instance_hours(made: Scenario, run: Run) -> tuple[float, float]:
    """Instance hours that a run of the real experiment rents without waiting, and their cost at list price."""
    hours = listed = 0.0
    for decided in decided_slots(made, run):
        amount = float(decided.workers.sum()) + float((decided.server >= 0).sum())
        hours += amount
        listed += amount * float(decided.slot.tiers.usd[0, 0, 0])
    return hours, listed


@lru_cache(maxsize=2)
def real_rows(effort: Effort) -> tuple[Row, ...]:
    """One row per policy and seed."""
    rows: list[Row] = []
    for seed in range(effort.seeds):
        made = real_experiment(seed)
        rows += [
            {"policy": spec.name, "seed": seed, **outcome(made, simulate(made, spec, seed=seed))}
            for spec in (MLBROKER, MLBROKER_PAPER, LOCAL, CENTRAL, OASIS)
        ]
    return tuple(rows)


def real_column(effort: Effort, column: str) -> list[Row]:
    """Figures 15-17: one column by policy."""
    return compared(real_rows(effort), (), column, NAMES)


def table4(effort: Effort) -> list[Row]:
    """Table 4: cost parts of the real experiment, rent with waiting."""
    return _table(effort, "part", (*PARTS, "cost"), "usd")


def table5(effort: Effort) -> list[Row]:
    """Table 5: instance hours, hours of waiting among them, discount rate and rent."""
    return _table(effort, "what", ("hours", "waiting", "discount", "rent"), "value")


def _table(effort: Effort, name: str, columns: tuple[str, ...], value: str) -> list[Row]:
    rows: list[Row] = [
        {"policy": row["policy"], "seed": row["seed"], name: column, value: row[column]}
        for row in real_rows(effort)
        for column in columns
    ]
    return compared(rows, (name,), value, NAMES)
