"""Training with PyTorch in live runs: a parameter server that moves, more workers, a ring."""

from __future__ import annotations

import importlib.util
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.builders import job, link, node, rows, scenario, setup
from tests.worlds.live_runs import Slots, alarms, processes, states
from tests.worlds.live_scenarios import S
from tradewind import api
from tradewind.engine.live import LiveSession
from tradewind.model.job import Customer, Rounds, Stream
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.model.tariff import Tariff
from tradewind.model.utility import Utility
from tradewind.registry import policies
from tradewind.worlds.fleet_world import FleetWorld
from tradewind.worlds.fleets.processes.fleet import networks_of_testbed
from tradewind.worlds.fleets.processes.handles import marked_processes
from tradewind.worlds.fleets.processes.launch import ExecutionOptions
from tradewind.worlds.live import LiveRequest, live
from tradewind.worlds.tables import UNPINNED
from tradewind.worlds.testbed import network as testbed
from tradewind.worlds.testbed.wan import GOODPUT, Wan, WanLink

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="PyTorch is not installed: make install EXTRAS=train"
)
TRAIN = ("python", "-m", "tradewind.train", "--samples", "64", "--batch", "8")
BPS, SIZE = 20_000_000, 1_000_000


def trained(given: Scenario, policy: str, state: Path, enough: int, bed: str = "") -> Run:
    slots = Slots(enough)
    request = LiveRequest(
        scenario=given, spec=policies.find(policy), state=state, slot_seconds=1.0, time=slots,
        options=ExecutionOptions(grace_s=20.0, as_root=True, networks=networks_of_testbed(bed), testbed=bed),
    )  # fmt: skip
    tokens: list[str] = []

    def observe(session: LiveSession, world: FleetWorld) -> None:
        tokens.append(processes(world).token)
        slots.update(session, world)

    run = live(request, observe)
    assert marked_processes(tokens[0]) == []
    assert alarms(run) == (UNPINNED if run.tables["routes"]["step"] and not bed else "")
    assert run.violations == ()
    assert api.check(given, run) == ()
    return run


def logs(state: Path) -> str:
    return "\n".join(f"{file.name}:\n{file.read_text()}" for file in sorted(state.rglob("rank-*.log")))


def moving_server() -> Scenario:
    """A stream whose data moves from a to b and doubles: its server follows and it gets another worker."""
    where = setup(
        [node("a"), node("b")],
        slot_us=S,
        horizon_us=2 * S,
        rent={(i, 0): Tariff(usd=(1.0,)) for i in range(2)},
        egress={pair: Tariff(usd=(1e6,)) for pair in ((0, 1), (1, 0))},
    )
    stream = job(
        0, work=Stream(bytes_per_worker_slot=100), server=((0, 1000),), servers=1, architecture="ps", workers_max=4,
        traffic_bytes_per_worker_slot=1000, seed=3,
        command=(*TRAIN, "--size", "20KB", "--mode", "ps", "--iterations", "100000"),
    )  # fmt: skip
    return scenario(
        [stream],
        where=where,
        customers=[Customer(runtime_us=2 * S)],
        volumes=[(0, 0, 0, 100), (0, 1, 1, 200)],
    )


def test_a_server_job_moves_its_server_gets_another_worker_and_continues_training(tmp_path: Path) -> None:
    given = moving_server()
    run = trained(given, "mlbroker", tmp_path / "s", enough=3)
    found = rows(run, "attempts", "places", "why", "iterations", "loss")
    assert [row[0] for row in found] == ["ps@a 1@a", "ps@b 2@b"], logs(tmp_path)
    assert [row[1] for row in found] == ["moved", "the run is over"]
    assert min(row[2] for row in found) >= 3
    assert states(run) == ["left"]
    report = (tmp_path / "s/jobs/0000-j0/report/rank-1.jsonl").read_text().splitlines()
    numbers = [int(line.split('"iteration": ')[1].split(",")[0]) for line in report]
    assert numbers == sorted(
        set(numbers)
    )  # it continued where it had stopped: no iteration twice, none left out
    assert numbers == list(range(numbers[0], numbers[-1] + 1))


def ring(index: int, iterations: int) -> Any:
    """Two workers that exchange SIZE bytes at 0.956 of BPS."""
    work = Rounds(count=100, unit="worker-slot", comm="ring", compute_us=1000)
    return job(
        index, work=work, workers_min=2, workers_max=2, ring_bps=round(GOODPUT * BPS), model_bytes=SIZE,
        utility=Utility(of="progress", shape="log1p", args=(1.0, 1.0)),
        command=(*TRAIN, "--size", f"{SIZE}", "--mode", "ring", "--iterations", str(iterations)),
    )  # fmt: skip


@pytest.fixture(params=["this machine", "a testbed"])
def bed(request: pytest.FixtureRequest) -> Iterator[str]:
    """How sites a and b are reached: on the loopback, or over shaped links between namespaces."""
    if request.param == "this machine":
        yield ""
        return
    if why := testbed.unavailable():
        pytest.skip(f"no testbed here: {why}")
    name = f"test-{uuid.uuid4().hex[:12]}"
    try:
        links = (WanLink(0, 1, 2 * BPS, 2 * BPS), WanLink(0, 2, 2 * BPS, 2 * BPS))
        testbed.up(Wan(name="star", sites=("switch", "a", "b"), links=links), name)
        yield name
    finally:
        testbed.down(name)


def test_a_ring_job_trains_at_its_reserved_rate_and_is_finished_when_its_ranks_exit_with_0(
    bed: str, tmp_path: Path
) -> None:
    nodes = [node("switch", 0, kind="switch"), node("a", 1, kind="server"), node("b", 1, kind="server")]
    where = setup(
        nodes, links=(link(0, 1, 2 * BPS), link(0, 2, 2 * BPS)), slot_us=S, horizon_us=60 * S, objective="utility"
    )  # fmt: skip
    run = trained(scenario([ring(0, 6)], where=where), "gadget", tmp_path / "s", 50, bed)
    assert states(run) == ["finished"], logs(tmp_path)
    ((where_to, why, iterations, measured, predicted, sent),) = rows(
        run, "attempts", "places", "why", "iterations", "measured_s", "predicted_s", "bytes_sent"
    )
    assert (sorted(where_to.split()), why, iterations) == (["1@a", "1@b"], "complete", 6)
    assert sent > 0
    assert predicted == pytest.approx(0.419, abs=0.001)  # 2 (n-1)/n of the model in bits, over the goodput
    if bed:  # links have twice the rate that the ring reserves
        assert 0.9 < measured / predicted < 1.5  # the rest is computing, on a machine that may be busy
    else:
        assert measured > 0
