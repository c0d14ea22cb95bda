"""Live runs that move data: flows are carried out and billed as planned, and streams are processed in their slot."""

from __future__ import annotations

import io
import json
import os
import signal
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from tests.builders import Scripted, decision, job, link, node, plan, rows, run_at, scenario, setup, spec_of
from tests.worlds.live_runs import (
    PATIENCE_S,
    QUICK,
    Slots,
    alarms,
    assert_as_simulated,
    log,
    run_live,
    states,
)
from tests.worlds.live_scenarios import SLEEP, S, broker, market
from tradewind import api
from tradewind.engine.live import LiveSession
from tradewind.model.decision import Flow, Step
from tradewind.model.hash import scenario_hash
from tradewind.model.job import Customer, Data, Stream
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.model.tables import UNMOVED
from tradewind.registry import policies
from tradewind.testing.fleet_fake import FakeCluster, FakeFleet, FakeTime, MemoryStore
from tradewind.testing.fleet_kills import KillSwitch, LoopKilled
from tradewind.testing.fleet_programs import program
from tradewind.worlds.data.carriers import Copier
from tradewind.worlds.data.depot import Depot, News
from tradewind.worlds.data.folders import DataFolders
from tradewind.worlds.fleet import IterationReport, Observations
from tradewind.worlds.fleet_world import FleetWorld
from tradewind.worlds.fleets.processes.fleet import networks_of_testbed
from tradewind.worlds.live import LiveRequest, drive, live
from tradewind.worlds.testbed import network as testbed
from tradewind.worlds.testbed.lanes import Lanes
from tradewind.worlds.testbed.wan import GOODPUT, Wan, WanLink

EXAMPLE = (sys.executable, str(Path(__file__).parents[2] / "examples" / "count_labels.py"))
NOISE = Data(source="noise", record_bytes=10, shard_bytes=100)
needs_testbed = pytest.mark.skipif(
    bool(testbed.unavailable()), reason=f"no testbed here: {testbed.unavailable()}"
)
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def short(command: Sequence[str], slots: int) -> tuple[Scenario, str]:
    """The first slots of the broker's streams."""
    given, policy = broker(command)
    v, where = given.volumes, replace(given.setup, horizon_us=slots * S)
    kept = [
        row
        for row in zip(*(each.tolist() for each in (v.job, v.slot, v.node, v.bytes)), strict=True)
        if row[1] < slots
    ]
    stay = [replace(each, runtime_us=slots * S) for each in given.customers]
    return scenario(given.jobs, where=where, customers=stay, volumes=kept), policy


def with_data(given: Scenario, data: Data = NOISE, **more: Any) -> Scenario:
    return replace(given, jobs=tuple(replace(each, data=data, **more) for each in given.jobs))


class Processed(Slots):
    """A clock that nearly stands still until all data that is there has been processed."""

    def __init__(self) -> None:
        super().__init__(0)

    def update(self, session: LiveSession, world: FleetWorld) -> None:
        if time.monotonic() - self.begun > PATIENCE_S:
            world.interrupt()
        self.now += 1e-5
        if session.ledger.slot == int(self.now - 1000.0) and _is_done(world):
            self.now += 1.0


def _is_done(world: FleetWorld) -> bool:
    data = world.data
    for index, mine in data.jobs.items():
        step = world._step_of(world.gangs[index])
        if step is not None and step.flows and step.from_us not in mine.orders:
            return False
    return not data.is_busy and all(
        each.processed_us >= 0
        for mine in data.jobs.values()
        for order in mine.orders.values()
        if not order.is_over and not order.is_cancelled
        for each in (mine.shards[shard.number] for shard in order.shards)
    )


def shards(run: Run, *columns: str) -> list[Any]:
    return rows(run, "shards", *columns)


