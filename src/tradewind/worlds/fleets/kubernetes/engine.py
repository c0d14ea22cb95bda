"""Kubernetes as an engine: a pod per rank, on the machine that the plan names."""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import cast

import httpx2
from lightkube import ApiError, Client, KubeConfig
from lightkube.config.kubeconfig import SingleConfig
from lightkube.core.exceptions import ConfigError
from lightkube.generic_resource import create_namespaced_resource
from lightkube.resources.core_v1 import Node, Pod
from lightkube.utils.quantity import parse_quantity

from tradewind.model.errors import InputError
from tradewind.model.units import MILLI
from tradewind.worlds.fleets import starter
from tradewind.worlds.fleets.engine import EngineGang, EngineUnreachable, Machine
from tradewind.worlds.fleets.kubernetes.lease import CONFLICT, NOT_FOUND, LeaderLock
from tradewind.worlds.fleets.kubernetes.options import PodOptions
from tradewind.worlds.fleets.kubernetes.pods import (
    GANG,
    ME,
    OWNER,
    RANK,
    VOLCANO,
    Program,
    name_of,
    pod,
    pod_group,
)
from tradewind.worlds.fleets.processes import supervisor

ANSWER_S = 5.0
GB = 10**9
OVER = frozenset(("Succeeded", "Failed"))
IGNORED = frozenset(("ephemeral-storage", "pods"))
PodGroup = create_namespaced_resource(VOLCANO, "v1beta1", "PodGroup", "podgroups")


class KubernetesEngine:
    """A cluster by a context of the kubeconfig; empty: the current one, or that of the pod in which this runs."""

    name = "kubernetes"

    def __init__(self, context: str, options: PodOptions) -> None:
        config = config_of(context)
        self._options = replace(options, namespace=options.namespace or config.namespace)
        self._client = Client(config, timeout=httpx2.Timeout(ANSWER_S), trust_env=False)
        self._lock: LeaderLock | None = None
        self._pods: dict[str, list[Pod]] = {}

    def machines(self) -> Sequence[Machine]:
        """All nodes, in the order of their names."""
        with asking():
            nodes = list(self._client.list(Node))
        return sorted((machine_of(node, self._options) for node in nodes), key=lambda each: each.name)

    def start(self, gang: EngineGang) -> None:
        """Make the pods of a gang; one that is over before its rank was started makes room for another."""
        folder = Path(gang.folder)
        (folder / "processes").mkdir(exist_ok=True)
        for program, name in ((starter, "starter.py"), (supervisor, "processes/supervisor.py")):
            assert program.__file__ is not None
            shutil.copyfile(program.__file__, folder / name)
        made = [
            pod(gang, rank, _program(task.argv[-1]), self._options) for rank, task in enumerate(gang.tasks)
        ]
        there = {name: each for each in self._pods.get(gang.name, ()) for name in (_name(each),)}
        with asking():
            if (group := pod_group(gang, self._options)) is not None:
                with suppress_code(CONFLICT):
                    self._client.create(PodGroup.from_dict(group))
            for each in made:
                found = there.get(each["metadata"]["name"])
                if found is not None and is_over(found):
                    self._remove(found)
                elif found is not None:
                    continue
                with suppress_code(CONFLICT):  # it was made before, or is being removed
                    self._client.create(cast(Pod, Pod.from_dict(each)))

    def gangs(self, prefix: str) -> Mapping[str, Collection[int]]:
        """The gangs with this prefix that have pods, and their ranks that wait or run."""
        places = sorted({self._options.namespace, *self._options.tenants.values()})
        found = defaultdict[str, list[Pod]](list)
        with asking():
            if self._lock is None:
                self._lock = LeaderLock(self._client, name_of(f"{prefix}loop"), self._options.namespace)
            self._lock.hold()
            for place in places:
                for each in self._client.list(Pod, namespace=place, labels={OWNER: ME}):
                    name = _labels(each).get(GANG, "")
                    if name.startswith(prefix):
                        found[name].append(each)
        self._pods = dict(found)
        return {
            name: {int(_labels(each)[RANK]) for each in pods if not is_over(each)}
            for name, pods in found.items()
        }

    def waiting(self, prefix: str) -> Mapping[str, str]:
        """Gangs with this prefix of which a pod does not run yet, and why, as it was said last."""
        said = {
            name: [why for each in pods if (why := _why_waiting(each))] for name, pods in self._pods.items()
        }
        return {name: whys[0] for name, whys in said.items() if whys and name.startswith(prefix)}

    def cancel(self, name: str) -> None:
        """Remove the pods of a gang; nothing happens if it is over."""
        with asking():
            for each in self._pods.get(name, ()):
                assert each.metadata is not None
                if each.metadata.deletionTimestamp is None:
                    self._remove(each)
            if self._options.queue.startswith("volcano/") and (pods := self._pods.get(name)):
                assert pods[0].metadata is not None
                with suppress_code(NOT_FOUND):
                    self._client.delete(PodGroup, name_of(name), namespace=pods[0].metadata.namespace)

    def _remove(self, given: Pod) -> None:
        assert given.metadata is not None
        grace = 0 if is_over(given) else None
        with suppress_code(NOT_FOUND):
            self._client.delete(Pod, _name(given), namespace=given.metadata.namespace, grace_period=grace)

    def close(self) -> None:
        """Let go of it; what it runs goes on, and another loop may lead."""
        if self._lock is not None:
            with suppress(EngineUnreachable), asking():
                self._lock.release()


