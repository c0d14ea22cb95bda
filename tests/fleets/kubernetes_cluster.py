"""A real Kubernetes of this machine: a control plane and nodes with containers, in a network namespace of their own.

`python -m tests.fleets.kubernetes_cluster DIR a1 b1` starts one and prints how to use it; Ctrl-C ends it.
A node is a PID and mount namespace with a containerd and a kubelet. The cluster's API is reached through a relay, a process
that listens on this machine's loopback; stopping it cuts the connection.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from tools.kubernetes_build import IMAGE, cache, is_built

from tests.fleets.processes import at_site, descendants, free_ports, send

START_S = 120.0
PARTS = ("etcd", "kube-apiserver", "relay")
"""What a loop depends on."""
GROUPS = Path("/sys/fs/cgroup")
SETTINGS = {
    "vm/overcommit_memory": 1, "vm/panic_on_oom": 0, "kernel/panic": 10, "kernel/panic_on_oops": 1,
    "kernel/keys/root_maxkeys": 1_000_000, "kernel/keys/root_maxbytes": 25_000_000,
}  # fmt: skip
"""What a kubelet insists on; it reads files in their place, and the machine keeps its own."""
NODE = """
set -e
mount --make-rshared /
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /var/lib
mkdir /var/lib/kubelet
mount --bind "$1/log" /var/log
for each in "$1"/settings/*; do mount --bind "$each" "/proc/sys/$(basename "$each" | tr . /)"; done
containerd --config "$1/containerd.toml" >> "$1/containerd.log" 2>&1 &
while :; do wait; sleep 1; done
"""
RELAY = Path(__file__).with_name("relay.py")


def missing() -> str:
    """What is missing for a cluster on this machine; empty: nothing."""
    if os.environ.get("TRADEWIND_TEST_KUBECONFIG"):
        return ""
    if not is_built():
        return (
            f"Kubernetes is not built in {cache()}: run tools/kubernetes_build.py, as .ci/run does, or name a cluster "
            "(docs/kubernetes.md)"
        )
    if os.geteuid() != 0 or not all(map(shutil.which, ("ip", "unshare", "nsenter", "openssl"))):
        return "a Kubernetes of one's own needs root, ip (iproute2), unshare, nsenter and openssl"
    return "" if (GROUPS / "pids").is_dir() else "a Kubernetes of one's own needs control groups of version 1"


class KubernetesCluster:
    """A control plane and a node per name, whose zone is the first letter of its name.

    folder      has to be short; logs are there
    kubeconfig  file by which clients of this machine reach it, as administrator
    """

    def __init__(self, folder: Path, names: Sequence[str]) -> None:
        self.folder, self.names = folder, tuple(names)
        self.kubeconfig = folder / "kubeconfig"
        self._space = f"tw{secrets.token_hex(3)}"
        self._port = free_ports(1)[0]
        self._token = secrets.token_hex(16)
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._inits: dict[str, int] = {}
        self._kubelets: dict[str, int] = {}

    # ------------------------------------------------------------------ starting
    def start(self) -> None:
        """Start everything and wait until all nodes are ready."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for words in (
            f"netns add {self._space}", f"-n {self._space} link set lo up",
            f"-n {self._space} link add pods type bridge", f"-n {self._space} link set pods up",
            f"-n {self._space} addr add 10.88.0.1/16 dev pods", f"-n {self._space} addr add 10.0.0.1/32 dev pods",
        ):  # fmt: skip
            subprocess.run(["ip", *words.split()], check=True)
        key = self.folder / "accounts.key"
        subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
        (self.folder / "tokens").write_text(f"{self._token},admin,admin,system:masters\n")
        self._write_config(self.folder / "inside", "https://10.0.0.1:443")
        self._write_config(self.kubeconfig, f"https://127.0.0.1:{self._port}")
        for name in PARTS:
            self.start_part(name)
        self.wait(lambda: self.api("get", "--raw", "/readyz") == "ok", "the API server")
        for name in ("kube-controller-manager", "kube-scheduler"):
            self.start_part(name)
        for name in self.names:
            self.start_node(name)
        self.wait_for_nodes()
        for name in self.names:
            self.api("label", "node", name, f"topology.kubernetes.io/zone={name[0]}")

    def wait_for_nodes(self) -> None:
        """Wait until all nodes are ready."""
        for name in self.names:
            self.wait(lambda name=name: self.is_ready(name), f"node {name}")  # type: ignore[misc]

    def reserve(self, name: str, cpus: float) -> None:
        """Take CPUs of a node away from pods; its kubelet is started again."""
        path = self.folder / name / "kubelet.json"
        settings = json.loads(path.read_text()) | {"systemReserved": {"cpu": f"{int(cpus * 1000)}m"}}
        path.write_text(json.dumps(settings))
        self.signal_agent(name, signal.SIGKILL)
        self.start_node(name)

    def restore(self) -> None:
        """Bring everything back that a test may have taken away."""
        for name in (*PARTS, *self.names):
            if self.is_running(name):
                self.signal_agent(name, signal.SIGCONT)
            elif name in self.names:
                self.start_node(name)
            else:
                self.start_part(name)

    def _write_config(self, path: Path, server: str) -> None:
        document = {
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "admin"}}],
            "clusters": [{"name": "test", "cluster": {"server": server, "insecure-skip-tls-verify": True}}],
            "users": [{"name": "admin", "user": {"token": self._token}}],
        }  # fmt: skip
        path.write_text(json.dumps(document))

    def start_part(self, name: str) -> None:
        """Start a part of the control plane, or the relay."""
        folder, client = self.folder, "http://127.0.0.1:2379"
        options = {
            "etcd": [
                f"--data-dir={folder}/etcd", f"--listen-client-urls={client}", f"--advertise-client-urls={client}",
                "--listen-peer-urls=http://127.0.0.1:2380", "--unsafe-no-fsync",
            ],
            "kube-apiserver": [
                f"--etcd-servers={client}", "--secure-port=443", f"--cert-dir={folder}/certs", "--allow-privileged",
                "--advertise-address=10.88.0.1", "--service-cluster-ip-range=10.0.0.0/24",
                "--kubelet-preferred-address-types=InternalIP", f"--token-auth-file={folder}/tokens",
                "--authorization-mode=RBAC", "--service-account-issuer=https://kubernetes.default.svc",
                f"--service-account-key-file={folder}/accounts.key",
                f"--service-account-signing-key-file={folder}/accounts.key",
            ],
            "kube-controller-manager": [
                f"--kubeconfig={folder}/inside", "--leader-elect=false", "--port=0", "--secure-port=0",
                f"--service-account-private-key-file={folder}/accounts.key",
                f"--root-ca-file={folder}/certs/apiserver.crt", "--node-monitor-period=1s",
                "--node-monitor-grace-period=6s", "--node-eviction-rate=10",
            ],
            "kube-scheduler": [
                f"--kubeconfig={folder}/inside", "--leader-elect=false", "--port=0", "--secure-port=0",
            ],
        }  # fmt: skip
        if name == "relay":
            self._run(name, sys.executable, str(RELAY), str(self._port), "10.0.0.1:443", self._space)
        else:
            self._run(name, *self._inside(), str(cache() / name), *options[name])

    def _inside(self) -> list[str]:
        return ["nsenter", f"--net=/run/netns/{self._space}"]

    def start_node(self, name: str) -> None:
        """Switch a node on, or start its kubelet again."""
        mine = self.folder / name
        if not self._is_on(name):
            number = 11 + self.names.index(name)
            self._prepare_node(name, number)
            self._run(
                name, *self._inside(), "unshare", "--mount", "--pid", "--uts", "--fork", "--kill-child",
                "--mount-proc", "sh", "-c", NODE, "node", str(mine),
            )  # fmt: skip
            self.wait(lambda: bool(descendants(self._processes[name].pid)), f"the namespaces of {name}")
            self._inits[name] = descendants(self._processes[name].pid)[0]
            self.wait(lambda: self._call(*self._on(name), "ctr", "version") != "", f"containerd of {name}")
            if not (mine / "imported").exists():
                self._call(
                    *self._on(name), "ctr", "-n", "k8s.io", "images", "import", str(cache() / "image.tar")
                )
                (mine / "imported").touch()
        self._run(
            f"kubelet-{name}", *self._on(name), "kubelet", f"--config={mine}/kubelet.json",
            f"--kubeconfig={self.folder}/inside", f"--root-dir={mine}/kubelet", f"--cert-dir={mine}/kubelet/pki",
            f"--hostname-override={name}", f"--node-ip=10.88.0.{11 + self.names.index(name)}",
            "--container-runtime=remote", "--container-runtime-endpoint=unix:///run/containerd/containerd.sock",
        )  # fmt: skip
        self.wait(lambda: bool(descendants(self._processes[f"kubelet-{name}"].pid)), f"kubelet of {name}")
        self._kubelets[name] = descendants(self._processes[f"kubelet-{name}"].pid)[0]

    def _prepare_node(self, name: str, number: int) -> None:
        """Write the settings of a node, and make its address and control groups."""
        mine = self.folder / name
        for folder in ("log", "settings", "kubelet", "networks"):
            (mine / folder).mkdir(parents=True, exist_ok=True)
        for setting, value in SETTINGS.items():
            (mine / "settings" / setting.replace("/", ".")).write_text(f"{value}\n")
        subprocess.run(
            ["ip", "-n", self._space, "addr", "replace", f"10.88.0.{number}/16", "dev", "pods"], check=True
        )
        for group in self._groups():
            for made in (group, group / name):
                made.mkdir(exist_ok=True)
                for each in ("cpuset.cpus", "cpuset.mems"):
                    if (made / each).exists():
                        (made / each).write_text((made.parent / each).read_text())
                if (made / "cpu.shares").exists():  # as many programs, not as one
                    (made / "cpu.shares").write_text("10240")
        (mine / "containerd.toml").write_text(
            f'version = 2\nroot = "{mine}/containerd"\nstate = "/run/containerd"\noom_score = 0\n'
            '[grpc]\naddress = "/run/containerd/containerd.sock"\n'
            '[plugins."io.containerd.grpc.v1.cri"]\n'
            f'sandbox_image = "{IMAGE}"\nrestrict_oom_score_adj = true\n'
            '[plugins."io.containerd.grpc.v1.cri".cni]\n'
            f'bin_dir = "{cache()}"\nconf_dir = "{mine}/networks"\n'
        )
        addresses = {  # the route leads to services: with a default route PyTorch would wait for name servers
            "type": "host-local", "dataDir": "/run/addresses", "routes": [{"dst": "10.0.0.0/24"}],
            "ranges": [[{
                "subnet": "10.88.0.0/16", "rangeStart": f"10.88.{number}.2", "rangeEnd": f"10.88.{number}.254",
                "gateway": "10.88.0.1",
            }]],
        }  # fmt: skip
        network = {"type": "bridge", "bridge": "pods", "ipam": addresses}
        (mine / "networks" / "pods.conflist").write_text(
            json.dumps({"cniVersion": "0.4.0", "name": "pods", "plugins": [network]})
        )
        (mine / "kubelet.json").write_text(json.dumps({
            "kind": "KubeletConfiguration", "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "address": f"10.88.0.{number}", "healthzPort": 0, "readOnlyPort": 0,
            "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"}, "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{self._space}/{name}", "failSwapOn": False, "makeIPTablesUtilChains": False,
            "protectKernelDefaults": True, "oomScoreAdj": 0, "resolvConf": "", "maxPods": 200,
            "nodeStatusUpdateFrequency": "1s", "nodeLeaseDurationSeconds": 4, "syncFrequency": "2s",
            "volumePluginDir": f"{mine}/kubelet/plugins", "evictionHard": {"memory.available": "50Mi"},
            "kubeAPIQPS": 100, "kubeAPIBurst": 200, "registryPullQPS": 0,
            "enableControllerAttachDetach": False,
        }))  # fmt: skip

    def _groups(self) -> list[Path]:
        """This cluster's control group in each hierarchy."""
        return [each / self._space for each in sorted(GROUPS.iterdir()) if (each / "cgroup.procs").exists()]

    def _on(self, name: str) -> list[str]:
        """Runs a program on a node."""
        return ["nsenter", "-t", str(self._inits[name]), "--mount", "--pid", "--uts", "--net", "env"]

    # ------------------------------------------------------------------ looking
    def api(self, *words: str, text: str = "") -> str:
        """Output of kubectl; empty if it failed."""
        return self._call(
            str(cache() / "kubectl"),
            f"--kubeconfig={self.kubeconfig}",
            "--request-timeout=20s",
            *words,
            text=text,
        )

    def is_ready(self, name: str) -> bool:
        """Whether the cluster counts a node as ready."""
        path = 'jsonpath={.status.conditions[?(@.type=="Ready")].status}'
        return self.api("get", "node", name, "-o", path) == "True"

    def is_running(self, name: str) -> bool:
        """Whether a part of the control plane runs, or a node with its kubelet."""
        if name in self.names:
            return self._is_on(name) and self._processes[f"kubelet-{name}"].poll() is None
        return self._processes[name].poll() is None

    def _is_on(self, name: str) -> bool:
        return name in self._processes and self._processes[name].poll() is None

    # ------------------------------------------------------------------ faults
    def kill_node(self, name: str, state: Path) -> None:
        """Switch a node off, with everything on it."""
        if self._is_on(name):
            # nsenter stops with what it runs, and would keep its remains from being removed
            send([self._inits[name], self._processes[f"kubelet-{name}"].pid], signal.SIGKILL)
            self._processes[name].wait()
        self._processes[f"kubelet-{name}"].wait()

    def signal_node(self, name: str, state: Path, number: int) -> None:
        """Signal the kubelet of a node and all ranks of the runs in `state` there."""
        send([*self._kubelet(name), *at_site(state, name[0])], number)

    def signal_agent(self, name: str, number: int) -> None:
        """Signal the kubelet of a node, a part of the control plane, or the relay."""
        if name in self.names:
            send(self._kubelet(name), number)
            part = self._processes[f"kubelet-{name}"]
        else:
            part = self._processes[name]
            part.send_signal(number)
        if number == signal.SIGKILL:
            part.wait()

    def _kubelet(self, name: str) -> list[int]:
        return [self._kubelets[name], self._processes[f"kubelet-{name}"].pid]

    def stop(self) -> None:
        """End everything."""
        for name in self.names:
            if name in self._inits:
                with suppress(OSError):
                    self.kill_node(name, self.folder)
        for process in reversed(self._processes.values()):
            process.kill()
            process.wait()
        for _ in range(50):
            left = [group for group in self._groups() if group.exists()]
            for group in left:
                for folder, _, _ in os.walk(group, topdown=False):
                    with suppress(OSError):  # it is busy until its last process is gone
                        os.rmdir(folder)
            if not left:
                break
            time.sleep(0.1)
        subprocess.run(["ip", "netns", "del", self._space], check=False, capture_output=True)

    def wait(self, holds: Callable[[], bool], what: str) -> None:
        """Wait until something holds."""
        until = time.monotonic() + START_S
        while not holds():
            if time.monotonic() > until:
                there = self.api("get", "pods,nodes", "--all-namespaces")
                raise TimeoutError(f"{what} did not come up within {START_S:.0f} s:\n{there}")
            time.sleep(0.1)

    def _call(self, *argv: str, text: str = "") -> str:
        env = {**os.environ, "PATH": f"{cache()}:{os.environ['PATH']}"}
        done = subprocess.run(
            argv, input=text, capture_output=True, text=True, timeout=60, check=False, env=env
        )
        return done.stdout if done.returncode == 0 else ""

    def _run(self, name: str, *argv: str) -> None:
        with (self.folder / f"{name}.log").open("ab") as out:
            env = {"PATH": f"{cache()}:{os.environ['PATH']}", "HOME": str(self.folder)}
            self._processes[name] = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=env, start_new_session=True, cwd=self.folder
            )  # fmt: skip


if __name__ == "__main__":
    made = KubernetesCluster(Path(sys.argv[1]).resolve(), sys.argv[2:] or ["a1", "b1"])
    try:
        made.start()
        print(f"export KUBECONFIG={made.kubeconfig} PATH={cache()}:$PATH", flush=True)
        signal.pause()
    except KeyboardInterrupt:
        pass
    finally:
        made.stop()