def flows_of(run: Run) -> dict[tuple[int, int, int, int], int]:
    """(job, slot, src, dst) -> bytes of all flows; each plan of the run has one step."""
    jobs = {i: j for i, (j,) in enumerate(rows(run, "plans", "job"))}
    steps = {i: (jobs[p], at // S) for i, (p, at) in enumerate(rows(run, "steps", "plan", "from_us"))}
    found: dict[tuple[int, int, int, int], int] = {}
    for step, src, dst, size in rows(run, "flows", "step", "src", "dst", "bytes"):
        key = (*steps[step], src, dst)
        found[key] = found.get(key, 0) + size
    return found


# ---------------------------------------------------------------------- processes
def test_data_of_a_stream_appears_moves_and_is_processed_in_its_slot_and_billed_as_planned(
    tmp_path: Path,
) -> None:
    given, policy = short(EXAMPLE, 4)
    given, clock = with_data(given), Processed()
    run = run_live(given, tmp_path / "s", policy, slot_seconds=1.0, observer=clock.update, slots=clock)
    assert run.violations == ()
    assert_as_simulated(run, given, policy)
    assert api.check(given, run) == ()
    found: dict[tuple[int, int, int, int], int] = {}
    names = ("job", "slot", "src", "dst", "planned_bytes", "bytes", "sent_bytes")
    for number, slot, src, dst, planned, size, sent in shards(run, *names):
        key = (number, slot, src, dst)
        found[key] = found.get(key, 0) + planned
        assert sent == (size if src != dst else 0)
    assert found == flows_of(run)
    assert any(src != dst for _, _, src, dst in found)
    assert all(
        at // S == slot == done // S for slot, at, done in shards(run, "slot", "arrived_us", "processed_us")
    )
    assert alarms(run) == Copier.instead
    assert not list((tmp_path / "s" / "data").glob("*/0000-*"))  # the first job has left


def test_what_a_program_leaves_unprocessed_is_a_violation_in_run_and_audit(tmp_path: Path) -> None:
    given, policy = short(SLEEP, 3)  # ranks that sleep
    given = with_data(given)
    run = run_live(given, tmp_path / "s", policy)
    found = [(v.rule, v.job, v.slot, v.amount) for v in run.violations]
    assert found == [
        ("shards.processed", "j0", 0, 100), ("shards.processed", "j0", 1, 200), ("shards.processed", "j0", 2, 100),
        ("shards.processed", "j1", 1, 100), ("shards.processed", "j1", 2, 200),
    ]  # fmt: skip
    assert "100 of 100 bytes of slot 0 were not processed in time" in alarms(run)
    assert [(v.rule, v.job, v.slot) for v in api.check(given, run)] == [("shards.processed", "j0", 0)]


def test_the_audit_misses_no_shard_and_believes_none_that_no_plan_has(tmp_path: Path) -> None:
    given, policy = short(EXAMPLE, 3)
    given, clock = with_data(given), Processed()
    run = run_live(given, tmp_path / "s", policy, slot_seconds=1.0, observer=clock.update, slots=clock)
    assert api.check(given, run) == ()

    def edited(column: str, row: int, value: int) -> Run:
        table: Any = {name: list(values) for name, values in run.tables["shards"].items()}
        table[column][row] = value
        return replace(run, tables={**run.tables, "shards": table})

    for column, value, rule in (
        ("planned_bytes", 0, "shards.plan"), ("dst", 1, "shards.plan"), ("processed_us", -1, "shards.processed"),
        ("processed_us", 2 * S, "shards.processed"), ("arrived_us", -1, "shards.form"), ("sent_bytes", 3, "shards.form"),
        ("from_us", S, "shards.form"), ("number", 5, "shards.form"), ("job", 9, "shards.form"),
    ):  # fmt: skip
        assert [v.rule for v in api.check(given, edited(column, 0, value))][:1] == [rule], column
    bare = {name: table for name, table in run.tables.items() if name != "shards"}
    assert [v.rule for v in api.check(given, replace(run, tables=bare))] == ["shards.plan"]
    shut = replace(given, jobs=tuple(replace(each, data_nodes=frozenset({0, 1})) for each in given.jobs))
    assert {v.rule for v in api.check(shut, replace(run, scenario_hash=scenario_hash(shut)))} >= {
        "shards.residency"
    }


SPY = """
d=$TRADEWIND_DATA_DIR; out=$HOME/../spy-$TRADEWIND_SITE
until ls $d/shards/* >/dev/null 2>&1; do sleep 0.05; done
try() { if "$@" >$HOME/said 2>&1; then echo yes; else grep -o 'Permission denied' $HOME/said || echo other; fi; }
{ echo own $(cat $d/shards/* | wc -c)
  for f in $d/shards/*; do try touch $f; break; done
  try ls $d/store
  try rm -f $d/manifest.json
  try ls $d/../..
  for f in "$@"; do [ ${f%/*} = $d ] || try cat $f; done
  echo end; } > $out
exec sleep 1000
"""


@as_root
def test_a_rank_reads_what_its_site_holds_for_its_job_and_nothing_else(tmp_path: Path) -> None:
    state = tmp_path / "s"
    for each in (tmp_path, *tmp_path.parents):
        each.chmod(each.stat().st_mode | 0o011)
    places = [
        f"{state}/data/000{n}-{name}/000{i}-j{i}/manifest.json"
        for n, name in enumerate("ab")
        for i in range(2)
    ]
    spy = ("sh", "-c", SPY, "spy", *places)
    jobs = [
        job(i, work=Stream(bytes_per_worker_slot=100), workers_max=2, data=NOISE, command=spy)
        for i in range(2)
    ]  # fmt: skip
    where = setup([node("a"), node("b")], slot_us=S, horizon_us=S)
    given = scenario(
        jobs, where=where, customers=[Customer(runtime_us=S)] * 2, volumes=[(i, 0, 0, 100) for i in range(2)]
    )
    flows = (Flow(0, 0, 50), Flow(0, 1, 50))
    steps = [plan(i, run_at(0, (0, 1), (1, 1), until=S, flows=flows)) for i in range(2)]
    spec = spec_of(Scripted({0: decision(*steps)}, {}))
    spied = [state / "jobs" / f"000{i}-j{i}" / f"spy-{site}" for i in range(2) for site in "ab"]
    clock = Processed()

    def watch(session: LiveSession, world: FleetWorld) -> None:
        clock.now += 1e-6
        if time.monotonic() - clock.begun > PATIENCE_S or all(
            each.exists() and "end" in each.read_text() for each in spied
        ):
            clock.now += 1.0

    options = replace(QUICK, first_uid=61_000)
    run_live(given, state, spec, slot_seconds=1.0, options=options, observer=watch, slots=clock)
    for each in spied:
        own, *denied, end = each.read_text().split("\n")[:-1]
        assert (own, end) == ("own 50", "end")
        assert denied == ["Permission denied"] * 7  # four that nobody may, and three manifests of others


def test_a_site_where_data_may_not_be_never_sees_a_byte(tmp_path: Path) -> None:
    (one, _), where = broker(EXAMPLE)[0].jobs, replace(broker()[0].setup, horizon_us=S)
    shut = replace(one, data=NOISE, data_nodes=frozenset({0, 2}))
    given = scenario([shut], where=where, customers=[Customer(runtime_us=S)], volumes=[(0, 0, 0, 100)])
    bad = run_at(0, (0, 1), (0, 1), until=S, servers=(1, 0), flows=(Flow(0, 1, 100),))
    run = run_live(given, tmp_path / "s", spec_of(Scripted({0: decision(plan(0, bad))}, {})))
    assert "places.residency" in alarms(run)
    assert "shards" not in run.tables
    assert not (tmp_path / "s" / "data" / "0001-b").exists()


# ---------------------------------------------------------------------- a fake fleet: kills
class PromptDepot(Depot):
    """A depot whose transfers take no time."""

    def news(self) -> list[News]:
        found = super().news()
        until = time.monotonic() + PATIENCE_S
        while self.is_busy and time.monotonic() < until:
            found += super().news()
            time.sleep(0.001)
        return found


class DataFleet(FakeFleet):
    """Workers process what is listed at their site."""

    folders: DataFolders

    def observe(self, timeout_s: float = 0.0) -> Observations:
        for rank in self.cluster.ranks.values():
            path = self.folders.site(rank.node) / rank.launch.job.id / "manifest.json"
            if rank.exit is None and rank.launch.ranks[rank.number].role == "worker" and path.exists():
                names = tuple(shard["name"] for shard in json.loads(path.read_text())["shards"])
                rank.reports.append(IterationReport(1, 0.1, 0.0, 1.0, 1, 0.0, processed=names))
        return super().observe(timeout_s)


@dataclass
class DataCase:
    """A live run with data on a fake cluster whose loop may be killed and started again."""

    given: Scenario
    policy: str
    state: Path
    time: FakeTime = field(default_factory=FakeTime)
    store: MemoryStore = field(default_factory=MemoryStore)

    def __post_init__(self) -> None:
        self.cluster = FakeCluster(self.time)
        self.folders = DataFolders(self.state, self.given.setup, None)

    def _fleet(self, token: str) -> FakeFleet:
        fleet = DataFleet(self.cluster)
        fleet.folders = self.folders
        return fleet

    def run(self, observer: Any = None) -> Run:
        request = LiveRequest(
            scenario=self.given,
            spec=policies.find(self.policy),
            seed=1,
            state=self.state,
            options=QUICK,
            time=self.time,
        )
        depot = PromptDepot(self.folders, self.given.setup, Copier(), lambda each: (each.id, None))
        return drive(request, self.store, self._fleet, observer, depot)

    def until(self, points: int) -> Run | None:
        with KillSwitch(points).armed(((FakeCluster, "start"), (MemoryStore, "append"))):
            try:
                return self.run()
            except LoopKilled:
                return None


WHAT = ("job", "number", "slot", "src", "dst", "planned_bytes", "bytes", "sent_bytes")


@pytest.mark.parametrize("made", [broker, market])
def test_a_loop_killed_anywhere_goes_on_and_nothing_is_carried_or_processed_twice(
    made: Any, tmp_path: Path
) -> None:
    given, policy = made(program("sleep"))
    given = with_data(given, Data(source="noise", record_bytes=10))
    calm = DataCase(given, policy, tmp_path / "calm")
    calm.state.mkdir()
    expected = calm.run()
    assert expected.violations == ()
    assert_as_simulated(expected, given, policy)
    assert api.check(given, expected) == ()
    ends, points = 0, 2
    while ends < 3:  # kill the loop after ever more points
        case = DataCase(given, policy, tmp_path / str(points))
        case.state.mkdir()
        run, deaths = case.until(points), 0
        while run is None:
            deaths += 1
            run = case.until(points + deaths)
        ends += deaths < 2
        assert shards(run, *WHAT) == shards(expected, *WHAT)
        assert run.violations == ()
        assert api.check(given, run) == ()
        assert states(run) == states(expected)
        points += 25


def test_a_node_that_is_lost_gives_its_chunks_back(tmp_path: Path) -> None:
    given, policy = market(program("sleep"))
    given = with_data(replace(given, jobs=given.jobs[:1], customers=given.customers[:1]))
    case = DataCase(given, policy, tmp_path)
    lost: list[int] = []

    def lose(session: LiveSession, world: FleetWorld) -> None:
        if not lost and world.data.jobs and world.data.jobs[0].shards:
            lost.append(world.data.jobs[0].shards[0].shard.dst)
            case.cluster.lose(lost[0])

    run = case.run(lose)
    assert states(run) == ["finished"]
    assert api.check(given, run) == ()
    kept = [row for row in shards(run, "from_us", "dst", "planned_bytes") if row[0] > 0]
    assert sum(planned for _, _, planned in kept) == 5000
    assert {dst for _, dst, _ in kept} == {1 - lost[0]}


def test_a_fleet_without_data_says_so(tmp_path: Path) -> None:
    given, policy = broker(program("sleep"))
    given, cluster = with_data(given), FakeCluster(FakeTime())
    request = LiveRequest(
        scenario=given, spec=policies.find(policy), seed=1, state=tmp_path, time=cluster.time
    )
    run = drive(request, MemoryStore(), lambda token: cluster.fleet())
    assert alarms(run) == UNMOVED
    assert "shards" not in run.tables
    assert api.check(given, run) == ()


# ---------------------------------------------------------------------- trainer
def test_the_trainer_trains_on_what_arrives_in_each_slot(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed: make install EXTRAS=train")
    train = ("python", "-m", "tradewind.train", "--mode", "ring", "--data", "site", "--size", "40KB")
    one = job(
        0, work=Stream(bytes_per_worker_slot=100), workers_max=2, data=Data(source="shapes", record_bytes=145),
        command=(*train, "--batch", "20", "--iterations", "100000"),
    )  # fmt: skip
    given = scenario(
        [one], where=setup([node("a"), node("b")], slot_us=S, horizon_us=2 * S), customers=[Customer(runtime_us=2 * S)],
        volumes=[(0, 0, 0, 100), (0, 1, 0, 100)],
    )  # fmt: skip
    flows = (Flow(0, 0, 40), Flow(0, 1, 60))
    steps = {at: decision(plan(0, run_at(at, (0, 1), (1, 1), until=at + S, flows=flows))) for at in (0, S)}
    clock, spec = Processed(), spec_of(Scripted(steps, {}))
    run = run_live(
        given,
        tmp_path / "s",
        spec,
        slot_seconds=1.0,
        observer=clock.update,
        slots=clock,
        data_scale=145.0,
    )
    assert run.violations == ()
    assert api.check(given, run) == ()
    assert shards(run, "slot", "dst", "bytes") == [
        (slot, dst, pictures * 145) for slot in (0, 1) for dst, pictures in ((0, 40), (1, 60))
    ]
    ((iterations, why),) = rows(run, "attempts", "iterations", "why")
    assert why == "the run is over"
    assert (
        12 <= iterations <= 20
    )  # 40 and 60 pictures a slot, 10 at a time, together or one site after the other


# ---------------------------------------------------------------------- testbed
LINE = (("a", "x"), ("x", "c"), ("a", "y"), ("y", "z"), ("z", "c"))
SIZE, BPS = 800_000, 8_000_000


@pytest.fixture
def bed() -> Iterator[testbed.Testbed]:
    """Two ways from a to c: two hops over x, three over y and z."""
    name, sites = f"test-{uuid.uuid4().hex[:12]}", ("a", "c", "x", "y", "z")
    try:
        links = tuple(WanLink(sites.index(a), sites.index(b), BPS, BPS) for a, b in LINE)
        yield testbed.up(Wan(name="ways", sites=sites, links=links), name)
    finally:
        testbed.down(name)


def _far(data_nodes: Sequence[int]) -> Scenario:
    """Data at a that is processed at c, in one long slot."""
    names = ("a", "c", "x", "y", "z")
    where = setup(
        [node(each) for each in names], links=tuple(link(names.index(a), names.index(b)) for a, b in LINE),
        slot_us=120 * S, horizon_us=120 * S, transport="cut-through",
    )  # fmt: skip
    one = job(
        0, work=Stream(bytes_per_worker_slot=SIZE), data=Data(source="noise", record_bytes=100), command=EXAMPLE,
        data_nodes=frozenset(data_nodes),
    )  # fmt: skip
    return scenario([one], where=where, customers=[Customer(runtime_us=120 * S)], volumes=[(0, 0, 0, SIZE)])


@needs_testbed
def test_on_a_testbed_data_goes_over_links_of_allowed_sites_and_resumes_after_a_crash(
    bed: testbed.Testbed, tmp_path: Path
) -> None:
    given, state = _far([0, 1, 3, 4]), tmp_path / "s"
    options = replace(
        QUICK, networks=networks_of_testbed(bed.name), testbed=bed.name, as_root=True, patience_s=20.0
    )
    step = Step(0, 120 * S, (1,), (1,), flows=(Flow(0, 1, SIZE),))

    def request() -> LiveRequest:
        spec = spec_of(Scripted({0: decision(plan(0, step))}, {}))
        return LiveRequest(
            scenario=given, spec=spec, seed=1, state=state, slot_seconds=120.0, options=options
        )

    pid = os.fork()
    if not pid:
        try:
            live(request())
        finally:
            os._exit(0)
    part, until = state / "data" / "0001-c" / "0000-j0" / "incoming", time.monotonic() + PATIENCE_S
    while time.monotonic() < until and sum(each.stat().st_size for each in part.glob("*")) < SIZE // 4:
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    before = sum(each.stat().st_size for each in part.glob("*"))
    assert SIZE // 4 <= before < SIZE

    def watch(session: LiveSession, world: FleetWorld) -> None:
        done = [each.processed_us >= 0 for each in world.data.jobs[0].shards]
        if (done and all(done)) or time.monotonic() > until:
            world.interrupt()

    run = live(request(), watch)
    assert shards(run, "src", "dst", "bytes", "sent_bytes") == [(0, 1, SIZE, SIZE)]
    assert min(shards(run, "processed_us")[0]) > 0
    assert api.check(given, run) == ()
    names, sent = ("a", "c", "x", "y", "z"), bed.sent_bytes()
    for here, there in (
        ("a", "y"),
        ("y", "z"),
        ("z", "c"),
    ):  # with headers, and what was on its way when the loop died
        assert SIZE < sent[names.index(here), names.index(there)] < 1.3 * SIZE
    assert sent[names.index("a"), names.index("x")] == 0
    assert Copier.instead not in alarms(run)
    assert "0, " in log(state)


@needs_testbed
def test_relays_store_and_forward_files_or_parts_of_them_in_the_time_of_the_formula(
    bed: testbed.Testbed,
) -> None:
    given, data = _far([0, 1, 3, 4]), os.urandom(SIZE)
    for transport, weight in (("cut-through", 1.0), ("store-and-forward", 3.0), ("chunks:4", 1.5)):
        lanes = Lanes(bed, replace(given.setup, transport=transport))
        predicted, times = weight * 8 * SIZE / (GOODPUT * BPS), list[float]()
        while not times or (
            min(times) > 1.35 * predicted and len(times) < 20
        ):  # a busy machine makes it longer
            got, began = bytearray(), time.perf_counter()
            lanes.carry(given.jobs[0], (0, 1), io.BytesIO(data), SIZE, got.extend)
            times.append(time.perf_counter() - began)
            assert got == data
        assert 0.9 * predicted < min(times) < 1.35 * predicted, transport


@needs_testbed
def test_data_that_no_allowed_path_can_carry_stays_where_it_is(bed: testbed.Testbed) -> None:
    given = _far([0, 1])
    with pytest.raises(OSError, match="every path crosses"):
        Lanes(bed, given.setup).carry(given.jobs[0], (0, 1), io.BytesIO(b"x"), 1, bytearray().extend)
    assert not any(bed.sent_bytes().values())
