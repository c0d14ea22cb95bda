"""One rank of a training job: `python -m tradewind.train --model mlp --mode ps`. Exit codes: see contract.py."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Mapping, Sequence
from typing import NoReturn

from tradewind.train.contract import FAILED, MISUSED, PEER_LOST, ContractError, Rank, read
from tradewind.train.options import Options, parse

MISSING = "tradewind.train needs PyTorch, which is not installed here: make install EXTRAS=train"


def run(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """Trains as the arguments and the environment say; returns the exit code."""
    try:
        options = parse(arguments)
        rank = read(environment, options.mode)
        if importlib.util.find_spec("torch") is None:
            raise ContractError(MISSING)
        return _train(options, rank)
    except ContractError as error:
        return _say(rank_name(environment), str(error), MISUSED)


def _train(options: Options, rank: Rank) -> int:
    from tradewind.train.stopping import Stopping

    stopping = Stopping()  # before PyTorch is loaded: that takes a second or two
    import torch

    torch.set_num_threads(1)
    from tradewind.train import exchange, ring, server

    number = exchange.ring_numbers(rank.ring)[rank.rank] if rank.ring else rank.rank
    work = ring.work if options.mode != "ps" else server.serve if rank.role == "ps" else server.work
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
        code = work(options, rank, stopping)
        exchange.part(store, rank.world, host=rank.rank == 0)
        return code
    except RuntimeError as error:
        return _say(name, f"lost the other ranks: {str(error).splitlines()[0]}", PEER_LOST)
    except OSError as error:
        return _say(name, f"{error.filename or ''}: {error.strerror or error}", FAILED)


def rank(arguments: Sequence[str]) -> int:
    """A rank in a process that was forked for it (see worlds/forkserver.py)."""
    return run(arguments, os.environ)


def rank_name(environment: Mapping[str, str]) -> str:
    return f"rank {environment.get('RANK', '0')}"


def _say(who: str, what: str, code: int) -> int:
    print(f"tradewind.train, {who}: {what}", file=sys.stderr, flush=True)
    return code


def leave(code: int) -> NoReturn:
    """End at once: PyTorch's threads would wait for peers that may be gone."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    leave(run(sys.argv[1:], os.environ))
