"""Parameter-server placement in the audited loop: known times, bounds, moving servers, several jobs, bad networks."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from tradewind.audit.wan_certificate import check_run, recheck
from tradewind.model.decision import Decision
from tradewind.model.job import Rounds
from tradewind.model.params import settle
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.model.spec import Spec
from tradewind.optimum.apsp import bound, exact, network_of
from tradewind.policies.apsp import APSP
from tradewind.policies.apsp_paper import APSP_PAPER
from tradewind.policies.apsp_plan import WanPolicy
from tradewind.policies.baselines.load_balancing import LOAD_BALANCING
from tradewind.policies.baselines.most_connected import MOST_CONNECTED
from tradewind.policies.baselines.random_ps import RANDOM_PS
from tradewind.policies.baselines.shortest_path import SHORTEST_PATH
from tradewind.studies.simulate import simulate
from tradewind.workloads.apsp import APSP as WORKLOAD

ALL = (APSP, APSP_PAPER, RANDOM_PS, MOST_CONNECTED, SHORTEST_PATH, LOAD_BALANCING)
DAY = {"vary": 1.0, "epochs": 1_000_000, "hours": 8.0, "compute_s": 5.0}


def made(seed: int = 0, **given: Any) -> Scenario:
    return WORKLOAD.generate(settle("apsp", WORKLOAD.params, given), seed)


def servers(run: Run) -> list[int]:
    """Nodes of the server, in the order of the steps."""
    places = run.tables["places"]
    return [int(str(n)) for n, s in zip(places["node"], places["servers"], strict=True) if int(str(s))]


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
    _, level = exact(net.problem)
    assert simulate(scenario, APSP).metrics["epoch_s"] == pytest.approx(
        net.seconds(level, job.model_bytes), abs=2e-6
    )


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
    assert check_run(scenario, run.certificates) == ()
    for key, value in (("model_bytes", 1), ("sources", [0, 1]), ("allowed", [99])):
        forged = [{**c, "data": {**c["data"], key: value}} for c in run.certificates[:1]]
        (found,) = check_run(scenario, forged)
        assert found.rule == "certificate.placement"
    narrow = json.loads(json.dumps(run.certificates[0]))
    narrow["data"]["bps"][0][0] //= 2
    assert "bit/s" in str(check_run(scenario, [narrow])[0])


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
    scenario = made(0, epochs=30)
    job = scenario.jobs[0]
    second = replace(job, index=1, id="second", arrive_us=10_000_000)
    run = simulate(replace(scenario, jobs=(job, second), customers=()), APSP)
    assert run.metrics["jobs_completed"] == 2


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

    def factory(setup: Any, params: Any, rng: Any) -> WanPolicy:
        class Restless(WanPolicy):
            def decide(self, view: Any) -> Decision:
                state = self.save()
                self._at = {}
                self.restore(state)
                return super().decide(view)

        fresh = RANDOM_PS.factory(setup, params, rng)
        assert isinstance(fresh, WanPolicy)
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
