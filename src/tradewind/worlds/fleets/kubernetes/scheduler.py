"""A second scheduler: binds pods that others made (`schedulerName: tradewind`) to machines, a gang at a time.

A gang is what its pods say: a label with its name, a label or annotation with its size, and a label with the rank of each.
Names of Kueue's pod groups, Volcano's PodGroups and indexed jobs are understood too. Who decides is not said here.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import httpx2
import msgspec
from lightkube import ApiError, Client
from lightkube.models.core_v1 import ObjectReference
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import Node, Pod, PodBinding
from lightkube.utils.quantity import parse_quantity

from tradewind.model.units import MILLI
from tradewind.worlds.fleets.engine import Machine
from tradewind.worlds.fleets.kubernetes.engine import (
    ANSWER_S,
    GB,
    PodGroup,
    asking,
    config_of,
    is_over,
    machine_of,
    suppress_code,
)
from tradewind.worlds.fleets.kubernetes.lease import CONFLICT, NOT_FOUND
from tradewind.worlds.fleets.kubernetes.options import PodOptions
from tradewind.worlds.fleets.kubernetes.pods import GANG, GROUP, KUEUE, ME, RANK, VOLCANO

NAMES = (GANG, f"{KUEUE}/pod-group-name", GROUP, f"{VOLCANO}/group-name")
SIZES = ("tradewind/size", f"{KUEUE}/pod-group-total-count")
RANKS = (
    RANK, "batch.kubernetes.io/job-completion-index", f"{KUEUE}/pod-group-pod-index", "volcano.sh/task-index"
)  # fmt: skip


class Waiting(NamedTuple):
    """A gang all of whose pods are there and wait: their names in rank order, and what each rank asks for."""

    namespace: str
    name: str
    pods: tuple[str, ...]
    demand: Mapping[str, int]
    since: str


class Queue(NamedTuple):
    """What can be decided: gangs that wait, the oldest first, and machines with what is free of them."""

    gangs: Sequence[Waiting]
    machines: Sequence[Machine]


class Scheduler:
    """Talks to a cluster on behalf of a decider. namespaces: where its pods are; empty: that of the context."""

    def __init__(self, context: str, options: PodOptions) -> None:
        config = config_of(context)
        self._options = options
        self._places = sorted({options.namespace or config.namespace, *options.tenants.values()})
        self._client = Client(config, timeout=httpx2.Timeout(ANSWER_S), trust_env=False)

    def look(self) -> Queue:
        """What waits, and where there is room. Pods that others bound count as far as this account may see them."""
        with asking():
            nodes = list(self._client.list(Node))
            pods = [each for place in self._places for each in self._client.list(Pod, namespace=place)]
            sizes = self._pod_groups(pods)
        used = defaultdict[str, dict[str, int]](dict)
        found = defaultdict[tuple[str, str], list[Pod]](list)
        for each in pods:
            spec, metadata = each.spec, each.metadata
            if spec is None or metadata is None or is_over(each) or metadata.deletionTimestamp is not None:
                continue
            if spec.nodeName:
                for name, milli in demand_of(each, self._options).items():
                    used[spec.nodeName][name] = used[spec.nodeName].get(name, 0) + milli
            elif spec.schedulerName == ME and not spec.schedulingGates:  # a queue may hold it back
                found[metadata.namespace or "", _said(each, NAMES) or metadata.name or ""].append(each)
        machines = []
        for node in nodes:
            machine = machine_of(node, self._options)
            if machine.is_up:
                has = machine.capacity
                free = {name: max(0, has[name] - used[machine.name].get(name, 0)) for name in has}
                machines.append(Machine(name=machine.name, address="", capacity=free, labels=machine.labels))
        gangs = [
            self._gang(*key, waiting)
            for key, waiting in found.items()
            if len(waiting) >= sizes.get(key, _size(waiting[0]))
        ]
        gangs.sort(key=lambda gang: (gang.since, gang.namespace, gang.name))
        return Queue(gangs, sorted(machines, key=lambda each: each.name))

    def _pod_groups(self, pods: Sequence[Pod]) -> Mapping[tuple[str, str], int]:
        """(namespace, name) -> least number of pods, of the PodGroups of Volcano that pods name."""
        found = {}
        places = {
            each.metadata.namespace or ""
            for each in pods
            if each.metadata is not None and _said(each, NAMES[2:])
        }
        for place in sorted(places):
            with suppress_code(NOT_FOUND):  # Volcano is not there
                for group in self._client.list(PodGroup, namespace=place):
                    assert group.metadata is not None
                    found[place, group.metadata.name or ""] = int(
                        (group.get("spec") or {}).get("minMember", 1)
                    )
        return found

    def _gang(self, namespace: str, name: str, waiting: list[Pod]) -> Waiting:
        ordered = sorted(waiting, key=_order)
        names = tuple(each.metadata.name or "" for each in ordered if each.metadata is not None)
        most: dict[str, int] = {}
        for each in ordered:
            for resource, milli in demand_of(each, self._options).items():
                most[resource] = max(most.get(resource, 0), milli)
        since = max(str(each.metadata.creationTimestamp) for each in ordered if each.metadata is not None)
        return Waiting(namespace, name, names, most, since)

    def bind(self, gang: Waiting, machines: Sequence[str]) -> int:
        """Bind the pods of a gang, rank r to the r-th machine; return how many were bound. Pods that left do not count."""
        bound = 0
        for name, machine in zip(gang.pods, machines, strict=True):
            target = ObjectReference(apiVersion="v1", kind="Node", name=machine)
            binding = PodBinding(metadata=ObjectMeta(name=name, namespace=gang.namespace), target=target)
            with asking():
                try:
                    with contextlib.suppress(
                        msgspec.ValidationError
                    ):  # the client takes the answer for a binding
                        self._client.create(binding, name, namespace=gang.namespace)
                    bound += 1
                except ApiError as error:
                    if error.status.code not in (CONFLICT, NOT_FOUND):
                        raise
        return bound


def demand_of(given: Pod, options: PodOptions) -> dict[str, int]:
    """What a pod asks for, in thousandths, by the names that machines have."""
    found: dict[str, int] = {}
    for container in given.spec.containers if given.spec is not None else ():
        needs = container.resources
        asked = {**(needs.limits or {}), **(needs.requests or {})} if needs is not None else {}
        for name, text in asked.items():
            amount = parse_quantity(text)
            if amount is not None:
                known = {"memory": "memory_gb", options.gpu: "gpu"}.get(name, name)
                milli = int(amount * MILLI / GB) if name == "memory" else int(amount * MILLI)
                found[known] = found.get(known, 0) + milli
    return found


def _said(given: Pod, names: Sequence[str]) -> str:
    """The first of some labels or annotations that a pod has."""
    assert given.metadata is not None
    has = {**(given.metadata.annotations or {}), **(given.metadata.labels or {})}
    return next((has[name] for name in names if name in has), "")


def _size(given: Pod) -> int:
    said = _said(given, SIZES)
    return int(said) if said.isdecimal() else 1


def _order(given: Pod) -> tuple[int, str]:
    assert given.metadata is not None
    said = _said(given, RANKS)
    return (int(said) if said.isdecimal() else 0, given.metadata.name or "")
