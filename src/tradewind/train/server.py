"""Synchronous training with a parameter server: sites push gradients, the server updates, sites pull parameters."""

from __future__ import annotations

import time

import torch

from tradewind.train import checkpoint
from tradewind.train.contract import COMPLETE, STOPPED, Rank
from tradewind.train.exchange import Site, add_from, receive, send
from tradewind.train.options import TrainOptions
from tradewind.train.report import ReportWriter
from tradewind.train.stopping import StopSignal
from tradewind.train.work import (
    CONTINUE,
    FINISH,
    STOP,
    Evaluator,
    Flat,
    last_iteration,
    load_checkpoint,
    new_training,
    partial_loss,
    shard,
)

SERVER = 0


def leaders_of(rank: Rank) -> list[int]:
    """First worker of every site, in rank order."""
    first: dict[str, int] = {}
    for worker in range(1, rank.world):
        first.setdefault(rank.sites[worker], worker)
    return sorted(first.values())


def serve(options: TrainOptions, rank: Rank, stop_signal: StopSignal) -> int:
    """Run the parameter server: hold parameters and optimizer, write checkpoints."""
    training = new_training(options, rank)
    done = training.resume(load_checkpoint(rank, training))
    flat, leaders, evaluator = Flat(training.model), leaders_of(rank), Evaluator(options, rank.seed)
    report, last = ReportWriter(rank.report, rank.world - 1), last_iteration(options, rank)
    start = torch.tensor([float(done)], dtype=torch.float64)
    status = FINISH if done >= last else CONTINUE
    flat.values[-2:] = torch.tensor([0.0, status])
    send(start, leaders)
    send(flat.values, leaders)
    stop_signal.training = True
    saved = done
    while status == CONTINUE:
        began = time.perf_counter()
        flat.gradient.zero_()
        add_from(leaders, flat.gradient)
        training.optimizer.step()
        done += 1
        loss, asked = flat.gradient[-2:].tolist()
        status = FINISH if done >= last else STOP if asked or stop_signal.received else CONTINUE
        flat.values[-2:] = torch.tensor([loss, status])
        sent = send(flat.values, leaders)
        report.write(done, time.perf_counter() - began, sent, loss, evaluator.accuracy(training.model, done))
        if status != CONTINUE or done - saved >= options.checkpoint_every:
            checkpoint.save(rank.folder, training.snapshot(done))
            saved = done
    return COMPLETE if status == FINISH else STOPPED


def work(options: TrainOptions, rank: Rank, stop_signal: StopSignal) -> int:
    """Run a worker: compute its gradient, sum it at the site's leader, push it to the server, pull new parameters."""
    training, data = new_training(options, rank), shard(options, rank)
    flat = Flat(training.model)
    members = [r for r in range(1, rank.world) if rank.sites[r] == rank.site]
    site = Site(rank.rank, members)
    report = ReportWriter(rank.report, rank.world - 1)
    start = torch.zeros(1, dtype=torch.float64)
    for values in (start, flat.values):
        if site.leads:
            receive(values, SERVER)
        site.broadcast(values)
    done, status = int(start.item()), float(flat.values[-1])
    stop_signal.training = True
    while status == CONTINUE:
        began, before = time.perf_counter(), site.sent_bytes
        flat.gradient.zero_()
        loss = partial_loss(training.model, data, done, options.pause)
        torch.autograd.backward(loss)
        flat.gradient[-2:] = torch.tensor([float(loss.detach()), STOP if stop_signal.received else CONTINUE])
        site.reduce(flat.gradient)
        sent = 0
        if site.leads:
            sent = send(flat.gradient, [SERVER])
            receive(flat.values, SERVER)
        site.broadcast(flat.values)
        done += 1
        total_loss, status = flat.values[-2:].tolist()
        sent += site.sent_bytes - before
        report.write(done, time.perf_counter() - began, sent, total_loss)
    return COMPLETE if status == FINISH else STOPPED
