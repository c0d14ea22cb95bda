"""Real traffic on a testbed: rounds of a parameter server or a ring, timed, beside what the model predicts.

Where PyTorch is installed the bytes travel over gloo, by the very functions of the trainer; else over plain sockets in the
same pattern. Nothing is computed in between: only communication is timed.
"""

from __future__ import annotations

import importlib.util
import json
import math
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path as File
from statistics import median
from typing import Any, Literal

from tradewind.model.errors import TradewindError
from tradewind.worlds.forkserver import ForkServer
from tradewind.worlds.testbed.network import INTERFACE, Testbed
from tradewind.worlds.testbed.wan import Path, Wan, loads, ring_hops, ring_s, server_s

PORT = 29500
PATIENCE = 6.0
"""A measurement may take so many times its prediction, plus a start, before it counts as failed."""
START_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One way to exchange gradients between all sites.

    sites: the server's first, then those that send to it; or the ring in order. paths: per sending site to the server and
    back again (server), or per hop (ring).
    """

    kind: Literal["server", "ring"]
    label: str
    sites: tuple[int, ...]
    paths: tuple[Path, ...]
    back: tuple[Path, ...] = ()

    def predicted_s(self, wan: Wan, model_bytes: int) -> float:
        if self.kind == "ring":
            return ring_s(wan, self.paths, model_bytes)
        return server_s(wan, self.paths, self.back, model_bytes)

    @property
    def shared(self) -> int:
        """Transfers on the busiest link."""
        return max((*loads(self.paths).values(), *loads(self.back).values()), default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Seconds of each round after a warm-up round, and the prediction."""

    exchange: Exchange
    predicted_s: float
    rounds_s: tuple[float, ...]

    @property
    def seconds(self) -> float:
        return median(self.rounds_s)

    @property
    def error(self) -> float:
        """(measured - predicted) / predicted."""
        return self.seconds / self.predicted_s - 1


def gather_at(wan: Wan, server: int, paths: Mapping[tuple[int, int], Path]) -> Exchange:
    """All sites around a server, on the paths that packets take by themselves."""
    others = [site for site in range(len(wan.sites)) if site != server]
    return Exchange(
        kind="server",
        label=wan.sites[server],
        sites=(server, *others),
        paths=tuple(paths[site, server] for site in others),
        back=tuple(paths[server, site] for site in others),
    )


def routed(server: int, up: Sequence[Path], label: str) -> Exchange:
    """A server with a chosen path per site; what is pulled comes back the same way."""
    return Exchange(
        kind="server",
        label=label,
        sites=(server, *(path[0] for path in up)),
        paths=tuple(up),
        back=tuple(path[::-1] for path in up),
    )


def around(wan: Wan, order: Sequence[int], paths: Mapping[tuple[int, int], Path]) -> Exchange:
    """A ring in this order, on the paths that packets take by themselves."""
    return Exchange(
        kind="ring",
        label=" > ".join(wan.sites[site] for site in order),
        sites=tuple(order),
        paths=tuple(ring_hops(paths, order)),
    )


def carrier() -> Literal["gloo", "sockets"]:
    """What carries the bytes here."""
    return "gloo" if importlib.util.find_spec("torch") is not None else "sockets"


MODULES = {"gloo": "tradewind.train.traffic", "sockets": "tradewind.worlds.testbed.sockets"}
"""What a site runs; named, not imported: this file needs no PyTorch."""


@contextmanager
def traffic(how: Literal["gloo", "sockets"]) -> Iterator[ForkServer]:
    """The process from which sites are started."""
    with ForkServer([MODULES[how]]) as fork_server:
        yield fork_server


def measure(
    bed: Testbed, fork_server: ForkServer, how: str, exchange: Exchange, *, model_bytes: int, rounds: int
) -> Measured:
    """Run an exchange `rounds` times (and once to warm up) with one process per site."""
    bed.pin([*exchange.paths, *exchange.back])
    predicted = exchange.predicted_s(bed.wan, model_bytes)
    limit = START_S + PATIENCE * (rounds + 1) * predicted
    with tempfile.TemporaryDirectory(prefix="tradewind-traffic-") as folder:
        result, log = File(folder) / "seconds.json", File(folder) / "log"
        pids = []
        for number, site in enumerate(exchange.sites):
            argument: dict[str, Any] = {
                "kind": exchange.kind,
                "number": number,
                "addresses": [bed.address(s) for s in exchange.sites],
                "port": PORT,
                "interface": INTERFACE,
                "model_bytes": model_bytes,
                "rounds": rounds,
                "timeout_s": limit,
                "result": str(result),
            }
            pids.append(
                fork_server.start(
                    f"{MODULES[how]}:run",
                    argument,
                    environment={"PATH": os.environ.get("PATH", "")},
                    namespace=bed.namespace(site),
                    log=log,
                )
            )
        codes = fork_server.wait_all(pids, limit)
        if any(codes) or not result.exists():
            said = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            raise TradewindError(
                f"testbed {bed.name}: the traffic of {exchange.kind} {exchange.label} failed: "
                f"{said[-1] if said else f'exit codes {codes}'}"
            )
        seconds = json.loads(result.read_text(encoding="utf-8"))
    return Measured(exchange=exchange, predicted_s=predicted, rounds_s=tuple(float(s) for s in seconds))


def size_for(wan: Wan, exchanges: Sequence[Exchange], seconds: float) -> int:
    """Bytes for which the middle one of the exchanges takes about so long, a multiple of 4 kB."""
    each = median(exchange.predicted_s(wan, 1_000_000) for exchange in exchanges) / 1_000_000
    return max(1, math.ceil(seconds / each / 4096)) * 4096
