"""The testbed: its predictions, that real traffic agrees with them, and that it leaves nothing behind.

Tests that need network namespaces are skipped without root.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tradewind.lab.testbed import check as testbed_check
from tradewind.lab.testbed.networks import exchanges, network
from tradewind.model.errors import InputError, TradewindError
from tradewind.train.local import LocalJob, environments, report_file
from tradewind.worlds.forkserver import ForkServer
from tradewind.worlds.testbed import delays as testbed_delays
from tradewind.worlds.testbed import network as testbed
from tradewind.worlds.testbed import state as testbed_state
from tradewind.worlds.testbed.traffic import carrier, measure, server_exchange, traffic_server
from tradewind.worlds.testbed.wan import GOODPUT, Wan, WanLink, loads, ring_s, server_s, shortest

REASON = testbed.unavailable()
needs_namespaces = pytest.mark.skipif(bool(REASON), reason=f"no testbed here: {REASON}")
M = 1_000_000


def line_of_three(latency_us: int = 0) -> Wan:
    """a - b - c: whatever c sends to a shares the link b - a with b."""
    return Wan(
        name="line",
        sites=("a", "b", "c"),
        links=(WanLink(0, 1, 20 * M, 40 * M, latency_us), WanLink(1, 2, 30 * M, 30 * M, latency_us)),
    )


@pytest.fixture
def name() -> Iterator[str]:
    """A name that no other test process uses; nothing of it is left afterwards."""
    made = f"test-{uuid.uuid4().hex[:12]}"
    yield made
    if not REASON:
        testbed.down(made)


def left_behind(name: str) -> list[str]:
    """Namespaces, state files and interfaces of a testbed."""
    spaces = [
        s for s in subprocess.run(["ip", "netns"], capture_output=True, text=True).stdout.split() if name in s
    ]
    files = [p.name for p in testbed_state.FOLDER.glob(f"*{name}*")]
    return spaces + files


# --- the model ---


def test_goodput_is_what_frames_leave() -> None:
    assert pytest.approx(0.956, abs=5e-4) == GOODPUT


def test_a_shared_link_is_counted_once_per_transfer() -> None:
    wan, size = line_of_three(), 1_000_000
    paths = shortest(wan)
    at_a = server_exchange(wan, 0, paths)
    assert loads(at_a.paths) == {(1, 0): 2, (2, 1): 1}
    push, pull = 2 * 8 * size / (GOODPUT * 40 * M), 2 * 8 * size / (GOODPUT * 20 * M)
    assert server_s(wan, at_a.paths, at_a.back, size) == pytest.approx(push + pull)
    at_b = server_exchange(wan, 1, paths)
    assert at_b.predicted_s(wan, size) == pytest.approx(8 * size / GOODPUT * (1 / (20 * M) + 1 / (30 * M)))


def test_a_ring_takes_as_long_as_its_slowest_hop() -> None:
    wan = network("mesh", scale=0.01, sites=4, seed=3)
    order = (0, 2, 1, 3)
    slowest = min(wan.rates()[a, b] for a, b in zip(order, (2, 1, 3, 0), strict=True))
    hops = [(a, b) for a, b in zip(order, (2, 1, 3, 0), strict=True)]
    assert ring_s(wan, hops, 10**6) == pytest.approx(2 * 3 / 4 * 8e6 / (GOODPUT * slowest))


def test_packets_take_the_fewest_hops_and_then_the_fastest_link() -> None:
    lines = (
        WanLink(0, 1, 5 * M, 5 * M),
        WanLink(1, 3, 5 * M, 5 * M),
        WanLink(0, 2, 9 * M, 9 * M),
        WanLink(2, 3, 9 * M, 9 * M),
    )
    wan = Wan(name="square", sites=("a", "b", "c", "d"), links=lines)
    assert shortest(wan)[0, 3] == (0, 2, 3)
    assert shortest(wan)[0, 1] == (0, 1)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ((WanLink(0, 1, M, M),), "cannot reach each other"),
        ((WanLink(0, 0, M, M), WanLink(1, 2, M, M)), "joins site 0 to site 0"),
        ((WanLink(0, 1, M, M), WanLink(1, 0, M, M), WanLink(1, 2, M, M)), "same sites"),
        ((WanLink(0, 1, M, 10), WanLink(1, 2, M, M)), "larger --scale"),
    ],
)
def test_a_network_that_cannot_be_built_is_rejected(lines: tuple[WanLink, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Wan(name="bad", sites=("a", "b", "c"), links=lines)


def test_networks_are_those_of_plan_wan_scaled() -> None:
    whole, part = network("b4", scale=0.01), network("b4", scale=0.02, sites=6)
    assert (len(whole.sites), len(whole.links), len(part.sites)) == (12, 19, 6)
    for line in part.links:
        ends = whole.index(part.sites[line.a]), whole.index(part.sites[line.b])
        assert line.ab_bps == pytest.approx(2 * whole.rates()[ends])
    assert len(exchanges(network("mesh", scale=0.01))) == 4 + 6
    for wrong in ({"scale": 0.0}, {"scale": 2.0}, {"scale": 0.01, "sites": 13}):
        with pytest.raises(InputError):
            network("b4", **wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["", "A", "a.b", "a b", "x" * 40])
def test_a_name_must_fit_into_the_names_of_namespaces(name: str) -> None:
    with pytest.raises(InputError, match="is not a valid testbed name"):
        testbed.find(name)


# --- real traffic ---


@needs_namespaces
def test_six_sites_come_up_quickly_and_leave_nothing_behind(name: str) -> None:
    before = subprocess.run(["ip", "-br", "link"], capture_output=True, text=True).stdout
    began = time.perf_counter()
    bed = testbed.up(network("b4", scale=0.01, sites=6), name)
    assert time.perf_counter() - began < 60  # about 0.3 s on a machine that is not busy
    assert subprocess.run(["ip", "-br", "link"], capture_output=True, text=True).stdout == before
    assert testbed.state_of(name) == "up"
    assert testbed.find(name) == bed
    with pytest.raises(InputError, match="already exists"):
        testbed.up(bed.wan, name)
    inside = subprocess.Popen(bed.inside(2, ["sleep", "600"]))
    until = time.monotonic() + 60
    while not testbed.processes(name):
        assert time.monotonic() < until
        time.sleep(0.01)
    assert len(testbed.down(name)) == 7
    assert inside.wait(60) == -signal.SIGTERM
    assert left_behind(name) == []
    assert testbed.down(name) == []


@needs_namespaces
def test_a_site_reaches_all_others_and_nothing_else(name: str) -> None:
    bed = testbed.up(network("b4", scale=0.1, sites=5), name)
    for site in range(1, 5):
        assert _answers(bed, site, 0)
    routes = subprocess.run(bed.inside(0, ["ip", "route"]), capture_output=True, text=True).stdout
    assert "default" not in routes
    assert routes.count("congctl cubic") == 4


def _answers(bed: testbed.Testbed, source: int, goal: int) -> bool:
    """A byte goes there and comes back."""
    serve = "import socket; s = socket.create_server(('', 7)); c, _ = s.accept(); c.sendall(c.recv(1))"
    ask = (
        "import socket, sys, time\n"
        "for _ in range(3000):\n"
        "    try: c = socket.create_connection((sys.argv[1], 7), 60); break\n"
        "    except ConnectionRefusedError: time.sleep(0.02)\n"
        "c.sendall(b'x'); sys.exit(c.recv(1) != b'x')"
    )
    server = subprocess.Popen(bed.inside(goal, [sys.executable, "-c", serve]))
    try:
        asked = subprocess.run(
            bed.inside(source, [sys.executable, "-c", ask, bed.address(goal)]), timeout=120
        )
        return asked.returncode == 0
    finally:
        server.kill()
        server.wait()


@needs_namespaces
@pytest.mark.parametrize("moment", ["half built", "state lost", "namespace lost"])
def test_after_a_crash_both_down_and_up_clean_up(
    name: str, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wan = line_of_three()
    for repair in (testbed.down, lambda n: testbed.down(testbed.up(wan, n).name)):
        if moment == "half built":
            _crash_while_building(wan, name)
        else:
            testbed.up(wan, name)
            if moment == "state lost":
                testbed_state.delete(name)
            else:
                subprocess.run(["ip", "netns", "del", f"tradewind.{name}.1"], check=True)
        assert testbed.state_of(name) == "broken"
        repair(name)
        assert left_behind(name) == []


def _crash_while_building(wan: Wan, name: str) -> None:
    """A process that is killed in the middle of `up`."""
    pid = os.fork()
    if pid == 0:

        def die(*_: object) -> str:
            os.kill(os.getpid(), signal.SIGKILL)
            return ""

        testbed._classes = die  # type: ignore[assignment]
        testbed.up(wan, name)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
    assert left_behind(name)


@needs_namespaces
def test_an_error_while_building_leaves_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(testbed, "_classes", lambda *_: "class add nonsense\n")
    with pytest.raises(TradewindError, match="failed"):
        testbed.up(line_of_three(), name)
    assert left_behind(name) == []


@needs_namespaces
def test_a_pinned_path_is_the_one_that_packets_take(name: str) -> None:
    lines = (WanLink(0, 1, 20 * M, 20 * M), WanLink(1, 2, 20 * M, 20 * M), WanLink(0, 2, 20 * M, 20 * M))
    bed = testbed.up(Wan(name="triangle", sites=("a", "b", "c"), links=lines), name)
    bed.pin([(0, 1, 2)])
    assert _answers(bed, 0, 2)
    sent = bed.sent_bytes()
    assert sent[0, 1] > 0
    assert sent[1, 2] > 0
    assert sent[0, 2] == 0
    assert sent[2, 0] > 0  # the answer is not pinned
    bed.pin([])
    assert _answers(bed, 0, 2)
    assert bed.sent_bytes()[0, 2] > 0
    with pytest.raises(InputError, match="does not exist"):
        bed.pin([(0, 2), (2, 0, 0)])


@needs_namespaces
def test_real_traffic_on_four_sites_takes_as_long_as_the_model_says(name: str, tmp_path: Path) -> None:
    bed = testbed.up(network("mesh", scale=0.01, sites=4, seed=2), name)
    found = testbed_check.check(bed, model_bytes=600_000, rounds=2)
    for row in testbed_check.rows(found):
        print(row)
    assert len(found.measured) == 10
    assert found.best("server")[2]
    assert found.best("ring")[2]
    # a busy machine can only make rounds longer; the fastest shows the network
    for one in found.measured:
        assert min(one.rounds_s) == pytest.approx(one.predicted_s, rel=0.1)
    assert testbed_check.save_picture(found, tmp_path / "verify")[1].read_bytes().startswith(b"\x89PNG")


@needs_namespaces
def test_a_real_job_on_the_testbed_sends_one_gradient_per_site_in_the_predicted_time(
    name: str, tmp_path: Path
) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed: make install EXTRAS=train")
    wan, sites, rounds = line_of_three(), (0, 1, 1, 2), 4
    bed = testbed.up(wan, name)
    job = LocalJob(mode="ps", sites=[wan.sites[s] for s in sites], folder=tmp_path, seed=1, stop_after=rounds)
    bed.pin([p for s in (1, 2) for p in (shortest(wan)[s, 0], shortest(wan)[0, s])])
    with ForkServer(["tradewind.train.server"]) as fork_server:
        pids = [
            fork_server.start(
                "tradewind.train.__main__:rank",
                ["--mode", "ps", "--size", "400KB", "--batch", "8", "--samples", "64"],
                environment={
                    **environment, "MASTER_ADDR": bed.address(0), "TRADEWIND_INTERFACE": testbed.INTERFACE
                },
                namespace=bed.namespace(site),
                log=tmp_path / "log",
            )
            for site, environment in zip(sites, environments(job, 29500), strict=True)
        ]  # fmt: skip
        codes = fork_server.wait_all(pids, 120)
    print((tmp_path / "log").read_text())
    assert codes == [0] * 4
    lines = [json.loads(line) for line in report_file(job, 0).read_text().splitlines()]
    size = lines[-1]["bytes_sent"] / 2  # parameters to two sites
    # b's two workers sum their gradients at their site: the link to the server carries two gradients per round, not three
    assert bed.sent_bytes()[1, 0] == pytest.approx(rounds * 2 * size / GOODPUT, rel=0.15)
    predicted = server_exchange(wan, 0, shortest(wan)).predicted_s(wan, round(size))
    assert predicted == pytest.approx(0.5, rel=0.1)
    # rounds overlap a little: the first site to have its parameters pushes while the other still pulls
    took = [line["seconds"] for line in lines[1:]]
    # a busy machine only slows rounds down, and a round that follows a late one looks short: least above, mean below
    assert min(took) < 1.15 * predicted
    assert sum(took) / len(took) > 0.75 * predicted


@needs_namespaces
@pytest.mark.parametrize("how", ["gloo", "sockets"])
def test_links_that_transfers_share_are_shared_and_carry_each_gradient_once(name: str, how: str) -> None:
    if how == "gloo" and carrier() != "gloo":
        pytest.skip("PyTorch is not installed: make install EXTRAS=train")
    wan, size = line_of_three(), 400_000
    bed = testbed.up(wan, name)
    exchange = server_exchange(wan, 0, shortest(wan))
    with traffic_server("gloo" if how == "gloo" else "sockets") as fork_server:
        found = measure(bed, fork_server, how, exchange, model_bytes=size, rounds=2)
    assert min(found.rounds_s) == pytest.approx(found.predicted_s, rel=0.1)
    sent, per_round = bed.sent_bytes(), size / GOODPUT
    # acknowledgements of what is pulled (2%) and a few packets sent again come on top; a second gradient would be 100%
    assert sent[2, 1] == pytest.approx(3 * per_round, rel=0.15)
    assert sent[1, 0] == pytest.approx(3 * 2 * per_round, rel=0.15)


@needs_namespaces
def test_small_transfers_do_not_cross_a_link_at_once(name: str) -> None:
    """TCP hands over up to 64 kB in one piece, which a link must not send faster than its rate."""
    wan = Wan(name="slow", sites=("a", "b"), links=(WanLink(0, 1, 2 * M, 2 * M),))
    bed, how, size = testbed.up(wan, name), carrier(), 48_000
    with traffic_server(how) as fork_server:
        exchange = server_exchange(wan, 0, shortest(wan))
        made = measure(bed, fork_server, how, exchange, model_bytes=size, rounds=12)
    assert made.predicted_s == pytest.approx(2 * 8 * size / GOODPUT / (2 * M))
    assert min(made.rounds_s) > 0.85 * made.predicted_s  # but for what an idle link lets through at once


@needs_namespaces
def test_temporary_testbeds_of_killed_processes_are_removed_and_those_of_live_ones_stay(name: str) -> None:
    killed = subprocess.Popen(["sleep", "600"])
    living = subprocess.Popen(["sleep", "600"])
    left, kept = f"study-{killed.pid}", f"study-{living.pid}"
    try:
        for each in (left, kept):
            testbed.up(line_of_three(), each)
        inside = subprocess.Popen(testbed.find(left).inside(0, ["sleep", "600"]))
        killed.kill()  # a zombie is not alive
        testbed.up(line_of_three(), name)
        assert left_behind(left) == []
        assert testbed.state_of(kept) == "up"
        assert inside.wait(120) != 0
    finally:
        for process in (killed, living):
            process.kill()
            process.wait()
        for each in (left, kept):
            testbed.down(each)


def test_names_of_temporary_testbeds_are_not_given_to_others() -> None:
    testbed_state.check_not_owned("study-b4")
    with pytest.raises(InputError, match="temporary testbeds"):
        testbed_state.check_not_owned(testbed_state.own_name("study"))
    assert not testbed_state.is_abandoned(testbed_state.own_name("study"))


# --- latency ---


def test_a_transfer_takes_the_latency_of_its_path_on_top() -> None:
    wan, size = line_of_three(10_000), 1_000_000
    paths = shortest(wan)
    plain, late = (server_exchange(each, 0, shortest(each)) for each in (line_of_three(), wan))
    assert late.predicted_s(wan, size) == pytest.approx(plain.predicted_s(line_of_three(), size) + 2 * 0.02)
    hops = [paths[0, 1], paths[1, 2], paths[2, 0]]
    times = [8 * size / 3 / GOODPUT / rate for rate in (20 * M, 30 * M, 30 * M)]
    # each of 2 (n - 1) steps takes as long as the slowest hop sends, or where latency is more, as a hop on average
    assert ring_s(wan, hops, size) == pytest.approx(4 * max(times))
    slow = line_of_three(200_000)
    assert ring_s(slow, hops, size) == pytest.approx(4 * (sum(times) + 4 * 0.2) / 3)


def test_latency_is_that_of_the_topology_or_the_same_for_all_links() -> None:
    real = network("b4", scale=0.01, latency="real")
    every = {each.latency_us for each in real.links}
    assert len(every) > 10
    assert all(100 < us < 100_000 for us in every)
    assert {each.latency_us for each in network("mesh", scale=0.01, latency="2.5").links} == {2500}
    assert {each.latency_us for each in network("b4", scale=0.01).links} == {0}
    for topology, wrong in (("mesh", "real"), ("b4", "much"), ("b4", "-1"), ("b4", "nan"), ("b4", "1e9")):
        with pytest.raises(InputError, match="--latency"):
            network(topology, scale=0.01, latency=wrong)
    with pytest.raises(InputError, match="has a latency of"):
        line_of_three(-1)


@needs_namespaces
@pytest.mark.parametrize("how", ["netem", "relay"])
def test_a_byte_takes_the_latency_of_its_path_there_and_back(
    name: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if how == "relay":
        monkeypatch.setattr(testbed_delays, "netem_missing", lambda _: "not wanted here")
    bed = testbed.up(line_of_three(15_000), name)
    if how == "netem" and bed.delay == "relay":
        pytest.skip(testbed_delays.netem_missing(bed.hub))
    assert bed.delay == how
    assert testbed.find(name) == bed
    assert testbed.processes(name) == []  # at its sites
    for goal, links in ((1, 1), (2, 2)):
        trips = _round_trips_s(bed, 0, goal)
        print(how, goal, trips)
        # a busy machine only makes them longer
        assert 2 * links * 0.015 <= min(trips) < 2 * links * 0.015 + 0.03
    testbed.down(name)
    assert left_behind(name) == []


def _round_trips_s(bed: testbed.Testbed, source: int, goal: int) -> list[float]:
    """Seconds until a byte has gone to another site and come back, some times on one connection."""
    serve = (
        "import socket; s = socket.create_server(('', 7)); c, _ = s.accept()\n"
        "while b := c.recv(1): c.sendall(b)"
    )
    ask = (
        "import socket, sys, time\n"
        "for _ in range(3000):\n"
        "    try: c = socket.create_connection((sys.argv[1], 7), 60); break\n"
        "    except ConnectionRefusedError: time.sleep(0.02)\n"
        "for _ in range(20):\n"
        "    began = time.monotonic(); c.sendall(b'x'); c.recv(1); print(time.monotonic() - began)\n"
    )
    server = subprocess.Popen(bed.inside(goal, [sys.executable, "-c", serve]))
    try:
        command = bed.inside(source, [sys.executable, "-c", ask, bed.address(goal)])
        said = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
        return [float(line) for line in said.split()]
    finally:
        server.kill()
        server.wait()


@needs_namespaces
def test_queues_in_the_hub_delay_each_direction_of_a_link_by_itself(name: str) -> None:
    """With plain queues in place of netem, which not every kernel has: every link's packets are in their own."""
    bed = testbed.up(line_of_three(), name)
    testbed.batch(
        ["tc"], bed.hub, testbed_delays.delaying_queues(line_of_three(1000), "bfifo limit {frames}")
    )
    assert _answers(bed, 0, 2)
    for port, senders in ((0, {2}), (1, {1, 3}), (2, {2})):
        shown = subprocess.run(
            ["tc", "-n", bed.hub, "-s", "class", "show", "dev", f"port{port}"], capture_output=True, text=True
        ).stdout
        counts = re.findall(r"class htb 1:([0-9a-f]+) .*?Sent (\d+) bytes", shown, re.S)
        assert {int(minor, 16): int(sent) > 200 for minor, sent in counts} == dict.fromkeys(senders, True)


@needs_namespaces
def test_a_testbed_whose_delaying_process_is_gone_is_broken(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(testbed_delays, "netem_missing", lambda _: "not wanted here")
    bed = testbed.up(line_of_three(1000), name)
    assert _answers(bed, 0, 2)
    (relay,) = map(
        int, subprocess.run(["ip", "netns", "pids", bed.hub], capture_output=True, text=True).stdout.split()
    )
    os.kill(relay, signal.SIGKILL)
    until = time.monotonic() + 60
    while testbed.state_of(name) == "up":
        assert time.monotonic() < until
        time.sleep(0.01)
    assert testbed.state_of(name) == "broken"
