"""Parameter-server placement in the audited loop: known times, bounds, moving servers, several jobs, bad networks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.systems.apsp.cases import exact
from tradewind.api import check
from tradewind.audit.placement import recheck
from tradewind.engine.intervals import ints
from tradewind.model.decision import Decision
from tradewind.model.errors import ScenarioError
from tradewind.model.job import Rounds
from tradewind.model.params import resolve_params
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.model.spec import Spec
from tradewind.systems.apsp.bound import bound, network_of
from tradewind.systems.apsp.paper import APSP_PAPER
from tradewind.systems.apsp.policy import APSP
from tradewind.systems.apsp.rivals import LOAD_BALANCING, MOST_CONNECTED, RANDOM_PS, SHORTEST_PATH
from tradewind.systems.apsp.shared.policy import PlacementPolicy
from tradewind.systems.apsp.workload.generator import APSP as WORKLOAD
from tradewind.worlds.simulate import simulate

ALL = (APSP, APSP_PAPER, RANDOM_PS, MOST_CONNECTED, SHORTEST_PATH, LOAD_BALANCING)
DAY = {"vary": 1.0, "epochs": 1_000_000, "hours": 8.0, "compute_s": 5.0}


def made(seed: int = 0, **given: Any) -> Scenario:
    return WORKLOAD.generate(resolve_params("apsp", WORKLOAD.params, given), seed)


def servers(run: Run) -> list[int]:
    """Nodes of the server, in the order of the steps."""
    places = run.tables["places"]
    return [int(str(n)) for n, s in zip(places["node"], places["servers"], strict=True) if int(str(s))]


def forged(scenario: Scenario, run: Run, certificate: Mapping[str, Any]) -> str:
    """What the audit of the file reports about this certificate in place of the run's own."""
    found = check(scenario, replace(run, certificates=(certificate,)))
    assert all(v.rule == "certificate.placement" for v in found)
    return str(found[0]) if found else ""


def two_jobs() -> Scenario:
    """A job between two sites that takes all of a link, and ten seconds later one between all sites."""
    scenario = made(0, topology="internet2", epochs=30)
    job = scenario.jobs[0]
    pair = Rounds(count=30, comm="flows", pinned=((0, 1), (1, 1)))
    first = replace(job, id="first", work=pair, workers_min=2, workers_max=2)
    second = replace(job, index=1, id="second", arrive_us=10_000_000)
    return replace(scenario, jobs=(first, second), customers=())


def rounds_done(run: Run) -> float:
    events = run.tables["events"]
    return float(events["value"][list(events["kind"]).index("ended")])


@pytest.mark.parametrize(("topology", "seconds"), [("b4", 1.7664), ("internet2", 1.472)])
def test_equal_links_of_five_gigabit_give_the_known_epoch(topology: str, seconds: float) -> None:
    run = simulate(made(topology=topology, min_mbps=5000), APSP)
    assert run.metrics["epoch_s"] == pytest.approx(seconds, abs=2e-6)


