"""Measures traffic on a testbed: times rounds of a parameter server or a ring, and compares them with the model.

If PyTorch is installed, the trainer's own functions send the bytes over gloo; otherwise plain sockets send them in the
same pattern. No gradients are computed: only communication is timed.
"""

from __future__ import annotations

import importlib.util
import json
import math
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path as File
from statistics import median
from typing import Any, Literal, NamedTuple

from tradewind.model.errors import TradewindError
from tradewind.worlds.forkserver import ForkServer
from tradewind.worlds.testbed.network import INTERFACE, Testbed
from tradewind.worlds.testbed.routes import interface_of, job_address
from tradewind.worlds.testbed.wan import Path, Wan, loads, ring_hops, ring_s, server_s

PORT = 29500
TIMEOUT_FACTOR = 6.0
"""A measurement fails after START_S plus this many times its prediction."""
START_S = 60.0
AHEAD_S, TRIPS = 0.05, 4
"""Sites agree on a beginning so long ahead, and the longest latency so often: a message may need a handshake."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """A way to exchange gradients between all sites.

    sites  server: its site, then the sending sites; ring: the sites in ring order
    paths  server: from each sending site to the server; ring: of each hop
    back   server: from the server to each sending site
    """

    kind: Literal["server", "ring"]
    label: str
    sites: tuple[int, ...]
    paths: tuple[Path, ...]
    back: tuple[Path, ...] = ()

    def predicted_s(self, wan: Wan, model_bytes: int) -> float:
        """Seconds of a round by the model."""
        if self.kind == "ring":
            return ring_s(wan, self.paths, model_bytes)
        return server_s(wan, self.paths, self.back, model_bytes)

    @property
    def shared(self) -> int:
        """Number of transfers on the most shared link."""
        return max((*loads(self.paths).values(), *loads(self.back).values()), default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Measured seconds of each round (without the warm-up round), and the prediction."""

    exchange: Exchange
    predicted_s: float
    rounds_s: tuple[float, ...]

    @property
    def seconds(self) -> float:
        """Median of the rounds."""
        return median(self.rounds_s)

    @property
    def error(self) -> float:
        """(measured - predicted) / predicted."""
        return self.seconds / self.predicted_s - 1


def server_exchange(wan: Wan, server: int, paths: Mapping[tuple[int, int], Path]) -> Exchange:
    """All sites with a server, on default paths."""
    others = [site for site in range(len(wan.sites)) if site != server]
    return Exchange(
        kind="server",
        label=wan.sites[server],
        sites=(server, *others),
        paths=tuple(paths[site, server] for site in others),
        back=tuple(paths[server, site] for site in others),
    )


def routed_exchange(server: int, up: Sequence[Path], label: str) -> Exchange:
    """A server with a chosen path per site, used in both directions."""
    return Exchange(
        kind="server",
        label=label,
        sites=(server, *(path[0] for path in up)),
        paths=tuple(up),
        back=tuple(path[::-1] for path in up),
    )


def ring_exchange(wan: Wan, order: Sequence[int], paths: Mapping[tuple[int, int], Path]) -> Exchange:
    """A ring in this order, on default paths."""
    return Exchange(
        kind="ring",
        label=" > ".join(wan.sites[site] for site in order),
        sites=tuple(order),
        paths=tuple(ring_hops(paths, order)),
    )


def carrier() -> Literal["gloo", "sockets"]:
    """What sends the bytes on this machine."""
    return "gloo" if importlib.util.find_spec("torch") is not None else "sockets"


MODULES = {"gloo": "tradewind.train.traffic", "sockets": "tradewind.worlds.testbed.sockets"}
"""Modules that a site runs, by name: importing them here would require PyTorch."""


def traffic_server(how: Literal["gloo", "sockets"]) -> ForkServer:
    """A fork server that starts the processes of sites."""
    return ForkServer([MODULES[how]])


class Load(NamedTuple):
    """An exchange to be measured: `rounds` rounds, after one to warm up.

    job  it uses the addresses of this job (worlds.testbed.routes); -1: those of the sites
    """

    exchange: Exchange
    model_bytes: int
    rounds: int
    predicted_s: float
    job: int = -1


def measure(
    bed: Testbed, fork_server: ForkServer, how: str, exchange: Exchange, *, model_bytes: int, rounds: int
) -> Measured:
    """Time `rounds` rounds of an exchange on its paths, after one to warm up."""
    bed.pin([*exchange.paths, *exchange.back])
    load = Load(exchange, model_bytes, rounds, exchange.predicted_s(bed.wan, model_bytes))
    return measure_all(bed, fork_server, how, [load])[0]


def measure_all(bed: Testbed, fork_server: ForkServer, how: str, loads: Sequence[Load]) -> list[Measured]:
    """Time exchanges that take place at the same time, with one process per site and exchange."""
    limit = START_S + TIMEOUT_FACTOR * max((each.rounds + 1) * each.predicted_s for each in loads)
    with tempfile.TemporaryDirectory(prefix="tradewind-traffic-") as folder:
        results = [File(folder) / f"seconds-{number}.json" for number in range(len(loads))]
        log = File(folder) / "log"
        pids: list[int] = []
        for number, (load, result) in enumerate(zip(loads, results, strict=True)):
            pids += _started(bed, fork_server, how, load, {
                "port": PORT + number, "timeout_s": limit, "result": str(result), "log": str(log),
            })  # fmt: skip
        codes = fork_server.wait_all(pids, limit)
        if any(codes) or not all(result.exists() for result in results):
            lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            names = ", ".join(f"{each.exchange.kind} {each.exchange.label}" for each in loads)
            raise TradewindError(
                f"testbed {bed.name}: traffic of {names} failed: {lines[-1] if lines else f'exit codes {codes}'}"
            )
        return [
            Measured(exchange=load.exchange, predicted_s=load.predicted_s, rounds_s=tuple(json.loads(result.read_text())))
            for load, result in zip(loads, results, strict=True)
        ]  # fmt: skip


def pause_s(wan: Wan, exchange: Exchange) -> float:
    """How long before its beginning sites agree on a round; until then nothing is sent."""
    trips_s = [wan.latency_s(way) for way in (*exchange.paths, *exchange.back)]
    return AHEAD_S + TRIPS * (sum(trips_s) if exchange.kind == "ring" else max(trips_s))


def _started(
    bed: Testbed, fork_server: ForkServer, how: str, load: Load, more: Mapping[str, Any]
) -> list[int]:
    """Start the processes of an exchange."""
    sites = load.exchange.sites
    addresses = [bed.address(site) if load.job < 0 else job_address(load.job, site) for site in sites]
    return [
        fork_server.start(
            f"{MODULES[how]}:run",
            {
                "kind": load.exchange.kind, "number": number, "addresses": addresses,
                "interface": INTERFACE if load.job < 0 else interface_of(load.job),
                "model_bytes": load.model_bytes, "rounds": load.rounds, "ahead_s": pause_s(bed.wan, load.exchange), **more,
            },
            environment={"PATH": os.environ.get("PATH", "")},
            namespace=bed.namespace(site),
            log=File(more["log"]),
        )
        for number, site in enumerate(sites)
    ]  # fmt: skip


def model_size(wan: Wan, exchanges: Sequence[Exchange], seconds: float) -> int:
    """Model size in bytes, a multiple of 4 KiB, for which the median exchange takes about `seconds`."""
    each = median(exchange.predicted_s(wan, 1_000_000) for exchange in exchanges) / 1_000_000
    return max(1, math.ceil(seconds / each / 4096)) * 4096
