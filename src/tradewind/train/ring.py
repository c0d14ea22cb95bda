"""Synchronous training by ring all-reduce: all workers hold the model, the sites' leaders form the ring.

Mode `ring` sums all gradients as one vector. Mode `ddp` uses the same ring in PyTorch's DistributedDataParallel, which
sends buckets of gradients while it computes others; it loads PyTorch's compiler, so a rank starts two seconds later.
"""

# no `from __future__ import annotations` here: DDP checks the annotations of its hook at run time
import time
from typing import TYPE_CHECKING, Protocol

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from tradewind.train import checkpoint
from tradewind.train.checkpoint import Checkpoint
from tradewind.train.contract import COMPLETE, STOPPED, Rank
from tradewind.train.exchange import Ring, Site, ring_numbers
from tradewind.train.options import TrainOptions
from tradewind.train.report import ReportWriter
from tradewind.train.stopping import StopSignal
from tradewind.train.work import (
    CONTINUE,
    EXTRAS,
    STOP,
    Evaluator,
    Training,
    last_iteration,
    load_checkpoint,
    new_training,
    partial_loss,
    samples_of,
)

if TYPE_CHECKING:  # where the type of the public name is declared
    from torch._C._distributed_c10d import GradBucket
else:
    from torch.distributed import GradBucket


def ring_of(rank: Rank) -> Ring:
    """The ring over the leaders of sites, as seen by this rank."""
    number = ring_numbers(rank.ring)
    first: dict[str, int] = {}
    for peer in rank.ring:
        first.setdefault(rank.sites[peer], peer)
    leader = first[rank.site]
    members = [leader, *(r for r in range(rank.world) if rank.sites[r] == rank.site and r != leader)]
    site = Site(number[rank.rank], [number[r] for r in members])
    return Ring(site, [number[r] for r in first.values()], rank.world)


class Reducer(Protocol):
    """Sums the gradients of all workers."""

    @property
    def model(self) -> nn.Module:
        """The model that computes the loss."""

    def sum(self, loss: Tensor, stop: bool, count: int) -> tuple[float, bool, int]:
        """Compute and sum gradients; return the total loss, whether any worker wants to stop, and all workers' samples."""


class FlatReducer:
    """Sums all gradients, the loss and the stop flag as one vector: one all-reduce per iteration."""

    def __init__(self, training: Training, ring: Ring) -> None:
        self.model: nn.Module = training.model
        self._ring, self._flat = ring, training.flat

    def sum(self, loss: Tensor, stop: bool, count: int) -> tuple[float, bool, int]:
        values = self._flat.gradient
        values.zero_()
        torch.autograd.backward(loss)
        values[-EXTRAS:] = torch.tensor([float(loss.detach()), STOP if stop else CONTINUE, float(count)])
        self._ring.sum(values)
        total, status, samples = values[-EXTRAS:].tolist()
        return total, status != CONTINUE, int(samples)


class DdpReducer:
    """Sums gradients in buckets, by DistributedDataParallel with a hook."""

    def __init__(self, training: Training, ring: Ring) -> None:
        # parameters are the same at all ranks, so DDP need not broadcast them
        wrapped = DistributedDataParallel(training.model, init_sync=False)
        wrapped.register_comm_hook(ring, _hook)
        self.model: nn.Module = wrapped
        self._training, self._ring = training, ring

    def sum(self, loss: Tensor, stop: bool, count: int) -> tuple[float, bool, int]:
        self._training.flat.gradient.zero_()
        torch.autograd.backward(loss)
        extras = torch.tensor([float(loss.detach()), STOP if stop else CONTINUE, float(count)])
        self._ring.sum(extras)
        return float(extras[0]), bool(extras[1] != CONTINUE), int(extras[2])


def _hook(ring: Ring, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
    """DDP hook: sum a bucket of gradients over all workers, without averaging (losses are already divided)."""
    values = bucket.buffer()
    ring.sum(values)
    done: torch.futures.Future[torch.Tensor] = torch.futures.Future()
    done.set_result(values)
    return done


def _resume(rank: Rank, training: Training) -> int:
    """Resume all ranks from rank 0's checkpoint; return the iterations done. No shared disk is needed."""
    head = ring_numbers(rank.ring)[0]
    found: list[Checkpoint | None] = [load_checkpoint(rank, training) if rank.rank == 0 else None]
    dist.broadcast_object_list(found, src=head)
    return training.resume(found[0])


def work(options: TrainOptions, rank: Rank, stop_signal: StopSignal) -> int:
    """Run a worker of the ring; rank 0 also writes checkpoints."""
    training, data, ring = new_training(options, rank), samples_of(options, rank, stop_signal), ring_of(rank)
    done, last = _resume(rank, training), last_iteration(options, rank)
    reducer: Reducer = DdpReducer(training, ring) if options.mode == "ddp" else FlatReducer(training, ring)
    report, evaluator = ReportWriter(rank.report, rank.world), Evaluator(options, rank, leads=ring.leads)
    stop_signal.training = True
    stop, saved = False, done
    while done < last and not stop:
        began, before = time.perf_counter(), ring.sent_bytes
        part, count = partial_loss(reducer.model, data, done, options.pause)
        loss, stop, samples = reducer.sum(part, stop_signal.received, count)
        processed = data.settle(samples)
        if samples:  # else all workers wait for data
            training.optimizer.step()
            done += 1
        ended, waited_s = time.perf_counter(), ring.take_seconds()
        if samples or processed:
            report.write(
                done, ended - began, ring.sent_bytes - before, loss, communication_seconds=waited_s,
                processed=processed, samples=count, **evaluator.measure(training.model, done),
            )  # fmt: skip
        if rank.rank == 0 and (stop or done >= last or done - saved >= options.checkpoint_every):
            checkpoint.save(rank.folder, training.snapshot(done))
            saved = done
    return COMPLETE if done >= last else STOPPED