def config_of(context: str) -> SingleConfig:
    """Where a cluster is, and as whom it is asked."""
    try:
        found = KubeConfig.from_env().get(context or None)
    except (ConfigError, OSError) as error:
        raise InputError(f"kubernetes: {error}; set KUBECONFIG, and name one of its contexts") from None
    assert found is not None
    return found


@contextmanager
def asking() -> Iterator[None]:
    """Turn what a client raises into what an engine raises."""
    try:
        yield
    except ApiError as error:
        raise EngineUnreachable(f"kubernetes: {error.status.message or error}") from None
    except (httpx2.HTTPError, ConfigError, OSError) as error:
        raise EngineUnreachable(f"kubernetes: {error or type(error).__name__}") from None


@contextmanager
def suppress_code(*codes: int) -> Iterator[None]:
    """Ignore that something is there, or gone, already."""
    try:
        yield
    except ApiError as error:
        if error.status.code not in codes:
            raise


def _program(control: str) -> Program:
    """What a rank runs, from the specification in its control directory."""
    spec = json.loads((Path(control) / "spec.json").read_text())
    return Program(spec["argv"], spec["env"], spec["grace_s"])


def machine_of(node: Node, options: PodOptions) -> Machine:
    """A node as a machine: what can be allocated, its labels, and whether it is ready and takes pods."""
    assert node.metadata is not None
    assert node.metadata.name is not None
    capacity = {}
    has = (node.status.allocatable if node.status is not None else None) or {}
    for name, text in has.items():
        amount = parse_quantity(text)
        if amount is None or name in IGNORED or name.startswith("hugepages-"):
            continue
        if name == "memory":
            capacity["memory_gb"] = int(amount * MILLI / GB)
        else:
            capacity["gpu" if name == options.gpu else name] = int(amount * MILLI)
    conditions = (node.status.conditions if node.status is not None else None) or ()
    is_ready = any(each.type == "Ready" and each.status == "True" for each in conditions)
    is_closed = bool(node.spec is not None and node.spec.unschedulable)
    return Machine(
        name=node.metadata.name, address="", capacity=capacity, labels=dict(node.metadata.labels or {}),
        is_up=is_ready and not is_closed,
    )  # fmt: skip


def _why_waiting(given: Pod) -> str:
    """Why a pod does not run yet: it has no machine, or its machine cannot start it. Empty: it does, or nothing is said."""
    status = given.status
    if status is None or status.phase != "Pending":
        return ""
    for condition in status.conditions or ():
        if condition.type == "PodScheduled" and condition.status != "True":
            return f"Kubernetes has {_name(given)} pending ({condition.message or condition.reason})"
    for container in status.containerStatuses or ():
        state = container.state.waiting if container.state is not None else None
        if state is not None and state.message:
            return f"Kubernetes cannot start {_name(given)} ({state.reason}: {state.message})"
    return ""


def _labels(given: Pod) -> Mapping[str, str]:
    assert given.metadata is not None
    return given.metadata.labels or {}


def _name(given: Pod) -> str:
    assert given.metadata is not None
    assert given.metadata.name is not None
    return given.metadata.name


def is_over(given: Pod) -> bool:
    """Whether nothing of a pod runs any more."""
    return given.status is not None and given.status.phase in OVER
