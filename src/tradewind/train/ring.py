"""Synchronous training by ring all-reduce: all workers hold the model, the sites' leaders form the ring.

Mode `ring` adds up all gradients as one vector. Mode `ddp` hands the same ring to PyTorch's DistributedDataParallel, which
sends buckets of gradients while others are still computed; it loads PyTorch's compiler, so a rank starts two seconds later.
"""

# no `from __future__ import annotations` here: DDP checks the types that its hook is annotated with
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
from tradewind.train.options import Options
from tradewind.train.report import Report
from tradewind.train.stopping import Stopping
from tradewind.train.work import (
    GO_ON,
    STOP,
    Flat,
    Judge,
    Trainee,
    found_checkpoint,
    last_iteration,
    loss_of_share,
    shard,
    trainee,
)

if TYPE_CHECKING:  # the public name, where its type is written down
    from torch._C._distributed_c10d import GradBucket
else:
    from torch.distributed import GradBucket


def ring_of(rank: Rank) -> Ring:
    """The ring over the sites' leaders, seen from this rank."""
    number = ring_numbers(rank.ring)
    first: dict[str, int] = {}
    for peer in rank.ring:
        first.setdefault(rank.sites[peer], peer)
    leader = first[rank.site]
    members = [leader, *(r for r in range(rank.world) if rank.sites[r] == rank.site and r != leader)]
    site = Site(number[rank.rank], [number[r] for r in members])
    return Ring(site, [number[r] for r in first.values()], rank.world)


class Reducer(Protocol):
    """How gradients of all workers are added up."""

    @property
    def model(self) -> nn.Module:
        """What computes the loss."""

    def sum(self, loss: Tensor, asked: bool) -> tuple[float, bool]:
        """Gradients of a worker's part of the loss become those of the whole; the whole loss, and whether to stop."""


class Whole:
    """All gradients as one vector, with loss and stop behind them: one all-reduce per iteration."""

    def __init__(self, mine: Trainee, ring: Ring) -> None:
        self.model: nn.Module = mine.model
        self._ring, self._flat = ring, Flat(mine.model)

    def sum(self, loss: Tensor, asked: bool) -> tuple[float, bool]:
        values = self._flat.gradient
        values.zero_()
        torch.autograd.backward(loss)
        values[-2:] = torch.tensor([float(loss.detach()), STOP if asked else GO_ON])
        self._ring.sum(values)
        whole, stop = values[-2:].tolist()
        return whole, stop != GO_ON


class Buckets:
    """DistributedDataParallel with a hook."""

    def __init__(self, mine: Trainee, ring: Ring) -> None:
        # parameters are the same everywhere already, so DDP need not send them round
        wrapped = DistributedDataParallel(mine.model, init_sync=False)
        wrapped.register_comm_hook(ring, _hook)
        self.model: nn.Module = wrapped
        self._mine, self._ring = mine, ring

    def sum(self, loss: Tensor, asked: bool) -> tuple[float, bool]:
        self._mine.optimizer.clear()
        torch.autograd.backward(loss)
        extras = torch.tensor([float(loss.detach()), STOP if asked else GO_ON])
        self._ring.sum(extras)
        return float(extras[0]), bool(extras[1] != GO_ON)


def _hook(ring: Ring, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
    """What DDP does with a bucket of gradients: the sum over all workers (each part is already a share of the mean)."""
    values = bucket.buffer()
    ring.sum(values)
    done: torch.futures.Future[torch.Tensor] = torch.futures.Future()
    done.set_result(values)
    return done


def _resumed(rank: Rank, mine: Trainee) -> int:
    """All ranks continue from the checkpoint that rank 0 finds; no shared disk is needed."""
    head = ring_numbers(rank.ring)[0]
    found: list[Checkpoint | None] = [found_checkpoint(rank, mine) if rank.rank == 0 else None]
    dist.broadcast_object_list(found, src=head)
    return mine.resume(found[0])


def work(options: Options, rank: Rank, stopping: Stopping) -> int:
    """A worker of the ring; rank 0 also writes checkpoints."""
    mine, data, ring = trainee(options, rank), shard(options, rank), ring_of(rank)
    done, last = _resumed(rank, mine), last_iteration(options, rank)
    reducer: Reducer = Buckets(mine, ring) if options.mode == "ddp" else Whole(mine, ring)
    report, judge = Report(rank.report, rank.world), Judge(options, rank.seed)
    stopping.training = True
    stop, saved = False, done
    while done < last and not stop:
        began, before = time.perf_counter(), ring.sent_bytes
        part = loss_of_share(reducer.model, data, done, options.pause)
        loss, stop = reducer.sum(part, stopping.asked)
        mine.optimizer.step()
        done += 1
        score = judge.accuracy(mine.model, done) if rank.rank == 0 else None
        report.tell(done, time.perf_counter() - began, ring.sent_bytes - before, loss, score)
        if rank.rank == 0 and (stop or done >= last or done - saved >= options.checkpoint_every):
            checkpoint.save(rank.folder, mine.snapshot(done))
            saved = done
    return COMPLETE if done >= last else STOPPED
