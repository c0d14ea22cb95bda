"""Pods and manifests, without a cluster: they satisfy the newest schema, and say what they should."""

from __future__ import annotations

import re
import tomllib
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from tests.builders import job, node, scenario, setup
from tradewind import api
from tradewind.cli import manifests
from tradewind.model.errors import InputError
from tradewind.model.job import Fixed
from tradewind.service import config as configuration
from tradewind.worlds.fleets.engine import EngineGang, EngineTask
from tradewind.worlds.fleets.kubernetes.options import PodOptions, options_from
from tradewind.worlds.fleets.kubernetes.pods import Program, pod, pod_group

DEPLOY = Path(__file__).parents[2] / "deploy" / "kubernetes"
NEWEST = kubernetes_validate.latest_version()
TASKS = (
    EngineTask(
        "gpu-1", ("/data/run/control/0000-j-0/0-0",), (("cpu", 1500), ("gpu", 1000), ("memory_gb", 2500))
    ),
    EngineTask("gpu-2", ("/data/run/control/0000-j-0/1-0",), (("example.com/tpu", 2000),)),
)
THEIRS = EngineGang("tw-Run_1-0-0", TASKS, "/data/run/control/0000-j-0", "team-a")
PROGRAM = Program(("python", "train.py"), {}, 10.0)
OPTIONS = PodOptions(
    images=("one:1", "two:2"), commands=("python*",), namespace="main", tenants={"team-a": "tenant-a"},
    requests={"cpu": "100m"}, limits={"memory": "4Gi"}, tolerations=({"key": "gpu", "operator": "Exists"},),
    node_selector={"pool": "gpu"}, user=1000,
    volumes=({"path": "/data", "claim": "shared"}, {"path": "/usr", "host": "/usr", "read_only": True}),
)  # fmt: skip


def valid(document: dict[str, Any]) -> dict[str, Any]:
    kubernetes_validate.validate(document, NEWEST, strict=True)
    return document


@pytest.mark.parametrize(
    "options", [OPTIONS, PodOptions(), PodOptions(queue="kueue/team"), PodOptions(queue="volcano/team")]
)
def test_pods_satisfy_the_newest_schema(options: PodOptions) -> None:
    for rank in range(2):
        valid(pod(THEIRS, rank, PROGRAM, options))


