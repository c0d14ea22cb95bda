"""Runs a policy on a scenario in the simulated world."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np

from tradewind.audit import Audit, compare
from tradewind.engine.accounts import settle
from tradewind.engine.fit import check_fit
from tradewind.engine.journal import Journal
from tradewind.engine.ledger import Ledger
from tradewind.engine.loop import Loop, Progress
from tradewind.engine.session import Session
from tradewind.engine.state import RunState
from tradewind.model.errors import Refused
from tradewind.model.hash import scenario_hash
from tradewind.model.params import check_seed, resolve_params
from tradewind.model.result import Run, Timings
from tradewind.model.scenario import Scenario
from tradewind.model.spec import Spec
from tradewind.model.view import Policy
from tradewind.registry import load
from tradewind.version import __version__
from tradewind.worlds.simulated import SimulatedWorld


def make_policy(
    scenario: Scenario, spec: Spec, given: Mapping[str, Any], seed: int
) -> tuple[Policy, dict[str, Any]]:
    """A policy and all its parameters; a hindsight baseline computes them from the whole scenario."""
    check_seed(seed)
    values = resolve_params(spec.name, spec.params, given)
    if not spec.online:
        values = resolve_params(spec.name, spec.params, load(spec.hindsight)(scenario, given))
    random = np.random.default_rng(np.random.SeedSequence(entropy=seed, spawn_key=(1,)))
    return spec.factory(scenario.setup, values, random), values


def simulate(
    scenario: Scenario,
    spec: Spec,
    params: Mapping[str, Any] | None = None,
    *,
    seed: int = 0,
    progress: Progress | None = None,
) -> Run:
    """Run a policy on a scenario under audit; raise Refused if it breaks a rule."""
    check_fit(spec, scenario)
    begin = perf_counter()
    policy, values = make_policy(scenario, spec, params or {}, seed)
    world = SimulatedWorld(scenario, slots="slot" in spec.triggers)
    audit = Audit(scenario.setup, scenario, binding=spec.binding)
    state = RunState(Ledger(scenario.setup), audit, Journal())
    session = Session(state, policy, spec, world.ask)
    with _rare_collections():
        Loop(world, session).run(progress)
        run = settle(scenario, unsettled(scenario, spec, values, seed, state.journal))
        report = audit.close()
    if found := report.violations + compare(report.metrics, run.metrics):
        raise Refused(found)
    return timed(run, perf_counter() - begin, session.decide_s)


def unsettled(scenario: Scenario, spec: Spec, params: Mapping[str, Any], seed: int, journal: Journal) -> Run:
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
        tables=journal.tables,
        certificates=tuple(
            {"at_us": at, "name": c.name, "value": c.value, "sense": c.sense, "data": dict(c.data)}
            for at, c in journal.certificates
        ),
    )


@contextmanager
def _rare_collections() -> Iterator[None]:
    """Collect garbage less often: a run creates millions of objects that live until its end."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def timed(run: Run, total_s: float, decide_s: Sequence[float]) -> Run:
    """Add wall-clock times in seconds to a run."""
    p50, p99 = (float(q) for q in np.quantile(decide_s, [0.5, 0.99])) if decide_s else (0.0, 0.0)
    return replace(run, timings=Timings(total=total_s, decide_p50=p50, decide_p99=p99))
