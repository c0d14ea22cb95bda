"""Kills control loops: `python -m tests.worlds.kill_loops NAME SEED KILLS FOLDER` prints what it found as JSON.

It imports everything once and forks each loop, so that a loop does not cost a start of Python. Half of the loops are
killed by a timer, the others kill themselves at a counted point of the protocol: before, in the middle of and after
a line of the journal, before and after the start of a rank, before and after a stop. This process is a subreaper, so
it sees orphaned supervisors.
"""

from __future__ import annotations

import ctypes
import json
import os
import pickle
import random
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.worlds.live_scenarios import MADE, S
from tradewind.model.result import Run
from tradewind.registry import policies
from tradewind.store.store import Store
from tradewind.testing.fleet_kills import KillSwitch
from tradewind.worlds.fleets.processes.handles import RankHandle, marked_processes
from tradewind.worlds.fleets.processes.launch import ExecutionOptions, Launcher
from tradewind.worlds.live import LiveRequest, live

SLOT_SECONDS = 0.15
MAX_KILLS_PER_RUN = 14
COMPARED = (
    "events", "decisions", "verdicts", "plans", "steps", "places", "flows", "routes", "offers", "answers", "costs",
    "payments", "outcomes",
)  # fmt: skip


def request(name: str, state: Path) -> LiveRequest:
    scenario, policy = MADE[name]()
    return LiveRequest(
        scenario=scenario, spec=policies.find(policy), seed=1, state=state, slot_seconds=SLOT_SECONDS,
        options=ExecutionOptions(grace_s=2.0, patience_s=20.0, as_root=True),
    )  # fmt: skip


def kill_myself() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


POINTS = (
    (Store, "append"), (Store, "_move_head"), (Launcher, "start"), (RankHandle, "stop"),
)  # fmt: skip
"""Where a loop may die; the head of a store is moved inside a transaction."""


def start_loop(name: str, state: Path, kill_at: int) -> int:
    """Start a loop in a new process; it kills itself at point `kill_at` (0: never). Returns the process id."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        switch = KillSwitch(kill_at, kill_myself)
        with switch.armed(POINTS if kill_at else ()):
            run = live(request(name, state))
        (state / "result").write_bytes(pickle.dumps(run))
        code = 0
    finally:
        os._exit(code)


def run_with_kills(name: str, state: Path, kills: int, draw: random.Random) -> int:
    """Kill `kills` loops on one state directory, then let one finish; return the number of killed loops."""
    dead = 0
    for number in range(kills * 3):
        last = dead >= kills
        kill_at = 0 if last or number % 2 else draw.randint(1, 14)
        pid = start_loop(name, state, kill_at)
        if not last and not kill_at:
            time.sleep(draw.uniform(0.0, 2 * SLOT_SECONDS))
            os.kill(pid, signal.SIGKILL)
        status = os.waitpid(pid, 0)[1]
        if os.WIFSIGNALED(status):
            dead += 1
        elif os.WEXITSTATUS(status):
            raise SystemExit(f"a loop failed in {state}")
        elif last or (state / "result").exists():
            return dead
    raise SystemExit("no loop reached the end of the run")


def reap() -> None:
    """Reap supervisors of killed loops, which are now children of this process."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def results(run: Run) -> dict[str, Any]:
    """What must be the same in a run with kills and without."""
    return {name: run.tables[name] for name in COMPARED} | {"metrics": dict(run.metrics)}


def measured(run: Run) -> dict[str, Any]:
    """What must be the same if times are measured: all jobs done, with all iterations, in one attempt."""
    attempts = run.tables["attempts"]
    return {
        "states": run.tables["outcomes"]["state"],
        "in time": max(map(int, run.tables["outcomes"]["finish_us"])) < 1000 * S,
        "attempts": list(zip(*(attempts[c] for c in ("job", "number", "why", "iterations")), strict=True)),
    }


def started(state: Path) -> dict[str, list[str]]:
    """Job -> "slot rank" of every start of a rank."""
    return {file.parent.name: file.read_text().split("\n")[:-1] for file in state.glob("jobs/*/started")}


def twice(state: Path, run: Run) -> list[Any]:
    """What ran twice: a rank started twice in a slot, a launch with two owners, two attempts of a job in a slot."""
    seen: Counter[Any] = Counter((job, line) for job, lines in started(state).items() for line in lines)
    for claim in state.glob("control/*/*/claim"):
        seen[claim.parent.parent.name, claim.parent.name.split("-")[0]] += bool(
            json.loads(claim.read_text())["pid"]
        )
    seen.update(zip(run.tables["attempts"]["job"], run.tables["attempts"]["slot"], strict=True))
    return [what for what, times in seen.items() if times > 1]


def remaining(token: str) -> list[int]:
    """Processes that remain a minute after the end of a run; late supervisors exit by themselves long before."""
    until = time.monotonic() + 60.0
    while (found := marked_processes(token)) and time.monotonic() < until:
        time.sleep(0.05)
        reap()
    return found


def main(name: str, seed: int, kills: int, folder: Path) -> None:
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
    draw = random.Random(seed)
    reference = live(request(name, folder / "reference"))
    found: dict[str, Any] = {
        "dead": 0,
        "different": [],
        "twice": [],
        "left": [],
        "alarms": [],
        "violations": len(reference.violations),
    }
    number = 0
    while found["dead"] < kills:
        number += 1
        state = folder / f"run-{number}"
        found["dead"] += run_with_kills(name, state, min(MAX_KILLS_PER_RUN, kills - found["dead"]), draw)
        run = pickle.loads((state / "result").read_bytes())
        ours, theirs = (
            (measured(run), measured(reference)) if name == "batch" else (results(run), results(reference))
        )
        found["different"] += [(number, key) for key in ours if ours[key] != theirs[key]]
        found["violations"] += len(run.violations)
        found["alarms"] += run.tables["alarms"]["text"]
        found["twice"] += [(number, what) for what in twice(state, run)]
        reap()
        with Store.open(state) as store:
            token = store.read()[0]["token"]
            store.verify()
        found["left"] += [(number, pid) for pid in remaining(token)]
    found["jobs"] = reference.metrics["jobs_completed"]
    found["cost_usd"], found["payments_usd"] = (
        reference.metrics["cost_usd"],
        reference.metrics["payments_usd"],
    )
    found["runs"], found["starts"] = number, sum(map(len, started(folder / "run-1").values()))
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
