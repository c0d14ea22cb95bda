"""Slurm as an engine, through its command line programs: one Slurm job per gang, one task per rank."""

from __future__ import annotations

import math
import os
import re
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tradewind.model.errors import InputError
from tradewind.model.units import MILLI
from tradewind.worlds.fleets.engine import EngineGang, EngineUnreachable, Machine

ANSWER_S = 20.0
"""Slurm's programs wait for a controller that is away; after this time it counts as away."""
DOWN = frozenset(
    ("DOWN", "DRAIN", "DRAINED", "DRAINING", "FAIL", "FAILING", "NO_RESPOND", "NOT_RESPONDING", "UNKNOWN")
)
"""States of a machine that takes no programs."""
SCRIPT = """#!/bin/sh
exec srun --distribution=arbitrary --no-kill --kill-on-bad-exit=0 --mpi=none --quit-on-interrupt {tasks}
"""


class SlurmEngine:
    """Uses the cluster that the configuration of this machine names (SLURM_CONF, or the default)."""

    name = "slurm"

    def machines(self) -> Sequence[Machine]:
        """All machines, in the order of their names."""
        lines = _call("scontrol", "--oneliner", "show", "nodes").splitlines()
        return sorted((_machine(line) for line in lines if line.strip()), key=lambda each: each.name)

    def start(self, gang: EngineGang) -> None:
        """Submit a job whose task r runs on the machine of rank r."""
        folder = Path(gang.folder)
        hosts, tasks = folder / "hosts", folder / "tasks"
        hosts.write_text("".join(f"{task.machine}\n" for task in gang.tasks))
        cases = "".join(f"{rank}) exec {shlex.join(task.argv)} ;;\n" for rank, task in enumerate(gang.tasks))
        tasks.write_text(f"#!/bin/sh\ncase $SLURM_PROCID in\n{cases}esac\n")
        tasks.chmod(0o700)
        most = {name: max(dict(task.demand).get(name, 0) for task in gang.tasks) for name in ("cpu", "gpu")}
        options = [f"--gpus-per-task={math.ceil(most['gpu'] / MILLI)}"] if most["gpu"] else []
        _call(
            "sbatch", "--parsable", "--no-requeue", f"--job-name={gang.name}", f"--ntasks={len(gang.tasks)}",
            f"--nodes={len({task.machine for task in gang.tasks})}", "--distribution=arbitrary",
            f"--cpus-per-task={max(1, math.ceil(most['cpu'] / MILLI))}", f"--output={folder / 'slurm.log'}",
            f"--chdir={folder}", *options,
            text=SCRIPT.format(tasks=shlex.quote(str(tasks))), hosts=str(hosts),
        )  # fmt: skip

    def gangs(self, prefix: str) -> Mapping[str, None]:
        """The gangs with this prefix that wait or run; Slurm has all ranks of a gang, or none."""
        names = _call("squeue", "--noheader", "--me", "--format=%j").split()
        return dict.fromkeys(name for name in names if name.startswith(prefix))

    def waiting(self, prefix: str) -> Mapping[str, str]:
        """Gangs with this prefix that Slurm has not started, and its reasons."""
        lines = _call("squeue", "--noheader", "--me", "--states=PENDING", "--format=%j|%r").splitlines()
        pairs = (line.strip().split("|", 1) for line in lines if line.startswith(prefix))
        return {name: f"Slurm has it pending ({reason})" for name, reason in pairs}

    def cancel(self, name: str) -> None:
        """Remove a gang; nothing happens if it is over."""
        _call("scancel", "--me", "--quiet", f"--name={name}")

    def close(self) -> None:
        """Nothing is held open."""


def open_engine(address: str) -> SlurmEngine:
    """The engine of `--fleet slurm`; it has no address."""
    if address:
        raise InputError(
            f"--fleet slurm:{address}: Slurm is found through its own configuration (SLURM_CONF); write --fleet slurm"
        )
    return SlurmEngine()


def _call(*argv: str, text: str = "", hosts: str = "") -> str:
    """Output of one of Slurm's programs."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "SBATCH_"))}
    env |= {name: os.environ[name] for name in ("SLURM_CONF",) if name in os.environ}
    if hosts:
        env["SLURM_HOSTFILE"] = hosts
    try:
        done = subprocess.run(
            argv, input=text, capture_output=True, text=True, timeout=ANSWER_S, check=False, env=env
        )
    except FileNotFoundError:
        raise InputError(
            f"{argv[0]} is not installed here; run the loop on a machine with Slurm's client programs (Debian: slurm-client)"
        ) from None
    except subprocess.TimeoutExpired:
        raise EngineUnreachable(f"{argv[0]} did not answer within {ANSWER_S:.0f} s") from None
    if done.returncode:
        raise EngineUnreachable(f"{argv[0]}: {done.stderr.strip() or f'ended with {done.returncode}'}")
    return done.stdout


def _machine(line: str) -> Machine:
    """A machine from a line of `scontrol show nodes`."""
    fields = dict(re.findall(r"(\w+)=(\S*)", line))
    states = set(re.split(r"[+*]", fields["State"].replace("*", "+NOT_RESPONDING")))
    gpus = sum(int(count) for count in re.findall(r"gpu(?::[A-Za-z]\w*)?:(\d+)", fields.get("Gres", "")))
    capacity = {"cpu": int(fields["CPUTot"]) * MILLI, "memory_gb": int(fields["RealMemory"])}
    features = [each for each in fields.get("AvailableFeatures", "").split(",") if each and each != "(null)"]
    return Machine(
        name=fields["NodeName"],
        address=fields.get("NodeAddr") or fields["NodeName"],
        capacity=capacity | ({"gpu": gpus * MILLI} if gpus else {}),
        labels={**dict.fromkeys(features, ""), **dict(_label(each) for each in features if _label(each)[1])},
        is_up=not states & DOWN,
    )


def _label(feature: str) -> tuple[str, str]:
    """A feature such as site_a or site=a as (label, value)."""
    name, _, value = feature.replace("=", "_", 1).partition("_")
    return name, value
