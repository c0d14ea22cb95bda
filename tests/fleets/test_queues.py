"""PodGroups of Volcano and gates of Kueue, against a store of objects that answers as an API server does.

The tests' own cluster cannot have kinds of others: its API server ends with the first of them (docs/kubernetes.md).
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from unittest import mock

import pytest

from tradewind.worlds.fleets.engine import EngineGang, EngineTask
from tradewind.worlds.fleets.kubernetes.engine import KubernetesEngine
from tradewind.worlds.fleets.kubernetes.options import PodOptions
from tradewind.worlds.fleets.kubernetes.scheduler import Scheduler

PODS = "/api/v1/namespaces/main/pods"
GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/main/podgroups"


class Store(BaseHTTPRequestHandler):
    """Objects by path: made once, listed, replaced, removed."""

    objects: ClassVar[dict[str, dict[str, Any]]] = {}

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def answer(self, code: int, document: dict[str, Any]) -> None:
        body = json.dumps(document).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def refuse(self, code: int) -> None:
        self.answer(
            code, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "message": ""}
        )

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        below = [each for name, each in self.objects.items() if name.rpartition("/")[0] == path]
        if path in self.objects:
            self.answer(200, self.objects[path])
        elif below or path in (PODS, "/api/v1/nodes"):
            self.answer(200, {"kind": "List", "apiVersion": "v1", "metadata": {}, "items": below})
        else:
            self.refuse(404)

    def do_POST(self) -> None:
        document = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        path = f"{self.path}/{document['metadata']['name']}"
        if path in self.objects:
            self.refuse(409)
        else:
            self.objects[path] = document
            self.answer(201, document)

    def do_DELETE(self) -> None:
        found = self.objects.pop(self.path.partition("?")[0], None)
        self.answer(200, found) if found else self.refuse(404)


@pytest.fixture
def objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, dict[str, Any]]]:
    made: dict[str, dict[str, Any]] = {}
    with mock.patch.object(Store, "objects", made), ThreadingHTTPServer(("127.0.0.1", 0), Store) as server:
        config = {
            "apiVersion": "v1", "kind": "Config", "current-context": "x",
            "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x", "namespace": "main"}}],
            "clusters": [{"name": "x", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
            "users": [{"name": "x", "user": {}}],
        }  # fmt: skip
        (tmp_path / "kubeconfig").write_text(json.dumps(config))
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield made
        server.shutdown()


def test_a_gang_in_a_queue_of_volcano_has_a_pod_group_as_long_as_it_is_there(
    objects: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    tasks = []
    for rank in range(2):
        control = tmp_path / f"{rank}-0"
        control.mkdir()
        (control / "spec.json").write_text(json.dumps({"argv": ["true"], "env": {}, "grace_s": 1.0}))
        tasks.append(EngineTask("n1", (str(control),)))
    engine = KubernetesEngine("", PodOptions(queue="volcano/team"))
    assert engine.gangs("tw-x-") == {}
    for _ in range(2):  # starting it twice is allowed
        engine.start(EngineGang("tw-x-0-0", tuple(tasks), str(tmp_path)))
    assert objects[f"{GROUPS}/tw-x-0-0"]["spec"] == {"minMember": 2, "queue": "team"}
    assert engine.gangs("tw-x-") == {"tw-x-0-0": {0, 1}}
    engine.cancel("tw-x-0-0")
    assert not any(name.startswith((GROUPS, PODS)) for name in objects)


def test_a_second_scheduler_waits_for_all_members_of_a_pod_group_and_for_gates(
    objects: dict[str, dict[str, Any]],
) -> None:
    def put(number: int, **more: Any) -> None:
        objects[f"{PODS}/p{number}"] = {
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": f"p{number}", "namespace": "main", "labels": {"volcano.sh/task-index": str(number)},
                "annotations": {"scheduling.k8s.io/group-name": "theirs"},
                "creationTimestamp": "2026-01-01T00:00:00Z",
            },
            "spec": {"schedulerName": "tradewind", "containers": [{"name": "c"}], **more},
            "status": {"phase": "Pending"},
        }  # fmt: skip

    scheduler = Scheduler("", PodOptions())
    put(1)
    put(0, schedulingGates=[{"name": "kueue.x-k8s.io/admission"}])
    assert [gang.pods for gang in scheduler.look().gangs] == [("p1",)]  # of one, without a PodGroup
    objects[f"{GROUPS}/theirs"] = {
        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
        "metadata": {"name": "theirs", "namespace": "main"}, "spec": {"minMember": 2},
    }  # fmt: skip
    assert scheduler.look().gangs == []
    put(0)
    assert [gang.pods for gang in scheduler.look().gangs] == [("p0", "p1")]
