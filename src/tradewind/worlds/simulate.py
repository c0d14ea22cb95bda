"""Runs a policy on a scenario in the simulated world."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
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
from tradewind.model.errors import PolicyError, Refused, TradewindError, Unsupported, raised
from tradewind.model.params import check_seed, recorded, resolve_params
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.model.spec import Spec
from tradewind.model.view import Policy
from tradewind.registry import load
from tradewind.worlds.assembled import timed, unsettled
from tradewind.worlds.compiled import LARGE, simulate_compiled, why_not
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
    try:
        policy = spec.factory(scenario.setup, values, random)
    except TradewindError:
        raise
    except Exception as error:
        raise PolicyError(f"{spec.name} cannot be made: {raised(error)}") from error
    return policy, recorded(spec.params, values)


def simulate(
    scenario: Scenario,
    spec: Spec,
    params: Mapping[str, Any] | None = None,
    *,
    seed: int = 0,
    progress: Progress | None = None,
    fast: bool | None = None,
) -> Run:
    """Run a policy on a scenario under audit; raise Refused if it breaks a rule.

    fast  by the policy's compiled path, which gives the same run; Unsupported where it cannot. None: if the scenario is
          large and it can.
    """
    check_fit(spec, scenario)
    if fast or (
        fast is None and spec.compiled and len(scenario.jobs) >= LARGE and not why_not(scenario, spec)
    ):
        try:
            return simulate_compiled(scenario, spec, params or {}, seed=seed)
        except Unsupported:
            if fast:
                raise
    begin = perf_counter()
    policy, values = make_policy(scenario, spec, params or {}, seed)
    with _rare_collections():
        world = SimulatedWorld(scenario, slots="slot" in spec.triggers)
        audit = Audit(scenario.setup, scenario, binding=spec.binding)
        state = RunState(Ledger(scenario.setup), audit, Journal())
        session = Session(state, policy, spec, world.ask)
        Loop(world, session).run(progress)
        run = settle(scenario, unsettled(scenario, spec, values, seed, state.journal))
        report = audit.close()
    if found := report.violations + compare(report.metrics, run.metrics):
        raise Refused(found)
    return timed(run, perf_counter() - begin, session.decide_s)


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