@pytest.mark.parametrize("spec", ALL, ids=lambda spec: spec.name)
@pytest.mark.parametrize(
    "given",
    [
        {},
        {"topology": "internet2", "rule": "linear", "shared": True},
        {"transport": "cut-through", "latency": True},
        {"transport": "chunks:4", "workers": "Singapore,Dublin-IE,Lenoir-NC"},
    ],
    ids=["plain", "shared", "cut-through", "chunks"],
)
def test_every_policy_passes_the_audit_and_none_beats_the_bound(spec: Spec, given: dict[str, Any]) -> None:
    scenario = made(3, **given)
    least = bound(scenario)
    assert least is not None
    run = simulate(scenario, spec, seed=2)
    assert run.violations == ()
    assert run.metrics["epoch_s"] >= least.value * (1 - 1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_apsp_is_never_slower_than_its_rivals(seed: int) -> None:
    scenario = made(seed, topology="internet2")
    ours = simulate(scenario, APSP, seed=1).metrics["epoch_s"]
    for spec in ALL[1:]:
        assert ours <= simulate(scenario, spec, seed=1).metrics["epoch_s"] * (1 + 1e-6)


def test_apsp_is_the_optimum_of_one_milp_per_site() -> None:
    scenario = made(4, topology="internet2", rule="uniform")
    job = scenario.jobs[0]
    net = network_of(scenario, job)
    level = exact(net.problem)
    assert simulate(scenario, APSP).metrics["epoch_s"] == pytest.approx(net.seconds(level), abs=2e-6)


def test_doubling_the_model_doubles_the_epoch() -> None:
    scenario = made(5)
    job = scenario.jobs[0]
    double = replace(scenario, jobs=(replace(job, model_bytes=2 * job.model_bytes),))
    one, two = (simulate(s, APSP).metrics["epoch_s"] for s in (scenario, double))
    assert two == pytest.approx(2 * one, rel=1e-6)


def test_the_certificate_of_a_decision_checks_and_a_forged_one_does_not() -> None:
    scenario = made(6, rule="inverse")
    (certificate,) = simulate(scenario, APSP).certificates
    plain = json.loads(json.dumps(certificate))
    assert recheck(scenario.setup, plain["data"], plain["value"]) == ""
    assert "claims" in recheck(scenario.setup, plain["data"], plain["value"] * 1.001)
    sink = next(iter(plain["data"]["sinks"]))
    plain["data"]["sinks"][sink]["level"][0] *= 3
    assert recheck(scenario.setup, plain["data"], plain["value"]) != ""
    del plain["data"]["sinks"][sink]
    assert "no proof" in recheck(scenario.setup, plain["data"], plain["value"])
    assert "malformed" in recheck(scenario.setup, {}, 1.0)


def test_the_certificates_of_a_whole_run_are_checked_against_the_scenario() -> None:
    scenario = made(4, move_s=60.0, **DAY)
    run = simulate(scenario, APSP)
    assert len(run.certificates) > 3
    assert check(scenario, run) == ()
    first = run.certificates[0]
    for key, value in (("model_bytes", 1), ("sources", [0, 1]), ("allowed", [99]), ("job", 5)):
        assert forged(scenario, run, {**first, "data": {**first["data"], key: value}})
    narrow = json.loads(json.dumps(first))
    narrow["data"]["bps"][0][0] //= 2
    assert "bit/s" in forged(scenario, run, narrow)
    assert "nothing was decided" in forged(scenario, run, {**first, "at_us": 12345})


def test_with_several_jobs_a_certificate_is_about_the_bandwidth_that_the_others_leave() -> None:
    """The second job's bound holds on what the first leaves; on any other network, wider or narrower, it is refused."""
    scenario = two_jobs()
    run = simulate(scenario, APSP)
    assert check(scenario, run) == ()
    second = next(c for c in run.certificates if c["data"]["job"] == 1)
    whole = [[link.ab_bps, link.ba_bps] for link in scenario.setup.links]
    assert second["data"]["bps"] != whole
    assert "for the job" in forged(scenario, run, {**second, "data": {**second["data"], "bps": whole}})
    narrow = json.loads(json.dumps(second))
    narrow["data"]["bps"][0] = [b - 1 for b in narrow["data"]["bps"][0]]
    assert "for the job" in forged(scenario, run, narrow)


def test_a_server_moves_only_where_that_pays_within_the_look_ahead() -> None:
    scenario = made(4, move_s=60.0, **DAY)
    stays = simulate(scenario, APSP, {"lookahead_s": 0.0})
    moves = simulate(scenario, APSP, {"lookahead_s": 3600.0})
    assert len(set(servers(stays))) == 1
    assert len(set(servers(moves))) > 1
    assert rounds_done(moves) > rounds_done(stays)
    dear = made(4, move_s=7200.0, **DAY)
    assert len(set(servers(simulate(dear, APSP, {"lookahead_s": 3600.0})))) == 1


@pytest.mark.parametrize("spec", [RANDOM_PS, MOST_CONNECTED], ids=lambda spec: spec.name)
def test_the_paper_s_selections_never_move_their_server(spec: Spec) -> None:
    assert len(set(servers(simulate(made(2, **DAY), spec, seed=3)))) == 1


def test_the_most_connected_site_has_most_links() -> None:
    scenario = made(0)
    degree = [sum(n in (k.a, k.b) for k in scenario.setup.links) for n in range(12)]
    for seed in range(4):
        (site,) = set(servers(simulate(scenario, MOST_CONNECTED, seed=seed)))
        assert degree[site] == max(degree)


def test_two_jobs_share_the_network_and_both_are_served() -> None:
    assert simulate(two_jobs(), APSP).metrics["jobs_completed"] == 2


def sized(seed: int = 3, **given: Any) -> Scenario:
    """Every site of Internet2 sends another amount: 40 MB, 50 MB, 60 MB and so on."""
    scenario = made(seed, topology="internet2", **given)
    job = scenario.jobs[0]
    sizes = tuple((node, (40 + 10 * node) * 1_000_000) for node in range(len(scenario.setup.nodes)))
    return replace(scenario, jobs=(replace(job, site_bytes=sizes),))


@pytest.mark.parametrize("spec", ALL, ids=lambda spec: spec.name)
@pytest.mark.parametrize("transport", ["store-and-forward", "cut-through"])
def test_sites_may_send_different_amounts(spec: Spec, transport: str) -> None:
    """The audit recomputes the time of every route from its own site's bytes; no route beats the certified bound."""
    scenario = sized(transport=transport)
    run = simulate(scenario, spec, seed=2)
    assert check(scenario, run) == ()
    least = bound(scenario)
    assert least is not None
    assert run.metrics["epoch_s"] >= least.value * (1 - 1e-6)
    job, path = scenario.jobs[0], ints(run, "paths", "path")
    slowest = max(
        2 * (int((path == p).sum()) if transport == "store-and-forward" else 1) * 8 * job.bytes_of(src) / bps
        for src, bps, p in zip(
            *(ints(run, "routes", c).tolist() for c in ("src", "bps", "path")), strict=True
        )
    )
    assert run.metrics["epoch_s"] == pytest.approx(slowest, abs=4e-6)


def test_different_amounts_are_placed_at_the_optimum_and_the_certificate_names_them() -> None:
    scenario = sized(rule="uniform")
    run = simulate(scenario, APSP)
    net = network_of(scenario, scenario.jobs[0])
    assert run.metrics["epoch_s"] == pytest.approx(net.seconds(exact(net.problem)), abs=4e-6)
    (certificate,) = run.certificates
    assert certificate["data"]["amounts"] == [4 + n for n in range(len(scenario.setup.nodes))]
    equal = {**certificate["data"], "amounts": [4] * len(scenario.setup.nodes)}
    assert "other worker sites" in forged(scenario, run, {**certificate, "data": equal})


def test_equal_amounts_are_the_same_as_a_model_of_that_size() -> None:
    scenario = made(3, topology="internet2")
    job = scenario.jobs[0]
    sizes = tuple((n, 2 * job.model_bytes) for n in range(len(scenario.setup.nodes)))
    two = simulate(replace(scenario, jobs=(replace(job, site_bytes=sizes),)), APSP)
    same = simulate(replace(scenario, jobs=(replace(job, model_bytes=2 * job.model_bytes),)), APSP)
    assert two.metrics == same.metrics


def test_odd_amounts_on_what_two_jobs_leave_each_other_are_still_placed() -> None:
    scenario = two_jobs()
    jobs = tuple(
        replace(job, site_bytes=tuple((n, 91_000_003 + 17 * n) for n, _ in job.work.pinned))
        for job in scenario.jobs
        if isinstance(job.work, Rounds)
    )
    run = simulate(replace(scenario, jobs=jobs), APSP)
    assert run.metrics["jobs_completed"] == 2
    assert check(replace(scenario, jobs=jobs), run) == ()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"site_bytes": ((0, 5), (0, 6))}, "twice"),
        ({"site_bytes": ((0, 0),)}, "positive"),
        ({"site_bytes": ((99, 5),)}, "12 nodes"),
        ({"site_bytes": ((0, 5),), "model_bytes": 0}, "name every worker site"),
        ({"site_bytes": ((0, 5),), "work": Rounds(count=1, compute_us=1)}, "no worker is pinned"),
    ],
)
def test_senseless_amounts_are_rejected(given: dict[str, Any], message: str) -> None:
    scenario = made(0)
    with pytest.raises(ScenarioError, match=message):
        replace(scenario, jobs=(replace(scenario.jobs[0], **given),))


