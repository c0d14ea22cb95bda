"""Synchronous training with parameter servers: sites push gradients, the servers update, sites pull parameters.

Each server holds a block of the parameters, the same share of all of them, and the momentum of that block. Server 0 also
reads and writes checkpoints, for which it collects the other servers' blocks.
"""

from __future__ import annotations

import time

import torch
from torch import Tensor

from tradewind.train import checkpoint
from tradewind.train.contract import COMPLETE, STOPPED, Rank
from tradewind.train.exchange import Site, add_from, receive_all, send_all
from tradewind.train.options import TrainOptions
from tradewind.train.report import ReportWriter
from tradewind.train.stopping import StopSignal
from tradewind.train.work import (
    CONTINUE,
    EXTRAS,
    FINISH,
    STOP,
    WISH,
    Evaluator,
    Training,
    last_iteration,
    load_checkpoint,
    new_training,
    partial_loss,
    samples_of,
)


def leaders_of(rank: Rank) -> list[int]:
    """First worker of every site, in rank order."""
    first: dict[str, int] = {}
    for worker in range(rank.servers, rank.world):
        first.setdefault(rank.sites[worker], worker)
    return sorted(first.values())


class ServerBlock:
    """The block of one of the servers, and how servers start from a checkpoint and write one together."""

    def __init__(self, options: TrainOptions, rank: Rank) -> None:
        self._rank = rank
        self.training = training = new_training(options, rank)
        self.flat = training.flat
        self.mine = self.flat.block(rank.rank, rank.servers)
        start = torch.zeros(1, dtype=torch.float64)
        if rank.rank == 0:
            start[0] = training.resume(load_checkpoint(rank, training))
            send_all([message for i in self._others for message in ((start, i), *self._state(i))])
        else:
            receive_all([(start, 0), *((values, 0) for values, _ in self._state(rank.rank))])
        self.done = self.saved = int(start.item())

    @property
    def _others(self) -> range:
        return range(1, self._rank.servers)

    def _state(self, server: int) -> list[tuple[Tensor, int]]:
        """Parameters and momentum of a server's block, as messages for it."""
        block = self.flat.block(server, self._rank.servers)
        return [(self.flat.values[block], server), (self.training.optimizer.velocity[block], server)]

    def begin(self, leaders: list[int], status: float) -> None:
        """Send the leaders parameters, and where training continues."""
        start = torch.tensor([float(self.done)], dtype=torch.float64)
        self.flat.values[-EXTRAS:] = torch.tensor([0.0, status, 0.0])
        send_all([(start, to) for to in leaders if self._rank.rank == 0])
        self.send(leaders)

    def send(self, leaders: list[int]) -> int:
        """Send the block and the extras to the leaders; return the bytes sent."""
        values = self.flat.values
        return send_all([(part, to) for to in leaders for part in (values[self.mine], values[-EXTRAS:])])

    def save(self) -> None:
        """Write a checkpoint, with the blocks of all servers."""
        if self._rank.rank:
            send_all([(values, 0) for values, _ in self._state(self._rank.rank)])
        else:
            receive_all([message for i in self._others for message in self._state(i)])
            checkpoint.save(self._rank.folder, self.training.snapshot(self.done))
        self.saved = self.done


def serve(options: TrainOptions, rank: Rank, stop_signal: StopSignal) -> int:
    """Run a parameter server."""
    block, leaders = ServerBlock(options, rank), leaders_of(rank)
    flat = block.flat
    report, last = ReportWriter(rank.report, rank.workers), last_iteration(options, rank)
    status = FINISH if block.done >= last else CONTINUE
    block.begin(leaders, status)
    stop_signal.training = True
    while status == CONTINUE:
        began = time.perf_counter()
        flat.gradient.zero_()
        add_from(leaders, flat.gradient[block.mine])
        add_from(leaders, flat.gradient[-EXTRAS:])
        loss, asked, samples = flat.gradient[-EXTRAS:].tolist()
        if samples:  # else all sites wait for data
            block.training.optimizer.step(block.mine)
            block.done += 1
        status = FINISH if block.done >= last else STOP if asked else CONTINUE
        told = WISH if status == CONTINUE and stop_signal.received else status
        flat.values[-EXTRAS:] = torch.tensor([loss, told, samples])
        sent = block.send(leaders)
        if samples:
            report.write(block.done, time.perf_counter() - began, sent, loss)
        if status != CONTINUE or block.done - block.saved >= options.checkpoint_every:
            block.save()
    return COMPLETE if status == FINISH else STOPPED


