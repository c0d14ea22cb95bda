"""The pod of a rank. Nothing restarts it, nothing but the loop removes it, and it may ask the cluster for nothing."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from tradewind.model.errors import InputError
from tradewind.model.units import MILLI
from tradewind.worlds.fleets.engine import EngineGang, EngineTask
from tradewind.worlds.fleets.kubernetes.options import PodOptions

OWNER, GANG, RANK = "app.kubernetes.io/managed-by", "tradewind/gang", "tradewind/rank"
ME = "tradewind"
AGENT_GONE = tuple(
    {"key": f"node.kubernetes.io/{what}", "operator": "Exists", "effect": "NoExecute"}
    for what in ("not-ready", "unreachable")
)
"""A machine whose agent is away keeps its pods: they run, and the policy decides."""
SWEEP_S = 12
"""Time that a starter may take beyond the grace period of its rank."""
KUEUE, VOLCANO = "kueue.x-k8s.io", "scheduling.volcano.sh"
"""Names that Kueue and Volcano give to what they read in pods."""
GROUP = "scheduling.k8s.io/group-name"
"""Annotation of a pod that names its PodGroup of Volcano."""
IMAGE = "TRADEWIND_IMAGE"
ADDRESS = "TRADEWIND_ADDRESS"
"""Variable by which a starter knows the address of its pod."""


class Program(NamedTuple):
    """What a rank runs, as its specification says: command, environment, seconds between SIGTERM and SIGKILL."""

    argv: Sequence[str]
    env: Mapping[str, str]
    grace_s: float


def name_of(text: str) -> str:
    """A name that Kubernetes takes."""
    return re.sub(r"[^a-z0-9-]", "-", text.lower()).strip("-")


def namespace_of(gang: EngineGang, options: PodOptions) -> str:
    """Where the pods of a gang are."""
    return options.tenants.get(gang.tenant, options.namespace)


def pod(gang: EngineGang, rank: int, program: Program, options: PodOptions) -> dict[str, Any]:
    """The manifest of the pod of a rank."""
    task = gang.tasks[rank]
    labels = {OWNER: ME, GANG: gang.name, RANK: str(rank), **_queue_labels(gang, options)}
    annotations = _queue_annotations(gang, options)
    address = {"name": ADDRESS, "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    user = {} if options.user is None else {"runAsUser": options.user, "runAsNonRoot": options.user != 0}
    container = {
        "name": "rank",
        "image": _image(program, options),
        "imagePullPolicy": "IfNotPresent",
        "command": [options.python, "-E", "-S", f"{gang.folder}/starter.py", task.argv[-1]],
        "env": [address],
        "resources": _resources(task, options),
        "securityContext": {"allowPrivilegeEscalation": False, **user},
        "volumeMounts": [
            {"name": f"volume-{i}", "mountPath": each["path"], "readOnly": bool(each.get("read_only"))}
            for i, each in enumerate(options.volumes)
        ],
    }
    spec: dict[str, Any] = {
        "restartPolicy": "Never",
        "schedulerName": "volcano" if options.queue.startswith("volcano/") else options.scheduler,
        "affinity": _affinity(task.machine),
        "nodeSelector": dict(options.node_selector),
        "tolerations": [*map(dict, AGENT_GONE), *map(dict, options.tolerations)],
        "terminationGracePeriodSeconds": math.ceil(program.grace_s) + SWEEP_S,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "hostNetwork": options.host_network,
        "containers": [container],
        "volumes": [{"name": f"volume-{i}", **_volume(each)} for i, each in enumerate(options.volumes)],
    }
    metadata = _metadata(gang, f"{gang.name}-{rank}", labels, options)
    if annotations:
        metadata["annotations"] = annotations
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def pod_group(gang: EngineGang, options: PodOptions) -> dict[str, Any] | None:
    """The PodGroup of a gang in a queue of Volcano: all of its pods start together; None without such a queue."""
    kind, _, queue = options.queue.partition("/")
    if kind != "volcano":
        return None
    metadata = _metadata(gang, gang.name, {OWNER: ME, GANG: gang.name}, options)
    spec = {"minMember": len(gang.tasks), "queue": queue}
    return {"apiVersion": f"{VOLCANO}/v1beta1", "kind": "PodGroup", "metadata": metadata, "spec": spec}


def _metadata(gang: EngineGang, name: str, labels: Mapping[str, str], options: PodOptions) -> dict[str, Any]:
    place = namespace_of(gang, options)
    return {"name": name_of(name), "labels": dict(labels)} | ({"namespace": place} if place else {})


def _queue_labels(gang: EngineGang, options: PodOptions) -> dict[str, str]:
    """Labels by which Kueue finds the pods of a gang."""
    kind, _, queue = options.queue.partition("/")
    if kind != "kueue":
        return {}
    return {f"{KUEUE}/queue-name": queue, f"{KUEUE}/pod-group-name": name_of(gang.name)}


def _queue_annotations(gang: EngineGang, options: PodOptions) -> dict[str, str]:
    """What Kueue and Volcano read beside labels: size and order of a gang, or the name of its PodGroup."""
    if options.queue.startswith("kueue/"):
        size = str(len(gang.tasks))
        return {f"{KUEUE}/pod-group-total-count": size, f"{KUEUE}/pod-group-pod-index-label": RANK}
    return {GROUP: name_of(gang.name)} if options.queue.startswith("volcano/") else {}


def _image(program: Program, options: PodOptions) -> str:
    """The image of a job; refuses one, or a command, that is not allowed."""
    word, image = program.argv[0], program.env.get(IMAGE, options.images[0])
    if not any(fnmatchcase(word, pattern) for pattern in options.commands):
        raise InputError(f"command {word!r} is not allowed here; allowed are {', '.join(options.commands)}")
    if image not in options.images:
        raise InputError(
            f"{IMAGE} is {image!r}, which is not allowed here; allowed are {', '.join(options.images)}"
        )
    return image


def _affinity(machine: str) -> dict[str, Any]:
    """On this machine and no other; the pod waits if there is no room."""
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [machine]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


def _resources(task: EngineTask, options: PodOptions) -> dict[str, dict[str, str]]:
    """What a rank asks for: its job's demand, and what the options say. GPUs and what only this cluster counts are whole."""
    requests, limits = dict(options.requests), dict(options.limits)
    for name, milli in task.demand:
        if name == "cpu":
            requests["cpu"] = f"{milli}m"
        elif name == "memory_gb":
            requests["memory"] = f"{milli}M"
        else:
            limits[options.gpu if name == "gpu" else name] = str(math.ceil(milli / MILLI))
    return {"requests": requests, "limits": limits}


def _volume(given: Mapping[str, Any]) -> dict[str, Any]:
    if "claim" in given:
        return {"persistentVolumeClaim": {"claimName": given["claim"]}}
    return {"hostPath": {"path": given["host"]}}