def test_a_job_whose_workers_sit_at_one_site_needs_no_traffic() -> None:
    scenario = made(0, workers="Singapore", compute_s=1.0)
    run = simulate(scenario, APSP)
    assert run.metrics["epoch_s"] == 0
    assert set(servers(run)) == {0}


def test_a_server_stands_only_where_the_job_may_run() -> None:
    scenario = made(0, topology="internet2", workers="Seattle,NewYork")
    job = scenario.jobs[0]
    inside = frozenset({scenario.setup.node("Seattle"), scenario.setup.node("NewYork")})
    run = simulate(replace(scenario, jobs=(replace(job, nodes=inside),)), APSP)
    assert set(servers(run)) <= inside


def test_saving_and_restoring_continues_identically() -> None:
    scenario = made(3, topology="internet2", **{**DAY, "hours": 4.0})
    plain = simulate(scenario, RANDOM_PS, seed=5)

    def factory(setup: Any, params: Any, rng: Any) -> PlacementPolicy:
        class Restless(PlacementPolicy):
            def decide(self, view: Any) -> Decision:
                state = self.save()
                self._at = {}
                self.restore(state)
                return super().decide(view)

        fresh = RANDOM_PS.factory(setup, params, rng)
        assert isinstance(fresh, PlacementPolicy)
        return Restless(fresh._method, 0.0)

    again = simulate(scenario, replace(RANDOM_PS, factory=factory), seed=5)
    assert again.tables["steps"] == plain.tables["steps"]
    assert again.metrics == plain.metrics


def test_the_same_run_twice_is_the_same() -> None:
    scenario = made(7, rule="linear")
    for spec in (APSP, APSP_PAPER):
        one, two = (simulate(scenario, spec, seed=9) for _ in range(2))
        assert one.tables == two.tables
        assert one.certificates == two.certificates


def test_the_generated_job_sends_from_every_site_and_prices_nothing() -> None:
    scenario = made(0)
    work = scenario.jobs[0].work
    assert isinstance(work, Rounds)
    assert len(work.pinned) == 12
    assert scenario.jobs[0].model_bytes == 92_000_000
    assert made(0) == scenario
    assert made(1).setup.links != scenario.setup.links