def test_a_pod_says_where_it_runs_and_what_it_needs() -> None:
    first, second = (pod(THEIRS, rank, PROGRAM, OPTIONS) for rank in range(2))
    assert first["metadata"]["namespace"] == "tenant-a"
    assert first["metadata"]["name"] == "tw-run-1-0-0-0"
    assert [each["metadata"]["labels"]["tradewind/rank"] for each in (first, second)] == ["0", "1"]
    term = first["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert term["nodeSelectorTerms"][0]["matchFields"][0]["values"] == ["gpu-1"]
    resources = first["spec"]["containers"][0]["resources"]
    assert resources == {
        "requests": {"cpu": "1500m", "memory": "2500M"},
        "limits": {"memory": "4Gi", "nvidia.com/gpu": "1"},
    }
    assert second["spec"]["containers"][0]["resources"]["limits"]["example.com/tpu"] == "2"
    assert first["spec"]["restartPolicy"] == "Never"
    assert first["spec"]["automountServiceAccountToken"] is False
    assert first["spec"]["containers"][0]["image"] == "one:1"
    chosen = pod(THEIRS, 0, PROGRAM._replace(env={"TRADEWIND_IMAGE": "two:2"}), OPTIONS)
    assert chosen["spec"]["containers"][0]["image"] == "two:2"


def test_pods_say_in_which_queue_they_wait() -> None:
    first, second = (pod(THEIRS, rank, PROGRAM, replace(OPTIONS, queue="kueue/team")) for rank in range(2))
    labels, annotations = first["metadata"]["labels"], first["metadata"]["annotations"]
    assert labels["kueue.x-k8s.io/queue-name"] == "team"
    assert labels["kueue.x-k8s.io/pod-group-name"] == "tw-run-1-0-0"
    assert annotations["kueue.x-k8s.io/pod-group-total-count"] == "2"
    index = annotations["kueue.x-k8s.io/pod-group-pod-index-label"]
    assert [each["metadata"]["labels"][index] for each in (first, second)] == ["0", "1"]
    assert pod_group(THEIRS, replace(OPTIONS, queue="kueue/team")) is None

    options = replace(OPTIONS, queue="volcano/team")
    made, group = pod(THEIRS, 0, PROGRAM, options), pod_group(THEIRS, options)
    assert group is not None
    assert (group["spec"], group["metadata"]["namespace"]) == ({"minMember": 2, "queue": "team"}, "tenant-a")
    assert made["spec"]["schedulerName"] == "volcano"
    assert made["metadata"]["annotations"] == {"scheduling.k8s.io/group-name": group["metadata"]["name"]}


def test_commands_and_images_that_are_not_listed_are_refused() -> None:
    with pytest.raises(InputError, match="'sh' is not allowed"):
        pod(THEIRS, 0, PROGRAM._replace(argv=("sh", "-c", "true")), OPTIONS)
    with pytest.raises(InputError, match="three:3"):
        pod(THEIRS, 0, PROGRAM._replace(env={"TRADEWIND_IMAGE": "three:3"}), OPTIONS)


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"image": "x"}, "found image; allowed are images"),
        ({"images": "x"}, "images is 'x'"),
        ({"images": []}, "at least one image"),
        ({"queue": "team"}, "queue is 'team'; write kueue/NAME or volcano/NAME"),
        ({"volumes": [{"path": "/x"}]}, "either claim"),
        ([], "found list"),
    ],
)
def test_options_that_cannot_be_used_are_explained(document: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        options_from(document, "file")


def test_options_of_a_file_are_those_that_it_names() -> None:
    document = yaml.safe_load((DEPLOY / "fleet.yaml").read_text())
    found = asdict(options_from(document, "fleet.yaml"))
    assert {name: found[name] for name in document} == document


def test_the_image_is_made_of_what_is_there_and_is_the_one_that_manifests_name() -> None:
    root = DEPLOY.parents[1]
    lines = (root / "deploy" / "Dockerfile").read_text().replace("\\\n", "").splitlines()
    copied = [word for line in lines if line.startswith("COPY ") for word in line.split()[1:-1]]
    assert copied
    assert all((root / each).exists() for each in copied)
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    (extras,) = re.findall(r"/src\[([a-z,]+)\]", "\n".join(lines))
    assert set(extras.split(",")) <= set(project["optional-dependencies"])
    image = f"tradewind:{project['version']}"
    assert image in lines[0]
    assert yaml.safe_load((DEPLOY / "fleet.yaml").read_text())["images"] == [image]
    deployment = next(yaml.safe_load_all((DEPLOY / "service.yaml").read_text()))
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    assert (container["image"], container["command"][0]) == (image, next(iter(project["scripts"])))


def test_the_configuration_of_the_service_is_one() -> None:
    found = configuration.load(DEPLOY / "tradewind.yaml").file
    assert (found.fleet.address, found.listen.host) == ("kubernetes", "127.0.0.1")


@pytest.mark.parametrize(
    "path", sorted(DEPLOY.rglob("*.yaml")), ids=lambda path: str(path.relative_to(DEPLOY))
)
def test_manifests_satisfy_the_newest_schema(path: Path) -> None:
    if path.name in ("kustomization.yaml", "fleet.yaml", "tradewind.yaml"):
        named = yaml.safe_load(path.read_text()).get("resources", [])
        assert all((path.parent / each).exists() for each in named)
        return
    for document in yaml.safe_load_all(path.read_text()):
        valid(document)


def test_the_pods_of_a_slot_are_those_of_the_plan(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TRADEWIND_KUBERNETES", raising=False)
    where = setup([node("a", 2), node("b", 2)], slot_us=10**6, horizon_us=10**8, objective="jct_mean_s")
    given = scenario(
        [job(0, work=Fixed(runtime_us=3 * 10**6), workers_min=3, workers_max=3, command=("python", "x.py"))], where=where
    )  # fmt: skip
    run = api.run(given, "fifo")
    manifests.command(given, run, 1, Path("/data/run"), {"b": ["b-1"]})
    found = [valid(each) for each in yaml.safe_load_all(capsys.readouterr().out) if each]
    assert [each["metadata"]["name"] for each in found] == ["tw-run-0-0-0", "tw-run-0-0-1", "tw-run-0-0-2"]
    machines = [
        each["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
            "nodeSelectorTerms"
        ][0]["matchFields"][0]["values"][0]
        for each in found
    ]
    assert sorted(machines) in (["a", "a", "b-1"], ["a", "b-1", "b-1"])
    manifests.command(given, run, 5, Path("/data/run"), {})
    assert capsys.readouterr().out == ""
