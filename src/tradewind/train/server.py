"""Synchronous training with a parameter server: sites push gradients, the server updates, sites pull parameters."""

from __future__ import annotations

import time

import torch

from tradewind.train import checkpoint
from tradewind.train.contract import COMPLETE, STOPPED, Rank
from tradewind.train.exchange import Site, add_from, receive, send
from tradewind.train.options import Options
from tradewind.train.report import Report
from tradewind.train.stopping import Stopping
from tradewind.train.work import (
    FINISH,
    GO_ON,
    STOP,
    Flat,
    Judge,
    found_checkpoint,
    last_iteration,
    loss_of_share,
    shard,
    trainee,
)

SERVER = 0


def leaders_of(rank: Rank) -> list[int]:
    """The first worker of every site, in rank order."""
    first: dict[str, int] = {}
    for worker in range(1, rank.world):
        first.setdefault(rank.sites[worker], worker)
    return sorted(first.values())


def serve(options: Options, rank: Rank, stopping: Stopping) -> int:
    """The parameter server: holds the parameters and the optimizer, writes checkpoints."""
    mine = trainee(options, rank)
    done = mine.resume(found_checkpoint(rank, mine))
    flat, leaders, judge = Flat(mine.model), leaders_of(rank), Judge(options, rank.seed)
    report, last = Report(rank.report, rank.world - 1), last_iteration(options, rank)
    start = torch.tensor([float(done)], dtype=torch.float64)
    status = FINISH if done >= last else GO_ON
    flat.values[-2:] = torch.tensor([0.0, status])
    send(start, leaders)
    send(flat.values, leaders)
    stopping.training = True
    saved = done
    while status == GO_ON:
        began = time.perf_counter()
        flat.gradient.zero_()
        add_from(leaders, flat.gradient)
        mine.optimizer.step()
        done += 1
        loss, asked = flat.gradient[-2:].tolist()
        status = FINISH if done >= last else STOP if asked or stopping.asked else GO_ON
        flat.values[-2:] = torch.tensor([loss, status])
        sent = send(flat.values, leaders)
        report.tell(done, time.perf_counter() - began, sent, loss, judge.accuracy(mine.model, done))
        if status != GO_ON or done - saved >= options.checkpoint_every:
            checkpoint.save(rank.folder, mine.snapshot(done))
            saved = done
    return COMPLETE if status == FINISH else STOPPED


def work(options: Options, rank: Rank, stopping: Stopping) -> int:
    """A worker: gradient of its share, summed at its site's leader, pushed to the server; then new parameters."""
    mine, data = trainee(options, rank), shard(options, rank)
    flat = Flat(mine.model)
    members = [r for r in range(1, rank.world) if rank.sites[r] == rank.site]
    site = Site(rank.rank, members)
    report = Report(rank.report, rank.world - 1)
    start = torch.zeros(1, dtype=torch.float64)
    for values in (start, flat.values):
        if site.leads:
            receive(values, SERVER)
        site.spread(values)
    done, status = int(start.item()), float(flat.values[-1])
    stopping.training = True
    while status == GO_ON:
        began, before = time.perf_counter(), site.sent_bytes
        flat.gradient.zero_()
        loss = loss_of_share(mine.model, data, done, options.pause)
        torch.autograd.backward(loss)
        flat.gradient[-2:] = torch.tensor([float(loss.detach()), STOP if stopping.asked else GO_ON])
        site.gather(flat.gradient)
        sent = 0
        if site.leads:
            sent = send(flat.gradient, [SERVER])
            receive(flat.values, SERVER)
        site.spread(flat.values)
        done += 1
        whole, status = flat.values[-2:].tolist()
        sent += site.sent_bytes - before
        report.tell(done, time.perf_counter() - began, sent, whole)
    return COMPLETE if status == FINISH else STOPPED
