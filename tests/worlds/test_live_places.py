"""Sites in network namespaces, and the view of a live run."""

from __future__ import annotations

import re
import uuid
from pathlib import Path

import pytest
from rich.console import Console
from rich.live import Live

from tests.builders import Scripted, decision, job, node, plan, run_at, scenario, setup, spec_of
from tests.worlds.live_runs import log, run_live, states
from tests.worlds.live_scenarios import S, counting
from tradewind.cli import live as cli
from tradewind.engine.live import LiveSession
from tradewind.model.errors import InputError
from tradewind.model.job import Fixed, Rounds
from tradewind.model.tariff import Tariff
from tradewind.worlds.fleet_world import FleetWorld
from tradewind.worlds.fleets.processes.fleet import networks_of_testbed
from tradewind.worlds.fleets.processes.launch import ExecutionOptions, SiteNetwork
from tradewind.worlds.testbed import network as testbed
from tradewind.worlds.testbed.wan import Wan, WanLink

REASON = testbed.unavailable()
TALK = """
import os, socket
here = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
if os.environ["RANK"] == "0":
    with socket.create_server(here) as server:
        peer, _ = server.accept()
        print("received", peer.recv(100).decode(), "from", peer.getpeername()[0])
else:
    for _ in range(2000):
        try:
            talk = socket.create_connection(here, timeout=60)
            break
        except ConnectionRefusedError:
            __import__("time").sleep(0.05)
    talk.sendall(os.environ["TRADEWIND_SITE"].encode())
print(sorted(name for _, name in socket.if_nameindex()), os.environ["TRADEWIND_INTERFACE"])
"""


@pytest.mark.skipif(bool(REASON), reason=f"no network namespaces here: {REASON}")
def test_ranks_of_a_site_run_in_its_namespace_and_reach_the_others_over_the_testbed(tmp_path: Path) -> None:
    name = f"test-{uuid.uuid4().hex[:12]}"
    bed = testbed.up(Wan(name="pair", sites=("a", "b"), links=(WanLink(0, 1, 10**7, 10**7),)), name)
    try:
        where = setup([node("a"), node("b")], slot_us=S, horizon_us=60 * S)
        command = ("python", "-c", TALK)
        given = scenario(
            [job(0, work=Fixed(runtime_us=S), command=command, workers_min=2, workers_max=2)], where=where
        )
        script = {0: decision(plan(0, run_at(0, (0, 1), (1, 1))))}
        options = ExecutionOptions(grace_s=0.5, networks=networks_of_testbed(name), retries=0)
        run = run_live(given, tmp_path / "s", spec_of(Scripted(script, {})), options=options)
    finally:
        testbed.down(name)
    first = log(tmp_path / "s", rank=0)
    assert states(run) == ["finished"], first + log(tmp_path / "s", rank=1)
    assert f"received b from {bed.address(1)}" in first
    assert f"{testbed.INTERFACE}'] {testbed.INTERFACE}" in first  # no other interface than this and lo


def test_a_namespace_that_does_not_exist_is_reported(tmp_path: Path) -> None:
    where = setup([node("a")], slot_us=S, horizon_us=60 * S)
    given = scenario([job(0, work=Fixed(runtime_us=S), command=("true",))], where=where)
    options = ExecutionOptions(grace_s=0.5, retries=0, networks={"a": SiteNetwork(namespace="not-there")})
    run = run_live(given, tmp_path / "s", options=options)
    assert states(run) == ["unfinished"]
    assert "not-there" in log(tmp_path / "s")
    with pytest.raises(InputError, match="no testbed 'nowhere' is up"):
        networks_of_testbed("nowhere")


def test_the_view_shows_jobs_sites_cost_iterations_and_alarms(tmp_path: Path) -> None:
    where = setup([node("a"), node("b")], slot_us=S, horizon_us=60 * S, rent={(0, 0): Tariff(usd=(3600.0,))})
    given = scenario(
        [
            job(0, work=Rounds(count=12, compute_us=10), command=counting(12)),
            job(1, work=Fixed(runtime_us=S), command=("false",)),
        ],
        where=where,
    )
    console = Console(width=150, file=(tmp_path / "screen").open("w"))
    seen: list[str] = []
    with Live(console=console, auto_refresh=False) as screen:
        view = cli._Screen(given, screen)

        def observe(session: LiveSession, world: FleetWorld) -> None:
            view.update(session, world)
            with console.capture() as text:
                console.print(view.draw(session, world))
            seen.append(text.get())

        run_live(given, tmp_path / "s", options=ExecutionOptions(grace_s=0.5, retries=0), observer=observe)
    whole = "\n".join(seen)
    assert "of 60   cost so far" in whole
    for words in (
        r"j0 +│ running +│ 1@a +│ \d+ +│ 0.05",
        r"j1 +│ given up",
        r"│ a +│ 1 +│ [23] of 4 free",
        "! j1: attempt 0",
    ):
        assert re.search(words, whole), words


def test_rounds_count_iterations_of_the_whole_job(tmp_path: Path) -> None:
    where = setup([node("a")], slot_us=S, horizon_us=60 * S)
    given = scenario([job(0, work=Rounds(count=4, compute_us=10), command=counting(4))], where=where)
    run = run_live(given, tmp_path / "s")
    assert run.tables["attempts"]["iterations"] == [4]
