"""The reference trainer: learns, repeats itself, resumes with other workers, and ends as the contract says."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.builders import job as model_job
from tests.train.ranks import MODULES, PATIENCE_S, SIZE, Job, Ranks
from tradewind.model.job import Data, Stream
from tradewind.worlds.data.sources import open_source
from tradewind.worlds.forkserver import ForkServer

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make install EXTRAS=train")

from torch import nn  # noqa: E402

from tradewind.train import checkpoint, data, models  # noqa: E402
from tradewind.train.contract import COMPLETE, PEER_LOST, STOPPED, ContractError, read  # noqa: E402
from tradewind.train.options import parse  # noqa: E402
from tradewind.train.site_data import SiteData  # noqa: E402
from tradewind.train.work import EXTRAS  # noqa: E402

SLOW = ("--sample-ms", "1")
"""24 ms per iteration over all workers: time to send signals."""
SAME = 1e-5


@pytest.fixture(scope="module")
def fork_server() -> Iterator[ForkServer]:
    with ForkServer(MODULES) as made:
        yield made


def model_of(*arguments: str) -> nn.Module:
    options = parse(arguments)
    return models.build(options, data.shape_of(options), 1)


def shard_of(kind: str, samples: int, batch: int, worker: tuple[int, int]) -> data.Shard:
    options = parse(["--data", kind, "--samples", str(samples), "--batch", str(batch)])
    return data.shard(options, worker, 4)


def trained(fork_server: ForkServer, folder: Path, job: Job) -> Ranks:
    ranks = Ranks(fork_server, folder, job)
    assert ranks.wait() == [COMPLETE] * len(job.sites)
    return ranks


@pytest.mark.parametrize(
    ("mode", "model", "data"),
    [("ps", "cnn", "shapes"), ("ring", "mlp", "synthetic"), ("ddp", "mlp", "shapes")],
)
def test_a_job_learns_reports_every_iteration_and_ends_with_a_checkpoint(
    fork_server: ForkServer, tmp_path: Path, mode: str, model: str, data: str
) -> None:
    arguments = ("--model", model, "--data", data, "--evaluate-every", "80", "--rate", "0.1")
    job = Job(mode=mode, sites=("a", "a", "b"), iterations=80, arguments=arguments)
    ranks = trained(fork_server, tmp_path, job)
    for rank in range(3):
        lines = ranks.report(rank)
        assert [line["iteration"] for line in lines] == list(range(1, 81))
        wanted = {"iteration", "seconds", "bytes_sent", "loss", "workers", "at"}
        assert all(wanted <= set(line) for line in lines)
        assert {line["workers"] for line in lines} == {2 if mode == "ps" else 3}
        assert ranks.losses(rank) == ranks.losses(0)
    losses = ranks.losses()
    assert sum(losses[-5:]) < 0.6 * sum(losses[:5])
    for leader in (1, 2) if mode == "ps" else (0, 2):  # the first worker of each site
        assert ranks.report(leader)[-1]["accuracy"] > 0.3  # by chance: 0.1
    assert ranks.saved_iteration() == 80


def test_leaders_of_sites_with_different_classes_report_the_accuracy_on_theirs(
    fork_server: ForkServer, tmp_path: Path
) -> None:
    arguments = ("--data", "shapes", "--arrange", "classes", "--evaluate-every", "4")
    ranks = trained(
        fork_server, tmp_path, Job(mode="ps", sites=("a", "a", "b"), iterations=4, arguments=arguments)
    )
    one, other = (ranks.report(rank)[-1] for rank in (1, 2))
    assert one["accuracy"] == other["accuracy"]
    assert one["site_accuracy"] != other["site_accuracy"]
    assert (one["site_accuracy"] + other["site_accuracy"]) / 2 == pytest.approx(one["accuracy"], abs=0.01)


def test_losses_repeat_exactly_for_a_seed_and_differ_for_another(
    fork_server: ForkServer, tmp_path: Path
) -> None:
    found = [
        trained(fork_server, tmp_path / name, Job(mode="ps", sites=("a", "b", "c"), seed=seed)).losses()
        for name, seed in (("one", 1), ("again", 1), ("other", 2))
    ]
    assert found[0] == found[1]
    assert found[0] != found[2]


def test_neither_the_number_of_workers_nor_the_exchange_changes_the_losses(
    fork_server: ForkServer, tmp_path: Path
) -> None:
    alone = trained(fork_server, tmp_path / "alone", Job(mode="ring", sites=("a",), iterations=20)).losses()
    for mode, sites in (
        ("ps", ("a", "b")),
        ("ps", ("a", "b", "b", "c")),
        ("ring", ("a", "b", "b")),
        ("ddp", ("a", "b", "b")),
    ):
        ranks = trained(
            fork_server, tmp_path / f"{mode}{len(sites)}", Job(mode=mode, sites=sites, iterations=20)
        )
        assert ranks.losses() == pytest.approx(alone, rel=SAME)


def test_a_stopped_job_continues_with_other_workers_another_server_site_and_another_exchange(
    fork_server: ForkServer, tmp_path: Path
) -> None:
    whole = trained(fork_server, tmp_path / "whole", Job(mode="ps", sites=("a", "b"), iterations=30)).losses()
    first = Ranks(
        fork_server, tmp_path / "cut", Job(mode="ps", sites=("a", "b", "c"), iterations=30, arguments=SLOW)
    )
    first.until(4)
    assert first.stop() == [STOPPED] * 3
    cut = first.saved_iteration()
    assert cut == first.report(0)[-1]["iteration"] == first.report(2)[-1]["iteration"]
    assert 4 <= cut < 30
    second = Ranks(
        fork_server, tmp_path / "cut", Job(mode="ring", sites=("c", "c"), iterations=30, arguments=SLOW)
    )
    second.until(cut + 4)
    assert second.stop() == [STOPPED] * 2
    again = second.saved_iteration()
    third = trained(fork_server, tmp_path / "cut", Job(mode="ps", sites=("d", "a", "a", "b"), iterations=30))
    assert [line["iteration"] for line in third.report(0)] == list(range(again + 1, 31))
    assert first.losses() + second.losses() + third.losses() == pytest.approx(whole, rel=SAME)


def test_several_servers_hold_a_block_each_and_give_the_same_losses(
    fork_server: ForkServer, tmp_path: Path
) -> None:
    one = trained(fork_server, tmp_path / "one", Job(mode="ps", sites=("a", "b", "b", "c")))
    three = trained(
        fork_server, tmp_path / "three", Job(mode="ps", sites=("a", "b", "c", "b", "b", "c"), servers=3)
    )
    assert three.losses(3) == one.losses(1)
    size = models.size_of(model_of("--size", str(SIZE)))
    sent = [three.report(rank)[-1]["bytes_sent"] for rank in range(6)]
    # a server sends a third to two sites; b's leader sends every server a third, and all parameters to b's other worker
    assert sent[:3] == [pytest.approx(2 * size / 3, rel=0.01)] * 3
    assert sent[3:] == [pytest.approx(n * size, rel=0.01) for n in (2, 1, 1)]


def test_servers_stop_together_and_another_number_of_them_goes_on(
    fork_server: ForkServer, tmp_path: Path
) -> None:
    whole = trained(fork_server, tmp_path / "whole", Job(mode="ps", sites=("a", "b"), iterations=20)).losses()
    job = Job(mode="ps", sites=("a", "b", "b", "c"), servers=2, iterations=20, arguments=SLOW)
    first = Ranks(fork_server, tmp_path / "cut", job)
    first.until(4)
    os.kill(first.pids[1], signal.SIGTERM)  # one server is told; it tells the others
    assert first.wait() == [STOPPED] * 4
    cut = first.saved_iteration()
    assert {first.report(rank)[-1]["iteration"] for rank in range(4)} == {cut}
    second = trained(
        fork_server,
        tmp_path / "cut",
        Job(mode="ps", sites=("c", "c", "a", "a", "b"), servers=3, iterations=20),
    )
    assert first.losses(0) + second.losses(0) == pytest.approx(whole, rel=SAME)


def test_without_waiting_sites_stay_within_the_staleness_and_learn(
    fork_server: ForkServer, tmp_path: Path
) -> None:
    arguments = ("--rate", "0.05", "--checkpoint-every", "1000", "--staleness", "3", "--sample-ms", "0.5")
    job = Job(
        mode="ps-async", sites=("a", "b", "a", "a", "a", "b"), servers=2, iterations=60, arguments=arguments
    )
    ranks = trained(fork_server, tmp_path, job)
    # a has three workers and so three quarters of each batch on one rank each, b a quarter: nobody waits for a round
    times = [[line["at"] for line in ranks.report(leader)] for leader in (2, 5)]
    assert [len(each) for each in times] == [60, 60]
    for mine, other in ((times[0], times[1]), (times[1], times[0])):
        for number in range(4, 60):  # when it ends iteration n + 1, the other has ended n + 1 - 3 - 1
            assert mine[number] >= other[number - 4] - 0.05
    losses = ranks.losses(0)
    assert [line["iteration"] for line in ranks.report(0)] == list(range(1, 61))
    assert sum(losses[-5:]) < 0.6 * sum(losses[:5])
    assert ranks.saved_iteration() == 60


def test_asynchronous_training_stops_at_one_iteration_and_goes_on(
    fork_server: ForkServer, tmp_path: Path
) -> None:
    job = Job(mode="ps-async", sites=("a", "b", "a", "b"), servers=2, iterations=400, arguments=SLOW)
    first = Ranks(fork_server, tmp_path, job)
    first.until(5)
    assert first.stop() == [STOPPED] * 4
    cut = first.saved_iteration()
    assert {first.report(rank)[-1]["iteration"] for rank in range(4)} == {cut}
    then = trained(fork_server, tmp_path, Job(mode="ps", sites=("a", "a", "b"), iterations=cut + 5))
    assert then.report(0)[0]["iteration"] == cut + 1
    assert then.losses(0)[0] < 1.2 * first.losses(0)[-1]


def test_a_finished_job_that_is_started_again_ends_at_once(fork_server: ForkServer, tmp_path: Path) -> None:
    for mode in ("ps", "ring"):
        job = Job(mode=mode, sites=("a", "b"), iterations=2)
        trained(fork_server, tmp_path / mode, job)
        assert len(trained(fork_server, tmp_path / mode, job).report(0)) == 2


def test_a_site_sends_its_gradient_once_however_many_workers_it_has(
    fork_server: ForkServer, tmp_path: Path
) -> None:
    torch.set_num_threads(1)
    size = models.size_of(model_of("--size", str(SIZE)))
    pushed = size + 4 * EXTRAS
    server = trained(
        fork_server, tmp_path / "ps", Job(mode="ps", sites=("a", "b", "b", "b", "c"), iterations=3)
    )
    last = [server.report(rank)[-1]["bytes_sent"] for rank in range(5)]
    # the server sends to two sites; b's leader sends one gradient, and parameters to two other workers
    assert last == [2 * pushed, pushed + 2 * pushed, pushed, pushed, pushed]
    ring = trained(fork_server, tmp_path / "ring", Job(mode="ring", sites=("a", "b", "b", "c"), iterations=3))
    last = [ring.report(rank)[-1]["bytes_sent"] for rank in range(4)]
    around = 2 * 2 / 3 * pushed  # three leaders
    assert last == [pytest.approx(around, abs=3), pytest.approx(around + pushed, abs=3), pushed, last[0]]


def bring(folder: Path, site: str, numbers: Sequence[int]) -> None:
    """Let shards of 40 pictures each be at a site."""
    pictures = Data(source="shapes", record_bytes=145)
    source = open_source(model_job(work=Stream(bytes_per_worker_slot=1), command=("x",), data=pictures))
    here = folder / site
    here.mkdir(parents=True, exist_ok=True)
    for number in numbers:
        (here / f"s{number}").write_bytes(source.read(40 * number, 40))
    shards = [{"name": f"s{number}", "file": f"s{number}", "number": number} for number in numbers]
    (here / "new").write_text(json.dumps({"record_bytes": 145, "epochs": 8, "shards": shards}))
    (here / "new").replace(here / "manifest.json")


@pytest.mark.parametrize("mode", ["ps", "ring"])
def test_workers_train_on_what_their_site_has_wait_for_more_and_say_what_they_processed(
    fork_server: ForkServer, tmp_path: Path, mode: str
) -> None:
    sites = ("a", "a", "b", "b") if mode == "ps" else ("a", "b", "b")
    bring(tmp_path / "data", "a", [0])
    bring(tmp_path / "data", "b", [1, 2])
    arguments = ("--data", "site", "--rate", "0.1", "--model", "cnn")
    job = Job(mode=mode, sites=sites, iterations=10**6, arguments=arguments, data=tmp_path / "data")
    ranks = Ranks(fork_server, tmp_path / "job", job)
    workers = range(len(sites) - 3, len(sites))

    def done(shards: int) -> list[list[str]]:
        """What each worker has processed, once it is that much."""
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            found = [
                [n for line in ranks.report(rank) for n in line.get("processed", ())] for rank in workers
            ]
            if sum(map(len, found)) >= shards:
                return found
            time.sleep(0.02)
        raise AssertionError("the job makes no progress")

    assert done(3) == [["s0"], ["s2"], ["s1"]]
    time.sleep(0.5)  # nothing is there to train on
    bring(tmp_path / "data", "a", [3])
    bring(tmp_path / "data", "b", [1, 4, 5])  # a shard that was processed may still be listed
    assert done(6) == [["s0", "s3"], ["s2", "s4"], ["s1", "s5"]]
    assert ranks.stop() == [STOPPED] * len(sites)
    losses = ranks.losses(workers[0])
    for rank in workers:
        assert [line["iteration"] for line in ranks.report(rank)] == list(range(1, len(losses) + 1))
    assert 80 <= len(losses) <= 160  # 40 for a shard; workers that get theirs later train on alone
    assert sum(losses[-10:]) < 0.7 * sum(losses[:10])
    assert ranks.saved_iteration() == len(losses)


def test_data_of_a_site_needs_a_mode_that_can_wait_and_records_that_it_can_read(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match="--mode ps and ring"):
        parse(["--data", "site", "--mode", "ps-async"])
    rank = read({}, "ring")
    with pytest.raises(ContractError, match="TRADEWIND_DATA_DIR"):
        SiteData(rank, 4, lambda: False)
    (tmp_path / "manifest.json").write_text('{"record_bytes": 9, "epochs": 1, "shards": []}')
    with pytest.raises(ContractError, match="records of 9 bytes"):
        SiteData(replace(rank, data=tmp_path), 4, lambda: False).take(0)


@pytest.mark.parametrize("mode", ["ps", "ring"])
def test_ranks_whose_peer_is_killed_end_soon_with_an_error(
    fork_server: ForkServer, tmp_path: Path, mode: str
) -> None:
    job = Job(
        mode=mode, sites=("a", "b", "c"), iterations=10_000, arguments=(*SLOW, "--checkpoint-every", "2")
    )
    ranks = Ranks(fork_server, tmp_path, job)
    ranks.until(5)
    os.kill(ranks.pids[1], signal.SIGKILL)
    assert ranks.wait() == [PEER_LOST, -signal.SIGKILL, PEER_LOST]
    assert ranks.saved_iteration() >= 4


def _handles(pid: int, number: signal.Signals) -> bool:
    """Whether a process has a handler for a signal."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return bool(int(status["SigCgt"], 16) >> (number - 1) & 1)


