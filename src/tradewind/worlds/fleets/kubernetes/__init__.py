"""Kubernetes as an engine: a bare pod per rank (pods), made with few rights (engine), under a leader lock (lease)."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

from tradewind.model.errors import InputError
from tradewind.worlds.fleets.kubernetes.options import read_options

if TYPE_CHECKING:
    from tradewind.worlds.fleets.kubernetes.engine import KubernetesEngine
    from tradewind.worlds.fleets.kubernetes.scheduler import Scheduler


def open_engine(address: str) -> KubernetesEngine:
    """The engine of `--fleet kubernetes[:CONTEXT]`; a context of KUBECONFIG, else the current one, or that of a pod."""
    _need_client()
    from tradewind.worlds.fleets.kubernetes.engine import KubernetesEngine

    return KubernetesEngine(address, read_options())


def open_scheduler(context: str) -> Scheduler:
    """The second scheduler of a cluster."""
    _need_client()
    from tradewind.worlds.fleets.kubernetes.scheduler import Scheduler

    return Scheduler(context, read_options())


def _need_client() -> None:
    if importlib.util.find_spec("lightkube") is None:
        raise InputError(
            "Kubernetes needs lightkube, which is not installed: pip install 'tradewind[kubernetes]'"
        )
