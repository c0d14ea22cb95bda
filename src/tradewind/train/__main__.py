"""One rank of a training job: `python -m tradewind.train --model mlp --mode ps`. Exit codes: see contract.py."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Mapping, Sequence
from typing import NoReturn

from tradewind.train.contract import FAILED, MISUSED, PEER_LOST, ContractError, Rank, read
from tradewind.train.options import TrainOptions, parse

MISSING = "PyTorch is not installed; run: make install EXTRAS=train"


def run(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """Train as arguments and environment say; return the exit code."""
    try:
        options = parse(arguments)
        rank = read(environment, options.mode)
        if importlib.util.find_spec("torch") is None:
            raise ContractError(MISSING)
        return _train(options, rank)
    except ContractError as error:
        return _fail(rank_name(environment), str(error), MISUSED)


def _train(options: TrainOptions, rank: Rank) -> int:
    from tradewind.train.stopping import StopSignal

    stop = StopSignal()  # before PyTorch is loaded, which takes a second or two
    import torch

    torch.set_num_threads(1)
    from tradewind.train import exchange, ring, server, server_async

    number = exchange.ring_numbers(rank.ring)[rank.rank] if rank.ring else rank.rank
    servers = {"ps": server, "ps-async": server_async}
    module = servers.get(options.mode)
    work = ring.work if module is None else module.serve if rank.role == "ps" else module.work
    name = f"rank {rank.rank} at {rank.site}"
    try:
        store = exchange.join(
            number=number,
            world=rank.world,
            master=rank.master,
            interface=rank.interface,
            host=rank.rank == 0,
            timeout_s=options.timeout_s,
        )
        code = work(options, rank, stop)
        exchange.leave(store, rank.world, host=rank.rank == 0)
        return code
    except RuntimeError as error:
        return _fail(name, f"lost connection to other ranks: {str(error).splitlines()[0]}", PEER_LOST)
    except OSError as error:
        return _fail(name, f"{error.filename or ''}: {error.strerror or error}", FAILED)


def rank(arguments: Sequence[str]) -> int:
    """Entry point of a rank in a forked process (worlds/forkserver.py)."""
    return run(arguments, os.environ)


def rank_name(environment: Mapping[str, str]) -> str:
    """Name of this rank in messages."""
    return f"rank {environment.get('RANK', '0')}"


def _fail(who: str, message: str, code: int) -> int:
    print(f"tradewind.train, {who}: {message}", file=sys.stderr, flush=True)
    return code


def exit_now(code: int) -> NoReturn:
    """Exit without cleanup: PyTorch's threads would wait for peers that may be gone."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    exit_now(run(sys.argv[1:], os.environ))