def test_a_rank_that_waits_for_others_exits_on_sigterm(fork_server: ForkServer, tmp_path: Path) -> None:
    alone = Ranks(fork_server, tmp_path, Job(mode="ps", sites=("a", "b")))
    os.kill(alone.pids[1], signal.SIGKILL)
    end = time.monotonic() + 60
    while not _handles(alone.pids[0], signal.SIGTERM):
        assert time.monotonic() < end
        time.sleep(0.02)
    os.kill(alone.pids[0], signal.SIGTERM)
    assert alone.wait() == [STOPPED, -signal.SIGKILL]


def test_a_killed_writer_leaves_a_complete_checkpoint(fork_server: ForkServer, tmp_path: Path) -> None:
    rng, seen = random.Random(3), 0
    for _ in range(12):
        pid = fork_server.start(
            "tests.train.writer:write_for_ever",
            {"folder": str(tmp_path)},
            environment={},
            log=tmp_path / "log",
        )
        time.sleep(rng.uniform(0.01, 0.08))
        os.kill(pid, signal.SIGKILL)
        assert fork_server.wait(pid, 10.0) == -signal.SIGKILL
        found = checkpoint.load(tmp_path, {"seed": 1})
        if found is not None:
            seen += 1
            assert torch.equal(found.model["w"], torch.full((50_000,), float(found.iteration)))
            assert torch.equal(found.optimizer["m"], found.model["w"])
    assert seen > 3


