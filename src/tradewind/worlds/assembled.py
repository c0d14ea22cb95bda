"""A run put together from its journal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tradewind.engine.journal import Journal
from tradewind.model.hash import scenario_hash
from tradewind.model.result import Run, Table, Timings
from tradewind.model.scenario import Scenario
from tradewind.model.spec import Spec
from tradewind.version import __version__


def assembled(
    scenario: Scenario, spec: Spec, params: Mapping[str, Any], seed: int, tables: Mapping[str, Table]
) -> Run:
    """A run with its journal, before costs and metrics are computed."""
    return Run(
        scenario_hash=scenario_hash(scenario),
        scenario_name=scenario.name,
        policy=spec.name,
        params=params,
        seed=seed,
        version=__version__,
        objective=scenario.setup.objective,
        metrics={},
        violations=(),
        tables=tables,
    )


def unsettled(scenario: Scenario, spec: Spec, params: Mapping[str, Any], seed: int, journal: Journal) -> Run:
    """The same from a journal, which may have certificates."""
    return replace(
        assembled(scenario, spec, params, seed, journal.tables),
        certificates=tuple(
            {"at_us": at, "name": c.name, "value": c.value, "sense": c.sense, "data": dict(c.data)}
            for at, c in journal.certificates
        ),
    )


def timed(run: Run, total_s: float, decide_s: Sequence[float]) -> Run:
    """Add wall-clock times in seconds to a run."""
    p50, p99 = (float(q) for q in np.quantile(decide_s, [0.5, 0.99])) if decide_s else (0.0, 0.0)
    return replace(run, timings=Timings(total=total_s, decide_p50=p50, decide_p99=p99))
