"""`tradewind scheduler`: a policy decides which waiting gangs of pods run now, and on which machines."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from tradewind import api
from tradewind.cli.inventory import scenario as document_of
from tradewind.cli.terminal import say
from tradewind.files import scenario_file
from tradewind.model.units import MILLI
from tradewind.report.placements import placements
from tradewind.worlds.fleets.engine import EngineUnreachable

if TYPE_CHECKING:
    from tradewind.worlds.fleets.kubernetes.scheduler import Queue, Scheduler

EVERY_S = 1.0
SLOT_S = 60


def decide(queue: Queue, policy: str) -> dict[int, list[str]]:
    """Number of a gang -> its machines in rank order, for the gangs that a policy runs now, were all of equal length."""
    fitting = [
        number for number, gang in enumerate(queue.gangs)
        if all(any(name in machine.capacity for machine in queue.machines) for name in gang.demand)
    ]  # fmt: skip
    if not fitting or not queue.machines:
        return {}
    document = document_of("the queue", queue.machines)
    document["jobs"] = [job(number, queue) for number in fitting]
    given = scenario_file.parse(document)
    found = {}
    for row in placements(given, api.run(given, policy)):
        if row.from_us == 0:
            found[int(row.job)] = [place.node for place in row.places for _ in range(place.workers)]
    return found


def job(number: int, queue: Queue) -> dict[str, Any]:
    """A waiting gang as a job of a scenario."""
    gang = queue.gangs[number]
    demand = {name: milli / MILLI for name, milli in gang.demand.items() if milli}
    smallest = {next(iter(queue.machines[0].capacity)): 1 / MILLI}  # a job has to ask for something
    return {
        "id": str(number), "tenant": gang.namespace, "worker": demand or smallest, "workers": len(gang.pods),
        "work": {"runtime_us": f"{SLOT_S} s"},
    }  # fmt: skip


def step(scheduler: Scheduler, policy: str) -> int:
    """Look, decide and bind once; return the number of pods that were bound."""
    queue = scheduler.look()
    bound = 0
    for number, machines in decide(queue, policy).items():
        gang = queue.gangs[number]
        if len(machines) == len(gang.pods):
            bound += scheduler.bind(gang, machines)
            say(f"{gang.namespace}/{gang.name}: {' '.join(machines)}")
    return bound


def command(scheduler: Scheduler, policy: str) -> None:
    """Go on until Ctrl-C; a cluster that does not answer is asked again."""
    problem = ""
    while True:
        try:
            step(scheduler, policy)
            problem = ""
        except EngineUnreachable as error:
            if str(error) != problem:
                problem = str(error)
                say(problem)
        time.sleep(EVERY_S)
