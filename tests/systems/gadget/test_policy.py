"""Ring schedulers under the audit: whole runs, failures, restarts, saving, networks they know and refuse."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.builders import loop_of, rows, scenario
from tradewind.model.errors import InputError, Unsupported
from tradewind.model.job import Job, Rounds
from tradewind.model.network import Link
from tradewind.model.node import Node
from tradewind.model.scenario import Scenario
from tradewind.model.setup import Setup
from tradewind.model.units import UNLIMITED
from tradewind.model.utility import Utility
from tradewind.model.view import Change
from tradewind.registry import policies, workloads
from tradewind.systems.gadget.shared.gains import JobGains
from tradewind.systems.gadget.study.runs import moved_share
from tradewind.worlds.simulate import simulate

NAMES = ("gadget", "gadget-paper", "ring-fifo", "ring-drf", "ring-las")
SLOT = 100


def small(family: str = "tight", utility: str = "sigmoid", seed: int = 1, **more: Any) -> Scenario:
    given = {"family": family, "utility": utility, "servers": 10, "jobs": 25, "slots": 15} | more
    return workloads.generate("gadget", given, seed)


def ring_job(
    index: int, *, count: int = 8, workers: int = 4, band: int = 5, least: int = 1, **more: Any
) -> Job:
    return Job(
        index=index, id=f"j{index}", arrive_us=0, worker=((0, 1000),), workers_min=least, workers_max=workers,
        work=Rounds(count=count, unit="worker-slot", comm="ring"), ring_bps=band,
        **({"utility": Utility(of="progress", shape="linear", args=(0.0, 1.0))} | more),
    )  # fmt: skip


def tree(gpus: tuple[tuple[int, ...], ...], link: int = 10, trunk: int = 10, spines: int = 1) -> Setup:
    """Racks of servers with so many gpus under `spines` switches."""
    none = (UNLIMITED,)
    nodes = [Node(name=f"spine-{k}", kind="switch", capacity_milli=none) for k in range(spines)]
    links = []
    for g, rack in enumerate(gpus):
        tor = len(nodes)
        nodes.append(Node(name=f"tor-{g}", kind="switch", capacity_milli=none))
        links += [Link(a=tor, b=k, ab_bps=trunk, ba_bps=trunk) for k in range(spines)]
        for number in rack:
            links.append(Link(a=len(nodes), b=tor, ab_bps=link, ba_bps=link))
            nodes.append(Node(name=f"s{len(nodes)}", kind="server", capacity_milli=(number * 1000,)))
    return Setup(
        resources=("gpu",), nodes=tuple(nodes), links=tuple(links), slot_us=SLOT, horizon_us=20 * SLOT,
        objective="utility",
    )  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("family", ["paper", "tight", "vtight", "multi"])
@pytest.mark.parametrize("utility", ["sigmoid", "gang"])
def test_every_scheduler_passes_the_audit_on_every_family(name: str, family: str, utility: str) -> None:
    run = simulate(small(family, utility), policies.find(name))
    assert run.violations == ()
    assert run.metrics["jobs"] == 25
    assert run.metrics["utility"] > 0


@pytest.mark.parametrize("name", NAMES)
def test_same_seed_same_run(name: str) -> None:
    one, two = (simulate(small(), policies.find(name), seed=4) for _ in range(2))
    assert one.tables == two.tables


@pytest.mark.parametrize("name", NAMES)
def test_a_restored_scheduler_goes_on_identically(name: str) -> None:
    given, spec = small(utility="gang", failing=0.1, restart_s=30), policies.find(name)
    values = {key: param.default for key, param in spec.params.items()}

    def fresh() -> Any:
        return spec.factory(given.setup, values, np.random.default_rng(3))

    whole = loop_of(given, spec, fresh())
    whole.run()
    first = fresh()
    loop = loop_of(given, spec, Swapped(first, fresh))
    loop.run()
    assert loop.session.journal.tables == whole.session.journal.tables


class Swapped:
    """Saves its policy, throws it away and restores a new one before every decision."""

    def __init__(self, policy: Any, fresh: Any) -> None:
        self._policy, self._fresh = policy, fresh

    def decide(self, view: Any) -> Any:
        state = self._policy.save()
        self._policy = self._fresh()
        self._policy.restore(state)
        return self._policy.decide(view)

    def save(self) -> bytes:
        saved: bytes = self._policy.save()
        return saved

    def restore(self, state: bytes) -> None:
        self._policy.restore(state)


@pytest.mark.parametrize("name", NAMES)
def test_a_job_wider_than_the_cluster_is_turned_away_and_the_others_go_on(name: str) -> None:
    given = scenario([ring_job(0, workers=9, least=9), ring_job(1)], where=tree(((2, 2), (2,))))
    run = simulate(given, policies.find(name))
    assert run.metrics["jobs_refused"] == 1
    assert run.metrics["jobs_completed"] == 1


def test_a_gang_that_needs_bandwidth_nobody_has_is_turned_away() -> None:
    given = scenario([ring_job(0, workers=5, least=5)], where=tree(((4, 4), (4,)), link=0, trunk=0))
    run = simulate(given, policies.find("gadget"))
    assert run.metrics["jobs_refused"] == 1
    wide = scenario([ring_job(0, workers=5, least=5, count=10)], where=tree(((4, 4), (4,))))
    assert simulate(wide, policies.find("gadget")).metrics["jobs_completed"] == 1


@pytest.mark.parametrize("name", ["gadget", "ring-fifo"])
def test_a_ring_through_a_dead_server_loses_its_slot_and_comes_back_elsewhere(name: str) -> None:
    where = tree(((2,), (2,)))
    server = where.node("s2")
    changes = (Change(150, "node_down", server, 0, 0), Change(350, "node_up", server, 0, 0))
    given = scenario([ring_job(0, count=4, workers=2, least=2)], where=where, changes=changes)
    run = simulate(given, policies.find(name))
    began = rows(run, "steps", "from_us", "until_us")
    assert began[0][0] == 0
    voided = [e for e in rows(run, "events", "at_us", "kind", "value") if e[1] == "voided"]
    if voided:  # the ring was on the server that failed: one slot of two workers is kept
        assert voided == [(150, "voided", 2_000_000)]
        assert run.tables["outcomes"]["finish_us"] == [300]
    else:
        assert run.tables["outcomes"]["finish_us"] == [200]


def test_a_dead_link_stops_the_rings_over_it_and_only_their_slot_is_lost() -> None:
    where = tree(((1,), (1,), (1,)))
    changes = tuple(Change(150, "link_down", k, 0, 0) for k in (0,))
    given = scenario([ring_job(0, count=6, workers=2, least=2)], where=where, changes=changes)
    run = simulate(given, policies.find("gadget"))
    assert run.metrics["jobs_completed"] == 1
    finish = run.tables["outcomes"]["finish_us"][0]
    assert finish in (300, 400)  # 300 where the ring did not cross the link


def test_moving_costs_what_the_job_says() -> None:
    free = simulate(small(utility="sqrt", jobs=40), policies.find("ring-las"))
    dear = simulate(small(utility="sqrt", jobs=40, restart_s=150), policies.find("ring-las"))
    assert dear.metrics["utility"] < free.metrics["utility"]


def test_sticky_rings_move_less_at_no_loss() -> None:
    given = small("paper", "sqrt", servers=20, jobs=80, slots=20)
    stay = simulate(given, policies.find("gadget"))
    move = simulate(given, policies.find("gadget"), {"sticky": False})
    assert stay.metrics["steps_mean"] < 0.7 * move.metrics["steps_mean"]
    assert stay.metrics["utility"] >= 0.999 * move.metrics["utility"]


def test_less_than_a_quarter_of_elastic_jobs_on_small_servers_move_at_no_loss() -> None:
    given = small("vtight", "sqrt", seed=6, servers=30, jobs=120, slots=25)
    stay, move = (simulate(given, policies.find("gadget"), {"sticky": sticky}) for sticky in (True, False))
    assert moved_share(given, stay) <= 0.25
    assert moved_share(given, move) >= 0.7
    assert stay.metrics["utility"] >= 0.999 * move.metrics["utility"]


def test_a_sigmoid_job_that_needs_four_slots_earns_its_utility() -> None:
    steep = Utility(of="progress", shape="sigmoid", args=(10.0, 10.0, 6.0), from_zero=True)
    flat = Utility(of="progress", shape="linear", args=(0.0, 1e-3))
    jobs = [ring_job(0, count=8, workers=2, utility=steep), ring_job(1, count=99, workers=2, utility=flat)]
    given = scenario(jobs, where=tree(((2,),)))
    assert simulate(given, policies.find("gadget")).metrics["utility"] > 9.9
    assert simulate(given, policies.find("gadget"), {"sight": "slot"}).metrics["utility"] < 0.1


def test_a_job_that_can_wait_lets_one_pass_that_cannot() -> None:
    # Of two GPUs, 20 slots: the second job needs one of them all the time, the first both for four slots or one for eight.
    soon = Utility(of="progress", shape="sigmoid", args=(10.0, 10.0, 7.0), from_zero=True)
    late = Utility(of="progress", shape="sigmoid", args=(10.0, 10.0, 19.0), from_zero=True)
    jobs = [ring_job(0, count=8, workers=2, utility=soon), ring_job(1, count=20, workers=1, utility=late)]
    given = scenario(jobs, where=tree(((2,),)))
    assert simulate(given, policies.find("gadget")).metrics["utility"] > 19.9
    assert simulate(given, policies.find("gadget"), {"sight": "envelope"}).metrics["utility"] < 10.1


def test_every_hop_between_racks_chooses_a_spine_with_room() -> None:
    where = tree(((1, 1), (1, 1)), trunk=5, spines=2)
    given = scenario(
        [ring_job(i, count=4, workers=2, least=2, nodes=frozenset((3 + i, 6 + i))) for i in (0, 1)],
        where=where,
    )
    run = simulate(given, policies.find("gadget"))
    assert run.tables["outcomes"]["finish_us"] == [200, 200]
    moved = [replace(job, nodes=frozenset(n - 1 for n in job.nodes or ())) for job in given.jobs]
    alone = scenario(moved, where=tree(((1, 1), (1, 1)), trunk=5))
    assert sorted(simulate(alone, policies.find("gadget")).tables["outcomes"]["finish_us"]) == [200, 400]


@pytest.mark.parametrize("name", ["gadget", "ring-drf"])
def test_a_ring_that_no_single_spine_carries_shrinks_into_one_rack_instead_of_waiting(name: str) -> None:
    where = tree(((1,), (1,)), trunk=3, spines=2)  # six together, and a hop needs five on one of them
    run = simulate(scenario([ring_job(0, count=4, workers=2)], where=where), policies.find(name))
    assert run.tables["outcomes"]["finish_us"] == [400]
    assert run.tables["routes"]["step"] == []


def test_leaf_spine_networks_share_out_the_bandwidth_of_a_rack() -> None:
    one, four = (small("vtight", "sqrt", spines=n).setup for n in (1, 4))
    assert [node.name for node in four.nodes[:4]] == [f"spine-{k}" for k in range(4)]
    assert len(four.nodes) == len(one.nodes) + 3
    trunk = [k.ab_bps for k in one.links if one.nodes[k.b].name == "core"]
    spread = [k.ab_bps for k in four.links if four.nodes[k.b].name.startswith("spine")]
    assert spread == [bps // 4 for bps in trunk for _ in range(4)]


def test_uplinks_narrower_than_some_rings_cost_jobs_that_may_shrink_little() -> None:
    tree_run, leaf_run = (
        simulate(small("vtight", "sqrt", servers=20, jobs=60, spines=n), policies.find("gadget"))
        for n in (1, 4)
    )
    assert leaf_run.violations == ()
    assert leaf_run.metrics["utility"] >= 0.98 * tree_run.metrics["utility"]


def test_a_cycle_of_switches_is_refused_with_the_reason() -> None:
    where = tree(((1,), (1,)))
    extra = Link(a=where.node("tor-0"), b=where.node("tor-1"), ab_bps=1, ba_bps=1)
    ringed = replace(where, links=(*where.links, extra))
    with pytest.raises(Unsupported, match="a link to another rack's switch"):
        simulate(scenario([ring_job(0)], where=ringed), policies.find("gadget"))


def test_rings_need_no_links_where_there_are_none() -> None:
    where = replace(tree(((2, 2),)), links=())
    run = simulate(scenario([ring_job(0, workers=3, least=3, count=6)], where=where), policies.find("gadget"))
    assert run.tables["outcomes"]["finish_us"] == [200]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("servers", 0),
        ("jobs", 0),
        ("slots", 0),
        ("spines", 0),
        ("failing", 1.5),
        ("link_scale", -1),
        ("restart_s", -1),
    ],
)
def test_impossible_parameters_are_named(name: str, value: float) -> None:
    with pytest.raises(InputError, match=name):
        workloads.generate("gadget", {name: value}, 0)


@pytest.mark.parametrize(
    ("policy", "name", "value"),
    [("gadget", "rounds", -1), ("gadget", "enough", 1.5), ("gadget-paper", "tries", 0)],
)
def test_impossible_knobs_of_the_schedulers_are_named(policy: str, name: str, value: float) -> None:
    with pytest.raises(InputError, match=rf"{policy}\.{name}"):
        simulate(small(), policies.find(policy), {name: value})


def test_no_bandwidth_at_all_still_runs_what_fits_on_one_server() -> None:
    run = simulate(small("tight", "sqrt", link_scale=0), policies.find("gadget"))
    assert run.metrics["utility"] > 0
    assert run.tables["routes"]["step"] == []


@pytest.mark.parametrize("objective", ["training", "energy", "fairness"])
def test_the_three_objectives_run_and_gadget_leads(objective: str) -> None:
    given = small("tight", "sqrt", objective=objective, jobs=40)
    ours = simulate(given, policies.find("gadget")).metrics["utility"]
    for name in ("ring-fifo", "ring-las"):
        assert ours >= simulate(given, policies.find(name)).metrics["utility"]


@pytest.mark.parametrize("name", ["fifo", "las", "srtf", "drf"])
def test_a_plain_scheduler_refuses_ring_jobs_and_names_its_ring_form(name: str) -> None:
    with pytest.raises(Unsupported, match=f"ring-{name}"):
        simulate(scenario([ring_job(0)], where=tree(((2,),))), policies.find(name))


def test_a_ring_job_without_workers_is_refused_where_it_is_made() -> None:
    with pytest.raises(InputError, match="workers"):
        ring_job(0, workers=0, least=0)


def test_a_utility_that_falls_is_not_followed_down() -> None:
    falling = Utility(of="progress", shape="linear", args=(5.0, -1.0))
    given = scenario([ring_job(0, utility=falling), ring_job(1)], where=tree(((2,),)))
    run = simulate(given, policies.find("gadget"))
    assert run.violations == ()
    assert run.metrics["utility"] == pytest.approx(5.0 + 8.0)


def test_in_a_last_slot_gains_are_what_the_slot_earns() -> None:
    """The envelope of a climb promises what later slots would earn."""
    climb = Utility(of="progress", shape="sigmoid", args=(80.0, 0.01, 450.0), from_zero=True)
    given = workloads.generate("gadget", {"servers": 3, "jobs": 4, "slots": 2}, 1)
    jobs = [replace(job, utility=climb, workers_min=1, workers_max=4) for job in given.jobs]
    ahead, alone = (
        JobGains(sight, given.setup, np.full(len(given.setup.resources), 1e6)) for sight in ("ahead", "slot")
    )
    done = [0] * len(jobs)
    assert (ahead.gains(jobs, done, 1) == alone.gains(jobs, done, 1)).all()
    assert (ahead.gains(jobs, done, 2) > alone.gains(jobs, done, 2))[:, 1].any()
