"""Synchronous training by ring all-reduce: DistributedDataParallel, with a hook that adds up within sites first."""

# no `from __future__ import annotations` here: DDP checks the types that its hook is annotated with
import time
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from tradewind.train import checkpoint
from tradewind.train.checkpoint import Checkpoint
from tradewind.train.contract import COMPLETE, STOPPED, Rank
from tradewind.train.exchange import Ring, Site, ring_numbers
from tradewind.train.options import Options
from tradewind.train.report import Report
from tradewind.train.stopping import Stopping
from tradewind.train.work import (
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


def _hook(ring: Ring, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
    """What DDP does with a bucket of gradients: the sum over all workers (each part is already a share of the mean)."""
    values = bucket.buffer()
    ring.sum(values)
    done: torch.futures.Future[torch.Tensor] = torch.futures.Future()
    done.set_result(values)
    return done


def ring_of(rank: Rank) -> tuple[Ring, Site]:
    """The ring over the sites' leaders, and this rank's site."""
    number = ring_numbers(rank.ring)
    first: dict[str, int] = {}
    for peer in rank.ring:
        first.setdefault(rank.sites[peer], peer)
    leader = first[rank.site]
    members = [leader, *(r for r in range(rank.world) if rank.sites[r] == rank.site and r != leader)]
    site = Site(number[rank.rank], [number[r] for r in members])
    return Ring(site, [number[r] for r in first.values()], rank.world), site


def _resumed(rank: Rank, mine: Trainee) -> int:
    """All ranks continue from the checkpoint that rank 0 finds; no shared disk is needed."""
    head = ring_numbers(rank.ring)[0]
    found: list[Checkpoint | None] = [found_checkpoint(rank, mine) if rank.rank == 0 else None]
    dist.broadcast_object_list(found, src=head)
    return mine.resume(found[0])


def work(options: Options, rank: Rank, stopping: Stopping) -> int:
    """A worker of the ring; rank 0 also writes checkpoints."""
    mine, data = trainee(options, rank), shard(options, rank)
    ring, site = ring_of(rank)
    done, last = _resumed(rank, mine), last_iteration(options, rank)
    # parameters are the same everywhere already, so DDP need not send them round
    model = DistributedDataParallel(mine.model, init_sync=False)
    model.register_comm_hook(ring, _hook)
    report, judge = Report(rank.report, rank.world), Judge(options, rank.seed)
    stopping.training = True
    asked, saved = False, done
    while done < last and not asked:
        began, before = time.perf_counter(), ring.sent_bytes + site.sent_bytes
        mine.optimizer.zero_grad()
        loss = loss_of_share(model, data, done, options.pause)
        torch.autograd.backward(loss)
        extras = torch.tensor([float(loss.detach()), float(stopping.asked)])
        ring.sum(extras)
        mine.optimizer.step()
        done += 1
        asked = bool(extras[1])
        sent = ring.sent_bytes + site.sent_bytes - before
        score = judge.accuracy(mine.model, done) if rank.rank == 0 else None
        report.tell(done, time.perf_counter() - began, sent, float(extras[0]), score)
        over = asked or done >= last
        if rank.rank == 0 and (over or done - saved >= options.checkpoint_every):
            checkpoint.save(rank.folder, mine.snapshot(done))
            saved = done
    return COMPLETE if done >= last else STOPPED
