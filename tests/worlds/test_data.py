"""Shards, sources and the depot: what flows carry is cut without loss, moved once, and seen by nobody else."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from tests.builders import job, node, setup
from tests.offers import EAST, WEST, market, training
from tradewind.model.decision import Flow, Step
from tradewind.model.errors import InputError, ScenarioError
from tradewind.model.job import Data, Dataset, Job, Rounds, Stream
from tradewind.model.view import Event
from tradewind.worlds.data.carriers import Copier, Take
from tradewind.worlds.data.depot import Arrived, Depot, JobFiles, News, Trouble
from tradewind.worlds.data.folders import DataFolders
from tradewind.worlds.data.keeper import DataKeeper
from tradewind.worlds.data.opening import check_data
from tradewind.worlds.data.shards import Shard, Store
from tradewind.worlds.data.sources import GENERATORS, open_source
from tradewind.worlds.progress import ActiveJob

WHERE = setup([node(name) for name in "abc"])
NOISE = Data(source="noise", record_bytes=7, shard_bytes=70)
COMMAND = ("true",)
PATIENCE_S = 60.0


def streaming(**more: Any) -> Job:
    given: dict[str, Any] = {
        "data": NOISE,
        "command": COMMAND,
        "work": Stream(bytes_per_worker_slot=100),
        "workers_max": 4,
    }
    return job(0, **(given | more))


class Counted(Copier):
    """Copies, and counts what it carries; fails where it is told to."""

    def __init__(self) -> None:
        self.carried: list[tuple[tuple[int, int], int]] = []
        self.failures = 0

    def carry(self, job: Job, ends: tuple[int, int], source: BinaryIO, size: int, take: Take) -> None:
        if self.failures:
            self.failures -= 1
            super().carry(job, ends, source, size // 2, take)
            raise OSError(5, "the line is cut")
        self.carried.append((ends, size))
        super().carry(job, ends, source, size, take)


class Bed:
    """A depot in a directory."""

    def __init__(self, state: Path, *, scale: float = 1.0) -> None:
        self.state, self.carrier, self.scale = state, Counted(), scale
        self.folders = DataFolders(state, WHERE, None)
        self.depot = self.open()

    def open(self) -> Depot:
        return Depot(self.folders, WHERE, self.carrier, lambda each: (each.id, None), self.scale)

    def settle(self) -> list[News]:
        """Wait until everything is done."""
        found, until = self.depot.news(), time.monotonic() + PATIENCE_S
        while self.depot.is_busy and time.monotonic() < until:
            found += self.depot.news()
            time.sleep(0.002)
        return found + self.depot.news()

    def home(self, at: int) -> Path:
        return self.folders.site(at) / "j0"

    def manifest(self, at: int) -> Any:
        return json.loads((self.home(at) / "manifest.json").read_text())


@pytest.fixture
def bed(tmp_path: Path) -> Iterator[Bed]:
    made = Bed(tmp_path)
    yield made
    made.depot.close()


STORE = Store(0, 0, "slot-0", 5, 40, 280)
LOCAL = Shard(0, 0, 0, 0, 0, 70, "slot-0", 0, 10)
REMOTE = Shard(0, 1, 0, 0, 1, 210, "slot-0", 10, 30)


def files(*shards: Shard, **more: Any) -> JobFiles:
    given: dict[str, Any] = {
        "job": streaming(),
        "slot": 0,
        "stores": (STORE,),
        "shards": shards,
        "nodes": (0, 1),
    }
    return JobFiles(**(given | more))


# ---------------------------------------------------------------------- sources
@pytest.mark.parametrize("name", GENERATORS)
def test_a_generated_record_is_the_same_in_whatever_company_it_is_read(name: str) -> None:
    size = GENERATORS[name].record_bytes or 7
    source = open_source(streaming(data=Data(source=name, record_bytes=size), seed=3))
    whole = source.read(0, 600)
    assert len(whole) == 600 * size
    assert source.read(250, 20) == whole[250 * size : 270 * size]
    other = open_source(streaming(data=Data(source=name, record_bytes=size), seed=4))
    assert other.read(0, 600) != whole


def test_generated_pictures_are_labelled_by_their_first_byte() -> None:
    records = open_source(streaming(data=Data(source="shapes", record_bytes=145))).read(0, 500)
    assert set(records[::145]) == set(range(10))


def test_files_are_read_in_the_order_of_their_names_over_and_over_again(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(b"ccdd")
    (tmp_path / "a").write_bytes(b"aabbX")  # the rest is no whole record
    (tmp_path / ".hidden").write_bytes(b"zz")
    source = open_source(streaming(data=Data(source=str(tmp_path), record_bytes=2)))
    assert source.read(1, 6) == b"bbccddaabbcc"
    single = open_source(streaming(data=Data(source=str(tmp_path / "b"), record_bytes=2)))
    assert single.read(0, 3) == b"ccddcc"


def test_a_source_that_cannot_be_read_is_refused_with_the_reason(tmp_path: Path) -> None:
    for given, said in (
        (Data(source="nowhere/else"), "no generator"),
        (Data(source="shapes", record_bytes=7), "have 145"),
        (Data(source=str(tmp_path)), "has no record"),
    ):
        with pytest.raises(InputError, match=said):
            open_source(streaming(data=given))


def test_a_live_run_has_no_copies_from_before_it() -> None:
    given = market([training(command=COMMAND, data=NOISE, copies=((EAST, WEST, 0),))])
    with pytest.raises(InputError, match="copies of it from before it arrives"):
        check_data(given, 1.0)


def test_only_jobs_whose_data_plans_move_have_data() -> None:
    with pytest.raises(ScenarioError, match="no plan moves it"):
        job(0, data=NOISE, command=COMMAND, work=Rounds(count=1))
    with pytest.raises(ScenarioError, match="no command"):
        streaming(command=())
    with pytest.raises(ScenarioError, match="record_bytes"):
        Data(source="noise", record_bytes=8, shard_bytes=7)


# ---------------------------------------------------------------------- depot
def test_shards_are_where_they_should_be_and_manifests_list_them(bed: Bed) -> None:
    bed.depot.reconcile([files(LOCAL, REMOTE)])
    assert bed.manifest(1)["coming"] == 1
    found = bed.settle()
    assert sorted(found) == [Arrived(0, 0, 70, 0), Arrived(0, 1, 210, 210)]
    expected = open_source(streaming()).read(5, 40)
    assert (bed.home(0) / "shards" / LOCAL.name).read_bytes() == expected[:70]
    assert (bed.home(1) / "shards" / REMOTE.name).read_bytes() == expected[70:]
    listed = bed.manifest(1)
    assert (listed["coming"], [each["name"] for each in listed["shards"]]) == (0, [REMOTE.name])
    assert listed["shards"][0] | {"from": "a", "bytes": 210, "number": 1, "slot": 0} == listed["shards"][0]
    assert bed.carrier.carried == [((0, 1), 210)]


def test_what_was_processed_is_not_listed_and_goes_when_its_step_is_over(bed: Bed) -> None:
    bed.depot.reconcile([files(REMOTE)])
    bed.settle()
    bed.depot.reconcile([files(REMOTE, processed=frozenset({1}))])
    assert bed.manifest(1)["shards"] == []
    assert (bed.home(1) / "shards" / REMOTE.name).exists()  # another rank may be reading it
    bed.depot.reconcile([files(slot=1, stores=())])
    assert not (bed.home(1) / "shards" / REMOTE.name).exists()
    assert not (bed.home(0) / "store" / "slot-0").exists()
    bed.depot.reconcile([])
    assert not bed.home(1).exists()


def test_a_transfer_that_was_cut_goes_on_where_it_ended(bed: Bed) -> None:
    bed.carrier.failures = 1
    bed.depot.reconcile([files(REMOTE)])
    trouble, arrived = bed.settle()
    assert trouble == Trouble(
        0, "shard-000001 cannot be carried from a to b: the line is cut; it is tried again"
    )
    assert arrived == Arrived(0, 1, 210, 210)
    assert bed.carrier.carried == [((0, 1), 105)]


def test_a_transfer_that_nobody_wants_any_more_ends_and_leaves_nothing(bed: Bed) -> None:
    held, inside, ended = threading.Event(), threading.Event(), threading.Event()

    def wait(job: Job, ends: tuple[int, int], source: BinaryIO, size: int, take: Take) -> None:
        take(source.read(size // 2))
        inside.set()
        held.wait(PATIENCE_S)
        try:
            take(source.read(size - size // 2))
        finally:
            ended.set()

    bed.carrier.carry = wait  # type: ignore[method-assign]
    bed.depot.reconcile([files(REMOTE)])
    until = time.monotonic() + PATIENCE_S
    while not inside.is_set() and time.monotonic() < until:
        bed.depot.news()
    bed.depot.reconcile([files()])
    assert not bed.depot.is_busy
    held.set()
    assert ended.wait(PATIENCE_S)
    assert bed.depot.news() == []
    assert [*bed.home(1).glob("shards/*"), *bed.home(1).glob("incoming/*")] == []


@pytest.mark.parametrize(("left", "carried"), [("good", 110), ("other", 210)])
def test_a_new_loop_resumes_what_an_earlier_one_left_unless_it_is_something_else(
    bed: Bed, left: str, carried: int
) -> None:
    content = open_source(streaming()).read(15, 30)
    home = bed.folders.make("j0", None, 1)
    (home / "incoming" / REMOTE.name).write_bytes(content[:100] if left == "good" else bytes(100))
    bed.depot.reconcile([files(REMOTE)])
    found = bed.settle()
    assert (home / "shards" / REMOTE.name).read_bytes() == content
    assert bed.carrier.carried[-1] == ((0, 1), carried)
    assert any("other content" in each.text for each in found if isinstance(each, Trouble)) == (
        left == "other"
    )


def test_a_new_loop_finds_what_has_arrived_and_removes_what_nobody_wants(bed: Bed) -> None:
    bed.depot.reconcile([files(LOCAL, REMOTE)])
    bed.settle()
    bed.depot.close()
    stranger = bed.folders.make("j9", None, 1)
    bed.carrier.carried.clear()
    bed.depot = bed.open()
    bed.depot.reconcile([files(LOCAL, REMOTE)])
    assert sorted(bed.settle()) == [Arrived(0, 0, 70, 0), Arrived(0, 1, 210, 210)]
    assert bed.carrier.carried == []
    assert not stranger.exists()


def test_a_forbidden_site_never_gets_a_byte_whatever_it_is_told(bed: Bed) -> None:
    bed.depot.reconcile([files(LOCAL, REMOTE, job=streaming(data_nodes=frozenset({0, 2})), nodes=(0,))])
    found = bed.settle()
    assert [each.text for each in found if isinstance(each, Trouble)] == [
        "its data may not be at b: shard-000001 stays where it is"
    ]
    assert not bed.folders.site(1).exists()
    assert bed.carrier.carried == []


def test_a_manifest_that_cannot_be_written_is_written_later_with_one_alarm(
    bed: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("tradewind.worlds.data.depot.put", full)
        bed.depot.reconcile([files(LOCAL)])
        found = bed.settle() + bed.depot.news()
    said = "what is at its sites cannot be listed: No space left on device; it is tried again"
    assert [each for each in found if isinstance(each, Trouble)] == [Trouble(0, said)]
    bed.settle()
    assert [shard["name"] for shard in bed.manifest(0)["shards"]] == [LOCAL.name]


# ---------------------------------------------------------------------- keeper
class Kept:
    """A keeper whose depot does everything at once."""

    def __init__(self, tmp_path: Path, scale: float = 1.0) -> None:
        self.bed = Bed(tmp_path, scale=scale)
        self.records: list[dict[str, Any]] = []
        self.alarms: list[str] = []
        self.keeper = self.open()

    def open(self) -> DataKeeper:
        def record(kind: str, what: dict[str, Any]) -> None:
            self.records.append(what)

        return DataKeeper(WHERE, self.bed.depot, record, lambda job, text: self.alarms.append(text))

    def go(self, given: Job, now_us: int, *steps: Step) -> None:
        active = ActiveJob(given, None)
        active.steps = steps
        self.keeper.update({given.index: active}, (), now_us, now_us)
        until = time.monotonic() + PATIENCE_S
        self.keeper.look(now_us)
        while self.keeper.is_busy and time.monotonic() < until:
            self.keeper.look(now_us)
            time.sleep(0.002)
        self.keeper.look(now_us)


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Callable[..., Kept]]:
    made: list[Kept] = []

    def make(scale: float = 1.0) -> Kept:
        made.append(Kept(tmp_path / str(len(made)), scale))
        (tmp_path / str(len(made) - 1)).mkdir()
        return made[-1]

    yield make
    for each in made:
        each.bed.depot.close()


@pytest.mark.parametrize("seed", range(8))
def test_shards_of_a_stream_are_its_data_without_gap_or_overlap(kept: Callable[..., Kept], seed: int) -> None:
    rng = random.Random(seed)
    each = kept(rng.choice([0.01, 0.3, 1.0]))
    given = streaming()
    each.keeper.take([Event(0, "arrived", 0, 0, given)])
    flows: list[Flow] = []
    for src in range(2):
        flows += [Flow(src, dst, rng.randrange(1, 3000)) for dst in rng.sample(range(3), 2)]
    sizes = [(src, sum(flow.bytes for flow in flows if flow.src == src)) for src in range(2)]
    each.keeper.take([Event(0, "data", 0, 0, tuple(sizes))])
    workers = tuple(rng.randrange(1, 4) for _ in range(3))
    each.go(given, 0, Step(0, 100, (0, 1, 2), workers, flows=tuple(flows)))
    shards = [state.shard for state in each.keeper.jobs[0].shards]
    assert [shard.number for shard in shards] == list(range(len(shards)))
    for flow in flows:
        assert sum(s.planned_bytes for s in shards if (s.src, s.dst) == (flow.src, flow.dst)) == flow.bytes
    for src, size in sizes:
        mine = sorted((s.first, s.first + s.records) for s in shards if s.src == src)
        assert [end for _, end in mine[:-1]] == [first for first, _ in mine[1:]]
        assert (mine[0][0], mine[-1][1]) == (0, round(size * each.bed.scale / 7))
    assert all(s.records * 7 <= 70 for s in shards)
    assert all(state.arrived_us == 0 for state in each.keeper.jobs[0].shards)
    for dst, count in enumerate(workers):
        there = [s for s in shards if s.dst == dst]
        assert len(there) >= min(count, sum(s.records for s in there))


def test_data_of_a_slot_that_is_not_processed_in_it_is_a_violation_and_leaves(
    kept: Callable[..., Kept],
) -> None:
    each, given = kept(), streaming()
    each.keeper.take([Event(0, "arrived", 0, 0, given), Event(0, "data", 0, 0, ((0, 70),))])
    each.go(given, 0, Step(0, 100, (0,), (2,), flows=(Flow(0, 0, 70),)))
    each.keeper.report(0, [(0, ["shard-000000", "shard-000009", "nonsense", "shard-"])], 50)
    each.keeper.report(0, [(1, ["shard-000001"])], 60)  # it is not there
    each.keeper.take([Event(100, "data", 0, 1, ((0, 70),))])
    each.go(given, 100, Step(100, 200, (0,), (2,), flows=(Flow(0, 0, 70),)))
    said = "35 of 70 bytes of slot 0 were not processed in time"
    assert each.alarms == [said]
    assert [(v.rule, v.slot, v.amount, v.detail) for v in each.keeper.violations(is_interrupted=False)] == [
        ("shards.processed", 0, 35, said)
    ]
    each.keeper.report(0, [(0, ["shard-000001", "shard-000002", "shard-000003"])], 150)
    each.go(given, 200)
    assert (
        len(list(each.keeper.violations(is_interrupted=False))) == 1
    )  # too late for slot 0, in time for slot 1
    assert each.bed.manifest(0)["shards"] == []


def test_chunks_of_a_cancelled_step_are_used_again_and_each_is_used_once(kept: Callable[..., Kept]) -> None:
    work = Dataset(chunks=((0, 4),), chunk_bytes=21, epochs=3, chunk_epochs_per_worker_slot_milli=9000)
    each, given = kept(), streaming(work=work)
    each.keeper.take([Event(0, "arrived", 0, 0, given)])
    first = Step(0, 100, (1,), (1,), flows=(Flow(0, 1, 42),))
    each.go(given, 0, first)
    assert each.bed.manifest(1)["epochs"] == 3
    each.go(given, 50, Step(50, 100, (2,), (1,), flows=(Flow(0, 2, 42),)))  # node b failed
    each.keeper.report(0, [(2, ["shard-000002", "shard-000003"])], 60)
    assert each.bed.manifest(1)["shards"] == []
    each.go(given, 100, Step(100, 200, (2,), (1,), flows=(Flow(0, 2, 42),)))
    shards = [state.shard for state in each.keeper.jobs[0].shards]
    assert [shard.first for shard in shards] == [0, 3, 0, 3, 6, 9]
    each.go(given, 200)
    assert [v.slot for v in each.keeper.violations(is_interrupted=False)] == [1]
    assert list(each.keeper.violations(is_interrupted=True)) == []
    each.keeper.report(0, [(2, ["shard-000004", "shard-000005"])], 250)  # late is better than never
    assert list(each.keeper.violations(is_interrupted=False)) == []


def test_parts_are_carried_before_their_step_and_stay(kept: Callable[..., Kept]) -> None:
    each = kept()
    given = streaming(
        work=Rounds(count=1, comm="machines"), parts=((0, 70), (1, 35)), gpus=(1,), gpu_speeds=(("g", 1000),)
    )
    each.keeper.take([Event(0, "arrived", 0, 0, given)])
    steps = Step(200, 400, (1,), (1,), flows=(Flow(0, 1, 70),)), Step(500, 900, (1,), (1,))
    each.go(given, 0, *steps)
    names = [shard["name"] for shard in each.bed.manifest(1)["shards"]]
    assert [shard["from"] for shard in each.bed.manifest(1)["shards"]] == ["b", "a"]
    each.go(given, 600, *steps)
    assert [shard["name"] for shard in each.bed.manifest(1)["shards"]] == names
    assert each.bed.carrier.carried == [((0, 1), 70)]
    assert list(each.keeper.violations(is_interrupted=False)) == []


def test_a_keeper_that_replays_its_records_knows_the_same(kept: Callable[..., Kept]) -> None:
    each, given = kept(), streaming()
    events = [Event(0, "arrived", 0, 0, given), Event(0, "data", 0, 0, ((0, 700), (1, 70)))]
    each.keeper.take(events)
    each.go(given, 0, Step(0, 100, (0, 2), (2, 1), flows=(Flow(0, 0, 300), Flow(0, 2, 400), Flow(1, 2, 70))))
    each.keeper.report(0, [(0, ["shard-000000"])], 50)
    each.go(given, 100)
    again = each.open()
    again.take(events)
    for record in json.loads(json.dumps(each.records)):
        again.replay(record)
    assert again.rows() == each.keeper.rows()
    assert again.jobs[0].orders == each.keeper.jobs[0].orders
    assert (
        list(again.violations(is_interrupted=False))
        == list(each.keeper.violations(is_interrupted=False))
        != []
    )