class Puller:
    """A site's connection to the servers: pushes its gradient, pulls parameters, and says how to go on."""

    def __init__(self, rank: Rank, training: Training, site: Site) -> None:
        self._flat, self._site = training.flat, site
        self._blocks = [self._flat.block(server, rank.servers) for server in range(rank.servers)]
        self._extras = torch.zeros(rank.servers, EXTRAS)
        self.wish = False  # a server was asked to stop

    def begin(self) -> tuple[int, float]:
        """Get the first parameters; return the iterations done so far and the status."""
        start = torch.zeros(1, dtype=torch.float64)
        if self._site.leads:
            receive_all([(start, 0)])
        self._site.broadcast(start)
        return int(start.item()), self.pull()[1]

    def push(self) -> int:
        """Send each server its block of the gradient, and the extras; return the bytes sent."""
        gradient = self._flat.gradient
        return send_all(
            [
                (part, server)
                for server, block in enumerate(self._blocks)
                for part in (gradient[block], gradient[-EXTRAS:])
            ]
        )

    def pull(self) -> tuple[float, float, int]:
        """Get new parameters to all workers of the site; return the loss, the status and the samples of all workers."""
        values = self._flat.values
        if self._site.leads:
            receive_all(
                [
                    (part, server)
                    for server, block in enumerate(self._blocks)
                    for part in (values[block], self._extras[server])
                ]
            )
            said = self._extras[:, 1].tolist()
            values[-EXTRAS:] = self._extras[0]
            values[-EXTRAS + 1] = WISH if WISH in said else said[0]
        self._site.broadcast(values)
        loss, status, samples = values[-EXTRAS:].tolist()
        self.wish = self.wish or status == WISH
        return loss, CONTINUE if status == WISH else status, int(samples)


def site_of(rank: Rank) -> Site:
    """The workers of this rank's site."""
    return Site(rank.rank, [r for r in range(rank.servers, rank.world) if rank.sites[r] == rank.site])


def work(options: TrainOptions, rank: Rank, stop_signal: StopSignal) -> int:
    """Run a worker: compute its gradient, sum it at the site's leader, push it to the servers, pull new parameters."""
    training, data, site = new_training(options, rank), samples_of(options, rank, stop_signal), site_of(rank)
    flat, servers = training.flat, Puller(rank, training, site)
    report = ReportWriter(rank.report, rank.workers)
    evaluator = Evaluator(options, rank, leads=site.leads)
    done, status = servers.begin()
    stop_signal.training = True
    while status == CONTINUE:
        began, before = time.perf_counter(), site.sent_bytes
        flat.gradient.zero_()
        loss, count = partial_loss(training.model, data, done, options.pause)
        torch.autograd.backward(loss)
        asked = STOP if stop_signal.received or servers.wish else CONTINUE
        flat.gradient[-EXTRAS:] = torch.tensor([float(loss.detach()), asked, float(count)])
        computed = time.perf_counter()
        site.reduce(flat.gradient)
        sent = servers.push() if site.leads else 0
        total_loss, status, samples = servers.pull()
        processed = data.settle(samples)
        if not samples and not processed:
            continue
        done += samples > 0
        sent += site.sent_bytes - before
        ended = time.perf_counter()
        report.write(
            done, ended - began, sent, total_loss, communication_seconds=ended - computed,
            processed=processed, samples=count, **evaluator.measure(training.model, done),
        )  # fmt: skip
    return COMPLETE if status == FINISH else STOPPED
