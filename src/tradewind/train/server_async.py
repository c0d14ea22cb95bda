"""Asynchronous training with parameter servers: a site's gradient is applied when it arrives.

No site waits for another, unless it is `--staleness` iterations ahead of the slowest one. Every `--checkpoint-every`
iterations, and at the end, servers let all sites arrive at the same iteration, so that a checkpoint has the updates of
whole iterations, whatever the number of servers.
"""

from __future__ import annotations

import threading
import time

import torch
from torch import Tensor

from tradewind.train.contract import COMPLETE, STOPPED, Rank
from tradewind.train.exchange import Site, receive_all, send_all
from tradewind.train.options import TrainOptions
from tradewind.train.report import ReportWriter
from tradewind.train.server import ServerBlock, leaders_of, site_of
from tradewind.train.stopping import StopSignal
from tradewind.train.work import (
    EXTRAS,
    Evaluator,
    Training,
    last_iteration,
    new_training,
    partial_loss,
    samples_of,
)

HEAD = 3
"""Numbers that go with a block: the loss of the site's part, the last iteration as the sender knows it, a wish to stop."""


class Turns:
    """The iterations of all sites at one server; a thread per site takes turns."""

    def __init__(
        self, options: TrainOptions, rank: Rank, block: ServerBlock, stop_signal: StopSignal
    ) -> None:
        self._options, self._rank, self._block, self._stop_signal = options, rank, block, stop_signal
        self._leaders = leaders_of(rank)
        self._at = dict.fromkeys(self._leaders, block.done)
        self._last = last_iteration(options, rank)
        self._losses: dict[int, float] = {}
        self._changed = threading.Condition()
        self._report = ReportWriter(rank.report, rank.workers)
        self._began = time.perf_counter()
        self._failure: BaseException | None = None

    def run(self) -> int:
        """Serve all sites until their last iteration; return it."""
        threads = [threading.Thread(target=self._guarded, args=(leader,)) for leader in self._leaders]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self._failure is not None:
            raise self._failure
        return self._block.done

    def _guarded(self, leader: int) -> None:
        try:
            self._serve(leader)
        except BaseException as error:
            with self._changed:
                self._failure = self._failure or error
                self._changed.notify_all()

    def _serve(self, leader: int) -> None:
        block, flat = self._block, self._block.flat
        gradient, head = torch.zeros_like(flat.values[block.mine]), torch.zeros(HEAD, dtype=torch.float64)
        self._reply(leader)
        while self._at[leader] < self._last:
            receive_all([(gradient, leader), (head, leader)])
            loss, last, wish = head.tolist()
            with self._changed:
                self._take(leader, gradient, loss, last, bool(wish))
                self._changed.wait_for(lambda: self._may_go_on(leader))
                if self._failure is not None:
                    return
            self._reply(leader)

    def _take(self, leader: int, gradient: Tensor, loss: float, last: float, wish: bool) -> None:
        """Apply a site's gradient."""
        block = self._block
        self._last = min(self._last, int(last))
        block.flat.gradient[block.mine] = gradient
        block.training.optimizer.step(block.mine)
        self._at[leader] += 1
        self._losses[self._at[leader]] = self._losses.get(self._at[leader], 0.0) + loss
        if self._rank.rank == 0 and (wish or self._stop_signal.received):
            # a site may have sent one more iteration already; the one after that is known to all as the last
            self._last = min(self._last, max(self._at.values()) + 2)
        while block.done < min(self._at.values()):
            block.done += 1
            now = time.perf_counter()
            sent = len(self._leaders) * gradient.numel() * gradient.element_size()
            self._report.write(block.done, now - self._began, sent, self._losses.pop(block.done))
            self._began = now
        if block.done > block.saved and self._is_met(block.done) and max(self._at.values()) == block.done:
            block.save()
        self._changed.notify_all()

    def _is_met(self, iteration: int) -> bool:
        """Whether all sites wait for each other after this iteration."""
        return iteration >= self._last or iteration % self._options.checkpoint_every == 0

    def _may_go_on(self, leader: int) -> bool:
        mine, slowest = self._at[leader], min(self._at.values())
        ahead = 0 if self._is_met(mine) else self._options.staleness
        return mine - slowest <= ahead or self._failure is not None

    def _reply(self, leader: int) -> None:
        """Send a site the parameters as they are now."""
        with self._changed:
            values = self._block.flat.values[self._block.mine].clone()
            head = torch.tensor([float(self._at[leader]), float(self._last), 0.0], dtype=torch.float64)
        send_all([(values, leader), (head, leader)])


def serve(options: TrainOptions, rank: Rank, stop_signal: StopSignal) -> int:
    """Run a parameter server."""
    block = ServerBlock(options, rank)
    stop_signal.training = True
    done = Turns(options, rank, block, stop_signal).run()
    return COMPLETE if done >= last_iteration(options, rank) else STOPPED


class Exchange:
    """A site's exchange with all servers; every worker of the site takes part."""

    def __init__(self, rank: Rank, training: Training, site: Site) -> None:
        self._flat, self._site, self._servers = training.flat, site, range(rank.servers)
        self._blocks = [self._flat.block(server, rank.servers) for server in self._servers]
        self._heads = torch.zeros(rank.servers, HEAD, dtype=torch.float64)

    def pull(self) -> tuple[int, int]:
        """Get parameters to all workers of the site; return the iterations done and the last one."""
        values, heads = self._flat.values, self._heads
        if self._site.leads:
            receive_all([(part, i) for i in self._servers for part in (values[self._blocks[i]], heads[i])])
        self._site.broadcast(values)
        self._site.broadcast(heads)
        return int(heads[0, 0]), int(heads[0, 1])

    def push(self, last: int) -> int:
        """Send the servers the site's gradient, with the extras that its workers added up; return the bytes sent."""
        loss, wish, _ = self._flat.gradient[-EXTRAS:].tolist()
        head = torch.tensor([loss, float(last), wish], dtype=torch.float64)
        gradient = self._flat.gradient
        return send_all([(part, i) for i in self._servers for part in (gradient[self._blocks[i]], head)])


def work(options: TrainOptions, rank: Rank, stop_signal: StopSignal) -> int:
    """Run a worker; the loss that it reports is that of its own part of the batch."""
    training, data, site = new_training(options, rank), samples_of(options, rank, stop_signal), site_of(rank)
    flat, servers = training.flat, Exchange(rank, training, site)
    report = ReportWriter(rank.report, rank.workers)
    evaluator = Evaluator(options, rank, leads=site.leads)
    done, last = servers.pull()
    stop_signal.training = True
    while done < last:
        began, before = time.perf_counter(), site.sent_bytes
        flat.gradient.zero_()
        loss, count = partial_loss(training.model, data, done, options.pause)
        torch.autograd.backward(loss)
        flat.gradient[-EXTRAS:] = torch.tensor([float(loss.detach()), float(stop_signal.received), 0.0])
        computed = time.perf_counter()
        site.reduce(flat.gradient)
        sent = servers.push(last) if site.leads else 0
        done, last = servers.pull()
        sent += site.sent_bytes - before
        ended = time.perf_counter()
        report.write(
            done, ended - began, sent, float(loss.detach()), communication_seconds=ended - computed,
            processed=(), samples=count, **evaluator.measure(training.model, done),
        )  # fmt: skip
    return COMPLETE if done >= last_iteration(options, rank) else STOPPED
