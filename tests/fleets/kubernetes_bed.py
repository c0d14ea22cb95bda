"""Where the tests of Kubernetes run: a cluster of their own, or the one that TRADEWIND_TEST_KUBECONFIG names."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from unittest import mock

from lightkube import Client, KubeConfig
from lightkube.resources.core_v1 import Node
from tools.kubernetes_build import IMAGE

from tests.fleets.kubernetes_cluster import KubernetesCluster
from tradewind.worlds.fleets.kubernetes.engine import KubernetesEngine
from tradewind.worlds.fleets.kubernetes.options import PodOptions, read_options

OTHER = "TRADEWIND_TEST_KUBECONFIG"
REPOSITORY = Path(__file__).parents[2]
DEPLOY = REPOSITORY / "deploy" / "kubernetes"
NAMES = ("a1", "b1")


@dataclass(frozen=True)
class KubernetesBed:
    """A cluster under test. own: one of this machine, to which anything may be done; machines: two of its nodes."""

    kubeconfig: Path
    options: PodOptions
    own: KubernetesCluster | None
    machines: tuple[str, ...]

    def engine(self, **changes: object) -> KubernetesEngine:
        """An engine with few rights on a cluster of one's own, with those of the kubeconfig elsewhere."""
        with mock.patch.dict(os.environ, KUBECONFIG=str(self.kubeconfig)):
            return KubernetesEngine("", replace(self.options, **changes))  # type: ignore[arg-type]


@contextmanager
def open_bed() -> Iterator[KubernetesBed]:
    """A cluster for tests; one of this machine is ended with them."""
    if os.environ.get(OTHER):
        path = Path(os.environ[OTHER])
        nodes = Client(KubeConfig.from_file(path)).list(Node)
        names = sorted(each.metadata.name for each in nodes if each.metadata and each.metadata.name)
        yield KubernetesBed(path, read_options(), None, tuple(names[:1] + names[-1:]))
        return
    with tempfile.TemporaryDirectory(prefix="kube-") as folder:
        cluster = KubernetesCluster(Path(folder) / "k", NAMES)
        try:
            cluster.start()
            for name in ("namespace", "rights"):
                assert cluster.api("apply", "-n", "tradewind", "-f", str(DEPLOY / f"{name}.yaml"))
            yield KubernetesBed(with_few_rights(cluster), options_here(), cluster, NAMES)
        finally:
            cluster.stop()


def with_few_rights(cluster: KubernetesCluster) -> Path:
    """A kubeconfig of the service's account."""
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": 7200},
    }
    path = "/api/v1/namespaces/tradewind/serviceaccounts/tradewind/token"
    answer = json.loads(cluster.api("create", "--raw", path, "-f", "-", text=json.dumps(request)))
    document = json.loads(cluster.kubeconfig.read_text())
    document["users"] = [{"name": "admin", "user": {"token": answer["status"]["token"]}}]
    document["contexts"][0]["context"]["namespace"] = "tradewind"
    made = cluster.folder / "loop"
    made.write_text(json.dumps(document))
    return made


def options_here() -> PodOptions:
    """Pods that see the programs of this machine, its Python environment and the tests' directory."""
    seen = ["/bin", "/lib", "/lib64", "/usr", sys.prefix, sys.base_prefix, str(REPOSITORY)]
    if sys.prefix != sys.base_prefix:  # a virtual environment in the tree that is installed in it
        seen.append(str(Path(sys.prefix).parent))
    kept = [
        each
        for each in dict.fromkeys(seen)
        if Path(each).exists() and (each == "/usr" or not each.startswith("/usr/"))
    ]
    volumes = [{"path": each, "host": each, "read_only": True} for each in kept]
    return PodOptions(
        images=(IMAGE,), python=sys.executable, requests={"cpu": "100m"},
        volumes=[*volumes, {"path": tempfile.gettempdir(), "host": tempfile.gettempdir()}],
    )  # fmt: skip
