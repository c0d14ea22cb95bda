"""A real Slurm of this machine: munge, a controller and a few slurmd, in a directory of their own.

`python -m tests.fleets.slurm_cluster DIR a1 b1` starts one and prints how to use it; Ctrl-C ends it.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.fleets.processes import at_site, descendants, free_ports, send, with_files_in

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "scancel", "srun")
START_S, RESTORE_EVERY_S = 120.0, 5.0
RELAY = Path(__file__).with_name("relay.py")
CONFIG = """\
ClusterName=tradewind
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmctldPort={port}
AuthType=auth/munge
CryptoType=crypto/munge
AuthInfo=socket={state}/munge.socket
StateSaveLocation={state}/controller
SlurmdSpoolDir={state}/spool-%n
SlurmctldPidFile={state}/slurmctld.pid
SlurmdPidFile={state}/%n.pid
SlurmctldLogFile={state}/slurmctld.log
SlurmdLogFile={state}/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=1,bf_interval=1,sched_min_interval=10000
SlurmctldTimeout=5
SlurmdTimeout=5
KillWait=3
ReturnToService=2
{nodes}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:8
"""


def missing() -> str:
    """What is missing for a cluster on this machine; empty: nothing."""
    absent = [name for name in PROGRAMS if shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin") is None]
    if absent:
        return f"Slurm is not installed ({', '.join(absent)}): tools/system-packages"
    return "" if os.geteuid() == 0 else "a Slurm of one's own needs root"


class SlurmCluster:
    """A controller and one slurmd per name; SLURM_CONF must be `conf` for Slurm's programs to find it.

    loop_conf  the same through a relay, a process that can be stopped: what uses it is then cut off from the controller
    """

    def __init__(self, state: Path, names: Sequence[str]) -> None:
        self.state, self.names = state, tuple(names)
        self.conf, self.loop_conf = state / "slurm.conf", state / "loop.conf"
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        for name in ("controller", *(f"spool-{each}" for each in names)):
            (state / name).mkdir(parents=True)
        ports = free_ports(len(names) + 2)
        self._ports = ports[:2]
        nodes = "\n".join(
            f"NodeName={name} NodeAddr=127.0.0.1 NodeHostname={socket.gethostname()} Port={port} CPUs=64 RealMemory=8000 "
            f"Feature=site_{name[0]}"
            for name, port in zip(names, ports[2:], strict=True)
        )
        for path, port in zip((self.conf, self.loop_conf), self._ports, strict=True):
            path.write_text(CONFIG.format(host=socket.gethostname(), port=port, state=state, nodes=nodes))

    def start(self) -> None:
        """Start everything and wait until all nodes are ready."""
        state = self.state
        key = state / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        self._run(
            "munged", "--foreground", "--force", f"--key-file={key}", f"--socket={state}/munge.socket",
            f"--pid-file={state}/munged.pid", f"--log-file={state}/munged.log", f"--seed-file={state}/munged.seed",
        )  # fmt: skip
        self.wait(lambda: (state / "munge.socket").exists(), "munged")
        controller, relay = self._ports
        self._run(sys.executable, str(RELAY), str(relay), f"127.0.0.1:{controller}", key="relay")
        self.start_controller()
        for name in self.names:
            self.start_node(name)
        self.wait_for_nodes()

    def wait_for_nodes(self) -> None:
        """Wait until all nodes are ready; one that ended while it started is started again."""
        looked_s = time.monotonic()

        def are_idle() -> bool:
            nonlocal looked_s
            if self.states().count("IDLE") == len(self.names):
                return True
            if time.monotonic() - looked_s > RESTORE_EVERY_S:
                looked_s = time.monotonic()
                self.restore()
            return False

        self.wait(are_idle, "idle nodes")

    def restore(self) -> None:
        """Bring everything back that a test may have taken away."""
        for name in ("relay", "slurmctld", *self.names):
            if self.is_running(name):
                self.signal_agent(name, signal.SIGCONT)
            elif name == "slurmctld":
                self.start_controller()
            else:
                self.start_node(name)
        # A controller that was killed gives the number of a job that still runs again, and then Slurm drains the node
        # ("Duplicate jobid"); not waited for, because a controller may take seconds to answer.
        self._run("scontrol", "update", f"NodeName={','.join(self.names)}", "State=RESUME")

    def start_controller(self) -> None:
        """Start the controller."""
        self._run("slurmctld", "-D", "-f", str(self.conf))

    def start_node(self, name: str) -> None:
        """Start the slurmd of a node."""
        self._run("slurmd", "-D", "-N", name, "-f", str(self.conf), key=name)

    def states(self) -> list[str]:
        """States of the nodes; empty while the controller is away."""
        found = self.call("sinfo", "--noheader", "--Node", "--format=%T")
        return [line.strip().upper() for line in found.splitlines()]

    def call(self, *argv: str) -> str:
        """Output of one of Slurm's programs; empty if it failed."""
        env = {**os.environ, "SLURM_CONF": str(self.conf)}
        done = subprocess.run(argv, capture_output=True, text=True, env=env, timeout=60, check=False)
        return done.stdout

    def is_running(self, name: str) -> bool:
        """Whether the controller, the relay or the slurmd of a node runs."""
        return self._processes[name].poll() is None

    def kill_node(self, name: str, state: Path) -> None:
        """Switch a node off: its slurmd, and all ranks of the runs in `state`."""
        self.signal_node(name, state, signal.SIGKILL)
        self._processes[name].wait()

    def signal_node(self, name: str, state: Path, number: int) -> None:
        """Signal everything on a node."""
        send([self._processes[name].pid, *at_site(state, name[0])], number)

    def signal_agent(self, name: str, number: int) -> None:
        """Signal the slurmd of a node, slurmctld or the relay."""
        self._processes[name].send_signal(number)
        if number == signal.SIGKILL:
            self._processes[name].wait()

    def stop(self) -> None:
        """End everything."""
        self.call("scancel", "--signal=KILL", "--me")
        for process in reversed(self._processes.values()):
            send([*descendants(process.pid), process.pid], signal.SIGKILL)
            process.wait()
        send(with_files_in(self.state), signal.SIGKILL)  # slurmstepd outlives slurmd

    def wait(self, holds: Callable[[], bool], what: str) -> None:
        """Wait until something holds."""
        until = time.monotonic() + START_S
        while not holds():
            if time.monotonic() > until:
                queue, nodes = self.call("squeue", "--all"), self.call("scontrol", "show", "nodes")
                raise TimeoutError(f"{what} did not come up within {START_S:.0f} s:\n{queue}\n{nodes}")
            time.sleep(0.05)

    def _run(self, *argv: str, key: str = "") -> None:
        with (self.state / f"{key or argv[0]}.out").open("ab") as out:
            env = {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin", "SLURM_CONF": str(self.conf)}
            self._processes[key or argv[0]] = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=env, start_new_session=True
            )


if __name__ == "__main__":
    made = SlurmCluster(Path(sys.argv[1]).resolve(), sys.argv[2:] or ["a1", "b1"])
    made.start()
    print(f"export SLURM_CONF={made.conf}", flush=True)
    try:
        signal.pause()
    except KeyboardInterrupt:
        made.stop()
