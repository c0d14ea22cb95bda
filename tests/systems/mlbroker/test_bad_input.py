"""Bad input: an error before the run starts, or only the job in question is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.systems.mlbroker.test_policy import ALL, made, reasons
from tradewind.files.scenario_file import parse
from tradewind.files.scenario_write import document
from tradewind.model.errors import InputError
from tradewind.model.scenario import Scenario
from tradewind.model.spec import Spec
from tradewind.model.view import Change
from tradewind.systems.mlbroker.explain.placement import explain
from tradewind.systems.mlbroker.explain.slots import decided_slots
from tradewind.systems.mlbroker.policy import MLBROKER
from tradewind.worlds.simulate import simulate


def without_data(scenario: Scenario, jobs: set[int], slots: set[int] | None = None) -> Scenario:
    """The scenario without the data of these jobs (in these slots)."""
    v = scenario.volumes
    gone = np.isin(v.job, list(jobs)) & (np.isin(v.slot, list(slots)) if slots is not None else True)
    rows = {name: getattr(v, name)[~gone] for name in ("job", "slot", "node", "bytes")}
    return replace(scenario, volumes=replace(v, **rows))


def changed(scenario: Scenario, job: int, **fields: Any) -> Scenario:
    """The scenario with other fields of one job."""
    jobs = list(scenario.jobs)
    jobs[job] = replace(jobs[job], **fields)
    return replace(scenario, jobs=tuple(jobs))


def test_a_job_without_data_in_a_later_slot_is_not_refused() -> None:
    free = made()
    dry = without_data(free, {0}, {1})
    run = simulate(dry, MLBROKER)
    assert reasons(run) == []
    decided = next(each for each in decided_slots(dry, run) if each.number == 1)
    at = next(i for i, job in enumerate(decided.jobs) if job.index == 0)
    assert decided.workers[at].sum() == 0
    assert decided.server[at] >= 0


def test_a_refused_job_is_explained() -> None:
    given = changed(made(), 0, workers_max=1)
    run = simulate(given, MLBROKER)
    with pytest.raises(InputError, match=r"refused in slot 0: its data needs .* but at most 1 are allowed"):
        explain(given, run, given.jobs[0].id, 0)


def no_speed(raw: dict[str, Any]) -> None:
    raw["jobs"][0]["work"]["bytes_per_worker_slot"] = 0


def rising(raw: dict[str, Any]) -> None:
    raw["nodes"][1]["rent"]["vcpu"] = {"starts": [0, 10], "usd": [1.0, 2.0]}


def nowhere(raw: dict[str, Any]) -> None:
    raw["jobs"][2]["nodes"] = []


def elsewhere(raw: dict[str, Any]) -> None:
    raw["jobs"][2]["data_nodes"] = ["atlantis"]


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (no_speed, r"jobs\[job-0\].work.bytes_per_worker_slot is 0; it must be .* from 1"),
        (rising, r"site-1.*vcpu.*tier 2 costs 2.0 USD; it must be at most tier 1's 1.0"),
        (nowhere, r"nodes is empty and allows no node; leave it out to allow all nodes"),
        (elsewhere, r"data_nodes.*atlantis"),
    ],
)
def test_errors_in_the_file_are_reported_before_the_run(
    spoil: Callable[[dict[str, Any]], None], message: str
) -> None:
    raw = document(made())
    parse(raw)
    spoil(raw)
    with pytest.raises(InputError, match=message):
        parse(raw)


def test_retroactive_prices_are_refused_before_the_run() -> None:
    raw = document(made())
    raw["nodes"][1]["rent"]["vcpu"] = {"starts": [0, 10], "usd": [2.0, 1.0], "rule": "retroactive"}
    with pytest.raises(InputError, match="needs concave tariffs"):
        simulate(parse(raw), MLBROKER)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"free_usd": 1.0}, r"pools\[deal\] has a free tier"),
        (
            {"tariff": {"starts": [0, 10], "usd": [1.0, 0.5], "rule": "retroactive"}},
            r"pools\[deal\] has a retroactive tariff with several tiers",
        ),
    ],
)
def test_pools_are_refused_for_what_they_are(more: dict[str, Any], message: str) -> None:
    raw = document(made())
    pool = {
        "name": "deal",
        "rent": {"vcpu": [raw["nodes"][1]["name"]]},
        "period_us": raw["slot_us"],
        "tariff": 1.0,
    }
    raw["pools"] = [{**pool, **more}]
    with pytest.raises(InputError, match=message):
        simulate(parse(raw), MLBROKER)


@pytest.mark.parametrize("spec", ALL, ids=lambda spec: spec.name)
def test_a_job_whose_sites_are_all_forbidden_is_refused_alone(spec: Spec) -> None:
    given = changed(made(), 1, nodes=frozenset((0,)), data_nodes=frozenset((3,)))
    run = simulate(given, spec)
    assert len(reasons(run)) == 1
    assert "no site is allowed" in reasons(run)[0]
    assert run.tables["verdicts"]["job"] == [1]


@pytest.mark.parametrize("spec", ALL, ids=lambda spec: spec.name)
def test_a_site_that_is_down_is_not_used_and_only_jobs_that_need_it_are_refused(spec: Spec) -> None:
    free = made()
    lost = replace(free, changes=(Change(0, "node_down", 1, 0, 0),))
    run = simulate(lost, spec)
    assert reasons(run) == []
    assert 1 not in run.tables["places"]["node"]
    bound_to_it = simulate(changed(lost, 0, nodes=frozenset((1,))), spec)
    assert len(reasons(bound_to_it)) == 1
    assert "is up" in reasons(bound_to_it)[0]


def test_a_site_without_any_capacity_is_not_used() -> None:
    free = made()
    nodes = list(free.setup.nodes)
    nodes[0] = replace(nodes[0], capacity_milli=(0, 0, 0, 0))
    run = simulate(replace(free, setup=replace(free.setup, nodes=tuple(nodes))), MLBROKER)
    assert reasons(run) == []
    assert 0 not in run.tables["places"]["node"]