def test_a_write_that_fails_keeps_the_old_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def made(iteration: int) -> checkpoint.Checkpoint:
        return checkpoint.Checkpoint(
            iteration=iteration, model={}, optimizer={}, random=torch.get_rng_state(), about={"seed": 1}
        )

    checkpoint.save(tmp_path, made(1))

    def half(data: object, file: object) -> None:
        file.write(b"half")  # type: ignore[attr-defined]
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(torch, "save", half)
    with pytest.raises(OSError, match="No space"):
        checkpoint.save(tmp_path, made(2))
    found = checkpoint.load(tmp_path, {"seed": 1})
    assert found is not None
    assert found.iteration == 1
    assert [path.name for path in tmp_path.iterdir()] == [checkpoint.NAME]


def test_a_checkpoint_of_another_job_is_rejected(tmp_path: Path) -> None:
    checkpoint.save(
        tmp_path,
        checkpoint.Checkpoint(
            iteration=1, model={}, optimizer={}, random=torch.get_rng_state(), about={"batch": 8}
        ),
    )
    with pytest.raises(ContractError, match="batch: 8 in the checkpoint, 16 now"):
        checkpoint.load(tmp_path, {"batch": 16})
    (tmp_path / checkpoint.NAME).write_bytes(b"junk")
    with pytest.raises(ContractError, match="not a checkpoint of this trainer"):
        checkpoint.load(tmp_path, {"batch": 16})


