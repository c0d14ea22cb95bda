"""A fork_server of loops: `python -m tests.worlds.killing NAME SEED KILLS FOLDER` prints what came of killing them.

It imports everything once and forks each loop, so that a life of a loop costs no start of Python. Half of the loops are
killed by the clock, the others by their own hand at a counted point of the protocol: before, in the middle of and after
a line of the journal, before and after the start of a rank, before and after a stop. It is the nearest parent that
orphans fall back to, so it sees them.
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
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.worlds.live_scenarios import MADE, S
from tradewind.engine import statefile
from tradewind.model.result import Run
from tradewind.registry import policies
from tradewind.worlds.live import LiveRequest, live
from tradewind.worlds.processes.handles import RankHandle, marked_processes
from tradewind.worlds.processes.launch import ExecutionOptions, Launcher

SLOT_SECONDS = 0.15
MOST_PER_RUN = 14
BOOKS = (
    "events", "decisions", "verdicts", "plans", "steps", "places", "flows", "routes", "offers", "answers", "costs",
    "payments", "outcomes",
)  # fmt: skip


def request(name: str, state: Path) -> LiveRequest:
    scenario, policy = MADE[name]()
    return LiveRequest(
        scenario=scenario, spec=policies.find(policy), seed=1, state=state, slot_seconds=SLOT_SECONDS,
        options=ExecutionOptions(grace_s=2.0, patience_s=20.0),
    )  # fmt: skip


class Doom:
    """Kills its own process at the n-th point that it passes."""

    def __init__(self, points: int) -> None:
        self.left = points

    def point(self) -> None:
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(self, owner: Any, name: str) -> None:
        before: Callable[..., Any] = getattr(owner, name)

        def fatal(*args: Any, **more: Any) -> Any:
            self.point()
            result = before(*args, **more)
            self.point()
            return result

        setattr(owner, name, fatal)

    def arm(self) -> None:
        write = os.write

        def torn(handle: int, data: bytes) -> int:
            if data[9:15] == b'{"kind':  # half a line of the journal is on disk when the lights go out
                self.left -= 1
                if self.left == 0:
                    write(handle, data[: len(data) // 2])
                    os.kill(os.getpid(), signal.SIGKILL)
            return write(handle, data)

        system: Any = os
        system.write = torn  # in this process only
        self.around(statefile.StateFile, "append")
        self.around(Launcher, "start")
        self.around(RankHandle, "stop")


def life(name: str, state: Path, doom: int) -> int:
    """One loop in a process of its own; returns the process id."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        if doom:
            Doom(doom).arm()
        run = live(request(name, state))
        (state / "result").write_bytes(pickle.dumps(run))
        code = 0
    finally:
        os._exit(code)


def torment(name: str, state: Path, kills: int, draw: random.Random) -> int:
    """Kills loops on one state directory until `kills` are dead, then lets the last one live; returns how many died."""
    dead = 0
    for number in range(kills * 3):
        quiet = dead >= kills
        doom = 0 if quiet or number % 2 else draw.randint(1, 14)
        pid = life(name, state, doom)
        if not quiet and not doom:
            time.sleep(draw.uniform(0.0, 2 * SLOT_SECONDS))
            os.kill(pid, signal.SIGKILL)
        status = os.waitpid(pid, 0)[1]
        if os.WIFSIGNALED(status):
            dead += 1
        elif os.WEXITSTATUS(status):
            raise SystemExit(f"a loop failed in {state}")
        elif quiet or (state / "result").exists():
            return dead
    raise SystemExit("a loop never came to its end")


def reap() -> None:
    """Keepers whose loop is dead are our children now."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def books(run: Run) -> dict[str, Any]:
    return {name: run.tables[name] for name in BOOKS} | {"metrics": dict(run.metrics)}


def measured(run: Run) -> dict[str, Any]:
    """What must be the same where times are measured: everybody is done, with all iterations, in one attempt."""
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
    """Whatever ran twice: a rank that noted the same slot again, a launch with two owners, a job begun anew in a slot."""
    seen: Counter[Any] = Counter((job, line) for job, lines in started(state).items() for line in lines)
    for claim in state.glob("control/*/*/claim"):
        seen[claim.parent.parent.name, claim.parent.name.split("-")[0]] += bool(
            json.loads(claim.read_text())["pid"]
        )
    seen.update(zip(run.tables["attempts"]["job"], run.tables["attempts"]["slot"], strict=True))
    return [what for what, times in seen.items() if times > 1]


def stay(token: str) -> list[int]:
    """Processes of a run that are still there some time after its end; a keeper that was late leaves by itself."""
    until = time.monotonic() + 3.0
    while (found := marked_processes(token)) and time.monotonic() < until:
        time.sleep(0.05)
        reap()
    return found


def main(name: str, seed: int, kills: int, folder: Path) -> None:
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
    draw = random.Random(seed)
    calm = live(request(name, folder / "calm"))
    found: dict[str, Any] = {
        "dead": 0,
        "different": [],
        "twice": [],
        "left": [],
        "alarms": [],
        "violations": len(calm.violations),
    }
    number = 0
    while found["dead"] < kills:
        number += 1
        state = folder / f"run-{number}"
        found["dead"] += torment(name, state, min(MOST_PER_RUN, kills - found["dead"]), draw)
        run = pickle.loads((state / "result").read_bytes())
        ours, theirs = (measured(run), measured(calm)) if name == "batch" else (books(run), books(calm))
        found["different"] += [(number, key) for key in ours if ours[key] != theirs[key]]
        found["violations"] += len(run.violations)
        found["alarms"] += run.tables["alarms"]["text"]
        found["twice"] += [(number, what) for what in twice(state, run)]
        reap()
        token = json.loads((state / "journal").read_text().splitlines()[0][9:])["token"]
        found["left"] += [(number, pid) for pid in stay(token)]
    found["jobs"] = calm.metrics["jobs_completed"]
    found["cost_usd"], found["payments_usd"] = calm.metrics["cost_usd"], calm.metrics["payments_usd"]
    found["runs"], found["starts"] = number, sum(map(len, started(folder / "run-1").values()))
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
