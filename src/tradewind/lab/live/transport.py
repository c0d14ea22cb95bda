"""Transport on a testbed: relays that store and forward blocks or chunks beside cut-through, against their formula.

A block of D bytes over h links with b bit/s takes w(h) 8 D / b + h L: w is 1 for cut-through, h for store-and-forward and
1 + (h - 1) / K for K chunks; L is the latency of a link.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from itertools import product
from json import loads
from pathlib import Path
from statistics import median

from tradewind.lab.study import Effort, Judged, Row
from tradewind.model.errors import InputError, TradewindError
from tradewind.model.setup import transport_fraction
from tradewind.worlds.forkserver import ForkServer
from tradewind.worlds.testbed import network as testbed
from tradewind.worlds.testbed.state import own_name
from tradewind.worlds.testbed.wan import GOODPUT, Wan, WanLink

BPS = 20_000_000
SHORT_BYTES = 1000
"""A block that takes little more than the latency of its path; the fastest of many counts: machines only add to it."""
LATENCY_US = 10_000
"""Of every link. TCP must fill a path with what it sends in a round trip: blocks must be large beside that, too."""
CUT_THROUGH = "cut-through"
TRANSPORTS = (CUT_THROUGH, "store-and-forward", "chunks:4")
PORT = 29600
PATIENCE_S = 120.0
CLOSE = 0.1
RELAY = "tradewind.worlds.testbed.relays"


def line(sites: int, latency_us: int = 0) -> Wan:
    """Sites in a row."""
    return Wan(
        name="line",
        sites=tuple(f"site-{k + 1}" for k in range(sites)),
        links=tuple(WanLink(k, k + 1, BPS, BPS, latency_us) for k in range(sites - 1)),
    )


def predicted_s(wan: Wan, transport: str, hops: int, size: int) -> float:
    """Seconds of a block by the formula."""
    weight, whole = transport_fraction(transport, hops)
    return weight / whole * 8 * size / (GOODPUT * BPS) + wan.latency_s(range(hops + 1))


def block_s(
    bed: testbed.Testbed, fork_server: ForkServer, transport: str, hops: int, size: int, rounds: int
) -> list[float]:
    """Measured seconds of blocks over the first links of a line; packets of cut-through are forwarded by the kernel."""
    sites = [0, hops] if transport == CUT_THROUGH else list(range(hops + 1))
    kind, _, chunks = transport.partition(":")
    with tempfile.TemporaryDirectory(prefix="tradewind-transport-") as folder:
        result, log = Path(folder) / "seconds.json", Path(folder) / "log"
        pids = [
            fork_server.start(
                f"{RELAY}:run",
                {
                    "addresses": [bed.address(each) for each in sites], "number": number, "port": PORT,
                    "model_bytes": size, "chunks": int(chunks) if kind == "chunks" else 1, "rounds": rounds,
                    "timeout_s": PATIENCE_S, "result": str(result),
                },
                environment={"PATH": os.environ.get("PATH", "")},
                namespace=bed.namespace(site),
                log=log,
            )
            for number, site in enumerate(sites)
        ]  # fmt: skip
        codes = fork_server.wait_all(pids, PATIENCE_S)
        if any(codes):
            text = log.read_text(encoding="utf-8", errors="replace").strip()
            raise TradewindError(f"{transport} over {hops} links failed: {text.splitlines()[-1:] or codes}")
        return [float(each) for each in loads(result.read_text(encoding="utf-8"))]


def rows(effort: Effort) -> list[Row]:
    """A row per latency, transport, block and number of links; short blocks show the latency."""
    if reason := testbed.unavailable():
        raise InputError(f"this figure needs a testbed, which cannot be created here: {reason}")
    name, found = own_name("study"), list[Row]()
    large = (effort.pick(800_000, 1_600_000), effort.pick(2, 3))
    for latency_us, blocks in ((0, (large,)), (LATENCY_US, (large, (SHORT_BYTES, 20)))):
        wan = line(4, latency_us)
        try:
            bed = testbed.up(wan, name)
            with ForkServer([RELAY]) as fork_server:
                for transport, (size, rounds) in product(TRANSPORTS, blocks):
                    for hops in effort.pick((3,), (1, 2, 3)):
                        seconds = block_s(bed, fork_server, transport, hops, size, rounds)
                        found.append(
                            {
                                "transport": transport, "links": hops, "latency_ms": latency_us / 1000, "bytes": size,
                                "predicted_s": predicted_s(wan, transport, hops, size),
                                "measured_s": (min if size == SHORT_BYTES else median)(seconds), "fastest_s": min(seconds),
                            }
                        )  # fmt: skip
        finally:
            testbed.down(name)
    return found


def judge(found: Sequence[Row], _policy: str) -> Judged:
    """Do blocks take as long as the formula says?"""
    worst = {}
    for transport in TRANSPORTS:
        mine = [
            float(r["measured_s"]) / float(r["predicted_s"]) - 1 for r in found if r["transport"] == transport
        ]
        worst[transport] = max(mine, key=abs)
    texts = [f"{transport} at most {100 * off:+.1f}%" for transport, off in worst.items()]
    return Judged(max(map(abs, worst.values())) <= CLOSE, "from the formula: " + ", ".join(texts))
