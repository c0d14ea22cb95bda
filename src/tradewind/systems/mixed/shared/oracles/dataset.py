"""Data sets: chunks at sites, each processed once, worth by the delay of the last one."""

from __future__ import annotations

import numpy as np

from tradewind.model.decision import Flow
from tradewind.model.job import Dataset, Job
from tradewind.model.units import GB
from tradewind.systems.mixed.kernels.chunks import Chunks, best_chunks
from tradewind.systems.mixed.kernels.market import Answer, Market, fits, most_units, schedule_usd
from tradewind.systems.mixed.shared.frame import Frame, Known, Supply
from tradewind.systems.mixed.shared.oracles.ask import Ask


class DataSet(Ask):
    """Brings chunks to workers, or workers to chunks."""

    kind = "dataset"
    most_servers = 1

    @classmethod
    def answers(cls, job: Job) -> bool:
        return isinstance(job.work, Dataset)

    def __init__(self, frame: Frame, job: Job, known: Known, supply: Supply, unpriced: float) -> None:
        super().__init__(frame, job, known, supply, unpriced)
        work = job.work
        assert isinstance(work, Dataset)
        left = [(node, n - known.chunks.get(node, 0)) for node, n in work.chunks]
        self.parts = [node for node, n in left if n > 0]
        size = work.chunk_bytes / GB
        site = [frame.setup.site_of[node] for node in self.parts]
        away = np.array([[float(node != int(host)) for host in frame.hosts] for node in self.parts])
        column = {int(s): h for h, s in enumerate(frame.site)}
        usd = np.array([supply.egress[column[s]] if s in column else np.zeros(self.hosts) for s in site])
        rate = work.chunk_epochs_per_worker_slot_milli / (1000.0 * max(1, work.epochs))
        self.chunks = Chunks(
            left=np.array([n for _, n in left if n > 0], dtype=np.int64),
            usd=usd * size,
            gb=away * size,
            rate=rate,
            most=job.workers_max,
            server=self.server if job.servers else np.zeros_like(self.server),
            worth=self.worth(work.total / rate),
        )

    def _found(self, market: Market) -> Answer:
        """The best assignment of chunks, before workers are whole."""
        found = self.empty(len(self.parts))
        profit, value = best_chunks(market, self.worker, self.places, self.chunks, found.data)
        return found._replace(profit=profit, value=value)

    def reply(self, market: Market) -> Answer | None:
        found, job = self._found(market), self.job
        if found.profit <= 0.0:
            return None
        found.workers[:] = np.ceil(found.data.sum(axis=2) / self.chunks.rate - 1e-9)
        busy = np.flatnonzero(found.workers.any(axis=1)).tolist()
        for t in busy:  # more workers than its chunks need, where it may not have so few
            short = job.workers_min - int(found.workers[t].sum())
            if short > 0:
                found.workers[t, int(np.argmax(found.workers[t]))] += short
        found.own[:] = (found.data * self.chunks.usd.T).sum(axis=(1, 2))
        found.gb[:] = (found.data * self.chunks.gb.T).sum(axis=(1, 2))
        if job.servers:
            for t in busy:
                if not self._serve(market, found, t):
                    return None
            self._traffic(found)
        usd = schedule_usd(market, self.worker, self.server, found.workers, found.servers)
        profit = found.gain - usd - float(found.gb @ market.byte_usd)
        if profit <= 0.0 or found.workers.sum(axis=1).max() > job.workers_max:
            return None
        if not fits(market, self.worker, self.server, found.workers, found.servers, found.gb):
            return None
        return found._replace(profit=profit)

    def _serve(self, market: Market, found: Answer, t: int) -> bool:
        """Put the server where most workers are and it fits; False: nowhere."""
        for h in np.argsort(-found.workers[t], kind="stable").tolist():
            need = self.server + int(found.workers[t, h]) * self.worker
            if self.places[t, h] and most_units(market, t, h, need, 1):
                found.servers[t, h] = 1
                return True
        return False

    def _traffic(self, found: Answer) -> None:
        """Add USD and GB of parameters between workers and a server elsewhere."""
        each = self.job.traffic_bytes_per_worker_slot / GB
        for t, s in zip(*(x.tolist() for x in np.nonzero(found.servers)), strict=True):
            found.own[t] += each * float(found.workers[t] @ self.supply.egress[:, s])
            found.gb[t] += each * float(found.workers[t].sum() - found.workers[t, s])

    def bound(self, market: Market, answer: Answer | None) -> float:
        """Chunks may share workers in parts and pay no traffic; exact with one chunk per worker and slot and no server."""
        if (
            answer is not None
            and self.chunks.rate == 1.0
            and not self.job.servers
            and self.job.workers_min == 1
        ):
            return answer.profit
        return max(0.0, self._found(market).profit)

    def flows(self, answer: Answer, at: int) -> tuple[Flow, ...]:
        work = self.job.work
        assert isinstance(work, Dataset)
        return tuple(
            Flow(self.parts[q], int(self.frame.hosts[h]), int(answer.data[at, h, q]) * work.chunk_bytes)
            for h, q in zip(*(x.tolist() for x in np.nonzero(answer.data[at])), strict=True)
        )
