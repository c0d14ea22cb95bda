"""Many simulations at once: here, in processes or on a cluster, with the same results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tradewind.engine.isolation.origin import Origin, load_origin, origin_of
from tradewind.engine.isolation.policy import IsolatedFactory
from tradewind.model.errors import TradewindError
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.model.spec import Spec
from tradewind.report.audited import with_bills
from tradewind.report.bounds import Bounds, find_bound
from tradewind.tasks.pool import PoolTask, Where, run_tasks
from tradewind.worlds.simulate import simulate


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """A run to be made; bills: whether tenants' bills are computed, too."""

    scenario: Scenario
    spec: Spec
    params: Mapping[str, Any] | None = None
    seed: int = 0
    bills: bool = True


def simulated(
    wanted: Sequence[Simulation], where: Where, told: Callable[[str, int], None] | None = None
) -> list[Run]:
    """The runs, in this order. told: called with policy and seed as each is done."""
    tasks = [
        PoolTask(
            name=str(number),
            group=str(id(each.scenario)),
            call=_simulate,
            args=(each.scenario, each.spec if where.is_here else _portable(each.spec), each.params, each.seed, each.bills),
        )
        for number, each in enumerate(wanted)
    ]  # fmt: skip

    def said(number: int) -> None:
        if told is not None:
            told(wanted[number].spec.name, wanted[number].seed)

    return _values(tasks, where, said)


def bounded(pairs: Sequence[tuple[Scenario, Run]], where: Where) -> list[Run]:
    """The runs with the bounds that apply to them; those of a scenario share what they can."""
    known = {id(scenario): Bounds(scenario) for scenario, _ in pairs}
    todo = {(id(scenario), known[id(scenario)].key(run)): scenario for scenario, run in pairs}
    tasks = [
        PoolTask(name=str(number), group=str(of), call=find_bound, args=(scenario, key))
        for number, ((of, key), scenario) in enumerate(todo.items())
    ]
    for (of, key), found in zip(todo, _values(tasks, where), strict=True):
        known[of].known[key] = found
    return [known[id(scenario)].attach(run) for scenario, run in pairs]


def _values(
    tasks: Sequence[PoolTask], where: Where, said: Callable[[int], None] = lambda number: None
) -> list[Any]:
    """The values of tasks that are named by their numbers, in order; the first failure ends it."""
    found: dict[int, Any] = {}
    for done in run_tasks(tasks, where):
        if done.error:
            raise done.cause or TradewindError(done.error)
        found[int(done.task.name)] = done.value
        said(int(done.task.name))
    return [found[number] for number in range(len(tasks))]


def _portable(spec: Spec) -> Spec | Origin:
    """A policy as another process can load it."""
    return spec if isinstance(spec.factory, IsolatedFactory) else origin_of(spec)


def _simulate(
    scenario: Scenario, policy: Spec | Origin, params: Mapping[str, Any] | None, seed: int, bills: bool
) -> Run:
    spec = policy if isinstance(policy, Spec) else load_origin(policy)
    run = simulate(scenario, spec, params, seed=seed)
    return with_bills(scenario, run, spec) if bills else run
