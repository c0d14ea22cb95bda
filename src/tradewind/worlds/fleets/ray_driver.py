"""Talks to a Ray cluster on behalf of the loop: a program of its own, because Ray ends a process that loses its cluster.

    python -m tradewind.worlds.fleets.ray_driver HOST:PORT

Reads requests from stdin, a JSON list (method, arguments) per line, and answers each with {"ok": …} or {"error": …}. A gang
is one detached actor per machine, named GANG@MACHINE, that runs the programs of its ranks and ends with them.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

import ray
from ray._private.state import actors  # the public one needs Ray's dashboard
from ray.util import list_named_actors
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from tradewind.tasks.ray_driver import connect

NAMESPACE = "tradewind"
GB = 1e9
ASKED: dict[str, dict[str, float]] = {}
"""Actor -> what this program asked for on its behalf."""


@ray.remote(max_restarts=0, max_task_retries=0)
class Runner:
    """Runs the programs of a gang on one machine."""

    def run(self, commands: list[list[str]]) -> None:
        """Start them and wait until all have ended."""
        started = [
            subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                start_new_session=True, env={"PATH": os.environ.get("PATH", "/usr/bin:/bin")},
            )
            for argv in commands
        ]  # fmt: skip
        while any(each.poll() is None for each in started):
            time.sleep(0.1)
        ray.actor.exit_actor()


def machines() -> list[dict[str, Any]]:
    """All machines that Ray has known; those that left are down."""
    found = {}
    for node in sorted(ray.nodes(), key=lambda each: (each["Alive"], each["NodeID"])):
        name = node["NodeName"] if node["NodeName"] != node["NodeManagerAddress"] else node["NodeID"][:12]
        resources = node["Resources"] if node["Alive"] else {}
        capacity = {"cpu": resources.get("CPU", 0), "gpu": resources.get("GPU", 0)}
        capacity = {each: amount for each, amount in capacity.items() if amount}
        if "memory" in resources:
            capacity["memory_gb"] = resources["memory"] / GB
        labels = {key: value for key, value in node["Labels"].items() if not key.startswith("ray.io/")}
        found[name] = {
            "name": name, "address": node["NodeManagerAddress"], "labels": labels, "is_up": node["Alive"],
            "capacity": {each: int(amount * 1000) for each, amount in capacity.items()},
        }  # fmt: skip
    return [found[name] for name in sorted(found) if found[name]["capacity"] or not found[name]["is_up"]]


def start(gang: str, tasks: list[tuple[str, list[str], list[tuple[str, int]]]]) -> None:
    """Start the programs of a gang, each on its machine."""
    ids = {
        name: node["NodeID"]
        for node in ray.nodes()
        if node["Alive"]
        for name in (node["NodeName"], node["NodeID"][:12])
    }
    there = set(gangs(gang))
    by_machine = defaultdict(list)
    for machine, argv, demand in tasks:
        by_machine[machine].append((argv, dict(demand)))
    for machine, ranks in by_machine.items():
        name = f"{gang}@{machine}"
        if machine not in ids:
            raise LookupError(f"machine {machine} is not there")
        if name in there:
            continue
        need = {each: sum(demand.get(each, 0) for _, demand in ranks) / 1000 for each in ("cpu", "gpu")}
        ASKED[name] = need
        runner = Runner.options(  # type: ignore[attr-defined]
            name=name, namespace=NAMESPACE, lifetime="detached", num_cpus=need["cpu"], num_gpus=need["gpu"],
            scheduling_strategy=NodeAffinitySchedulingStrategy(ids[machine], soft=False),
        ).remote()  # fmt: skip
        runner.run.remote([argv for argv, _ in ranks])


def gangs(prefix: str) -> list[str]:
    """Names of the actors of the gangs with this prefix."""
    return [name for name in list_named_actors() if name.startswith(prefix)]


def waiting(prefix: str) -> dict[str, str]:
    """Actors with this prefix that were not created yet, what they ask for and what their machines have."""
    found = {}
    has = {node["NodeName"]: node["Resources"] for node in ray.nodes() if node["Alive"]}
    for actor in actors(actor_state_name="PENDING_CREATION").values():
        if (name := actor["Name"]).startswith(prefix):
            machine = name.partition("@")[2]
            asks = f"it asks for {_amounts(ASKED[name])} on" if name in ASKED else "it waits for"
            found[name] = (
                f"Ray has it pending: {asks} {machine}, which has {_amounts(has.get(machine, {}))} in all"
            )
    return found


def _amounts(resources: Mapping[str, float]) -> str:
    """CPUs and GPUs in words."""
    found = {each.upper(): amount for each, amount in resources.items() if each.upper() in ("CPU", "GPU")}
    return " and ".join(f"{amount:g} {each}" for each, amount in found.items() if amount) or "no CPU"


def cancel(gang: str) -> None:
    """Remove the actors of a gang."""
    for name in gangs(f"{gang}@"):
        with contextlib.suppress(ValueError):  # it has just ended
            ray.kill(ray.get_actor(name, namespace=NAMESPACE))


METHODS: dict[str, Callable[..., Any]] = {
    "machines": machines,
    "start": start,
    "gangs": gangs,
    "cancel": cancel,
    "waiting": waiting,
}


def main(address: str) -> None:
    """Answer requests until stdin is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # Ray prints
    connect(address, namespace=NAMESPACE)
    for line in sys.stdin:
        method, *arguments = json.loads(line)
        try:
            answer = {"ok": METHODS[method](*arguments)}
        except Exception as error:  # whatever Ray raises
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main(sys.argv[1])