@pytest.mark.parametrize("workers", [1, 2, 3, 5, 7])
def test_parts_of_a_batch_make_up_the_batch_and_never_overlap(workers: int) -> None:
    whole = shard_of("shapes", 100, 10, (0, 1))
    parts = [shard_of("shapes", 100, 10, (i, workers)) for i in range(workers)]
    for iteration in (0, 3, 9, 10, 27):
        inputs = torch.cat([part.take(iteration)[0] for part in parts])
        assert torch.equal(inputs, whole.take(iteration)[0])
    assert torch.equal(torch.cat([part.labels for part in parts]), whole.labels)


def test_every_sample_is_used_once_per_epoch() -> None:
    whole = shard_of("synthetic", 60, 6, (0, 1))
    seen = torch.cat([whole.take(i)[0] for i in range(10)]).flatten(1)
    every = whole.inputs.reshape(60, -1)
    assert sorted(map(tuple, seen.tolist())) == sorted(map(tuple, every.tolist()))


@pytest.mark.parametrize("kind", ["mlp", "cnn"])
@pytest.mark.parametrize("size", [20_000, 400_000, 4_000_000])
def test_a_model_has_about_the_requested_size(kind: str, size: int) -> None:
    assert models.size_of(model_of("--model", kind, "--size", str(size))) == pytest.approx(size, rel=0.1)


def test_more_workers_than_samples_in_a_batch_are_rejected() -> None:
    with pytest.raises(ContractError, match="--batch is 2, but there are 3 workers"):
        shard_of("shapes", 100, 2, (0, 3))


def test_the_command_trains_alone(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "tradewind.train",
        "--mode",
        "ring",
        "--iterations",
        "3",
        "--size",
        "40KB",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=100)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "checkpoints" / checkpoint.NAME).exists()
