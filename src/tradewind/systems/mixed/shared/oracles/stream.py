"""Streams: the data of a slot is processed in it or the slot is left out; worth by the slots served."""

from __future__ import annotations

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.model.decision import Flow
from tradewind.model.job import Job, Stream
from tradewind.model.units import GB
from tradewind.solvers.transport import transport
from tradewind.systems.mixed.kernels.market import Answer, Market
from tradewind.systems.mixed.kernels.stream import Ways, best_stream, divisions, relaxed_stream, written
from tradewind.systems.mixed.shared.frame import Frame, Known, Supply
from tradewind.systems.mixed.shared.oracles.ask import Ask

MOST_PLACES, MOST_DIVISIONS = 6, 4000
"""Places that a stream considers, and divisions of its workers over them."""
MUST_USD = 1e7
"""Worth of a slot of a stream that may not skip any."""


class Streaming(Ask):
    """Workers at several sites, one server or none, deployment wherever it was not just before."""

    kind = "stream"
    most_servers = 1

    @classmethod
    def answers(cls, job: Job) -> bool:
        return isinstance(job.work, Stream)

    def __init__(self, frame: Frame, job: Job, known: Known, supply: Supply, unpriced: float) -> None:
        super().__init__(frame, job, known, supply, unpriced)
        work = job.work
        assert isinstance(work, Stream)
        self.each = work.bytes_per_worker_slot / GB
        self.sources = sorted({node for slot in known.volumes for node, size in slot if size})
        self.volume = np.zeros((self.slots, max(1, len(self.sources))))
        for t, slot in enumerate(known.volumes):
            for node, size in slot:
                if size:
                    self.volume[t, self.sources.index(node)] += size / GB
        total = self.volume.sum(axis=1)
        if job.utility is not None and job.utility.of == "served":
            zero = job.utility.value(0.0)
            self.value = np.array([job.utility.value(float(gb)) - zero if gb else 0.0 for gb in total])
        else:
            self.value = np.where(total > 0, MUST_USD, 0.0)
        column = {int(s): h for h, s in enumerate(frame.site)}
        site = [frame.setup.site_of[node] for node in self.sources]
        self.move_usd = np.array(
            [supply.egress[column[s]] if s in column else np.zeros(self.hosts) for s in site]
        )
        self.move_gb = np.array([[float(n != int(h)) for h in frame.hosts] for n in self.sources])
        self.complete = job.workers_min == 1
        self.ways = self._all_ways(np.flatnonzero(total > 0).tolist())

    # ------------------------------------------------------------------ ways to serve a slot
    def _all_ways(self, busy: list[int]) -> Ways:
        near = self._candidates()
        known: dict[tuple[float, ...], tuple[Ints, Ints, Floats, Floats, list[int]]] = {}
        sets: dict[int, int] = {0: 0}
        first, parts = [0], []
        none: Ints = np.zeros(0, dtype=np.int64)
        empty = (np.zeros((0, self.hosts), dtype=np.int64), none, np.zeros(0), np.zeros(0), list[int]())
        for t in range(self.slots):
            key = tuple(self.volume[t].tolist())
            if t in busy and key not in known:
                known[key] = self._ways(self.volume[t], near, sets)
            parts.append(known[key] if t in busy else empty)
            first.append(first[-1] + len(parts[-1][1]))
        before = sum(1 << near.index(h) for h in self._before() if h in near)
        self.before = sets.setdefault(before, len(sets))
        masks = list(sets)
        deploy = np.array([[self.job.deploy_usd * (b & ~a).bit_count() for b in masks] for a in masks])
        return Ways(
            first=np.array(first, dtype=np.int64),
            workers=np.concatenate([p[0] for p in parts]),
            server=np.concatenate([p[1] for p in parts]),
            usd=np.concatenate([p[2] for p in parts]),
            gb=np.concatenate([p[3] for p in parts]),
            places=np.array([z for p in parts for z in p[4]], dtype=np.int64),
            deploy=deploy.astype(np.float64),
            worth=self.value,
        )

    def _before(self) -> list[int]:
        return [self.frame.place[node] for node in self.known.places if node in self.frame.place]

    def _candidates(self) -> list[int]:
        """Places that are considered: those it may use and has data at, was at, or that are cheapest to bring data to."""
        fine = [h for h in range(self.hosts) if self.places[-1, h]]
        if len(fine) <= MOST_PLACES:
            return fine
        self.complete = False
        home = {self.frame.place.get(node, -1) for node in self.sources} | set(self._before())
        far = self.move_usd.sum(axis=0) if len(self.sources) else np.zeros(self.hosts)
        return sorted(sorted(fine, key=lambda h: (h not in home, float(far[h]), h))[:MOST_PLACES])

    def _ways(
        self, volume: Floats, near: list[int], sets: dict[int, int]
    ) -> tuple[Ints, Ints, Floats, Floats, list[int]]:
        """Ways to serve one slot."""
        least, most = self.job.workers_min, self.job.workers_max
        room = np.array([max(1, min(most, int(np.ceil(volume.sum() / self.each - 1e-9)))) for _ in near])
        y, usd, gb, whole = divisions(
            volume, self.move_usd[:, near], self.move_gb[:, near], self.each, room, MOST_DIVISIONS
        )
        self.complete &= bool(whole)
        fine = (y.sum(axis=1) >= least) & (y.sum(axis=1) <= most)
        y, usd, gb = y[fine], usd[fine], gb[fine]
        full = np.zeros((len(y), self.hosts), dtype=np.int64)
        full[:, near] = y
        if not self.job.servers:
            none = np.full(len(y), -1, dtype=np.int64)
            return full, none, usd, gb, [self._set(row, -1, near, sets) for row in full]
        each = self.job.traffic_bytes_per_worker_slot / GB
        rows: list[tuple[int, int]] = [(w, s) for w in range(len(y)) for s in near]
        at, server = np.array(rows, dtype=np.int64).reshape(-1, 2).T
        traffic = each * (full[at] * self.supply.egress[:, server].T).sum(axis=1)
        moved = each * (full[at].sum(axis=1) - full[at, server])
        places = [self._set(full[w], s, near, sets) for w, s in rows]
        return full[at], server.copy(), usd[at] + traffic, gb[at] + moved, places

    def _set(self, workers: Ints, server: int, near: list[int], sets: dict[int, int]) -> int:
        mask = sum(1 << i for i, h in enumerate(near) if workers[h] or h == server)
        return sets.setdefault(mask, len(sets))

    # ------------------------------------------------------------------ answers
    def reply(self, market: Market) -> Answer | None:
        chosen = np.full(self.slots, -1, dtype=np.int64)
        profit = best_stream(market, self.worker, self.server, self.ways, self.before, chosen)
        if profit <= 0.0:
            return None
        found = self.empty()
        value = written(self.ways, self.before, chosen, found.workers, found.servers, found.gb, found.own)
        return found._replace(profit=profit, value=value)

    def bound(self, market: Market, answer: Answer | None) -> float:
        """Exact, where all divisions are known and keeping a place with an idle worker costs more than deploying again."""
        job = self.job
        if not self.complete or job.servers > 1:
            move = self.move_usd if self.sources else np.zeros((1, self.hosts))
            return float(
                relaxed_stream(market, self.worker, self.places, self.volume, move, self.each, self.value)
            )
        cheapest = float((market.linear @ self.worker)[self.places > 0].min(initial=np.inf))
        if job.deploy_usd <= cheapest:
            return 0.0 if answer is None else answer.profit
        ways = self.ways._replace(deploy=self.ways.deploy * (cheapest / job.deploy_usd))
        chosen = np.full(self.slots, -1, dtype=np.int64)
        return max(0.0, float(best_stream(market, self.worker, self.server, ways, self.before, chosen)))

    def flows(self, answer: Answer, at: int) -> tuple[Flow, ...]:
        sizes = [(n, size) for n, size in self.known.volumes[at] if size]
        cost = self.move_usd[[self.sources.index(n) for n, _ in sizes]]
        room = answer.workers[at] * float(round(self.each * GB))
        moved, _ = transport(cost, np.array([float(size) for _, size in sizes]), room)
        found = []
        for i, (node, size) in enumerate(sizes):
            parts = np.floor(moved[i] + 0.5).astype(np.int64)
            parts[int(np.argmax(parts))] += size - int(parts.sum())
            found += [Flow(node, int(self.frame.hosts[h]), int(n)) for h, n in enumerate(parts) if n]
        return tuple(found)
