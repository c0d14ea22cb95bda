"""Checkpoints: one file per job, replaced atomically, independent of the number of workers and the server's site."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from tradewind.train.contract import ContractError

NAME = "checkpoint.pt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """State of a job.

    iteration         iterations done
    model, optimizer  their states
    random            random state of rank 0
    about             what is trained; a checkpoint fits only jobs with the same values
    """

    iteration: int
    model: dict[str, Any]
    optimizer: dict[str, Any]
    random: torch.Tensor
    about: dict[str, str | int]


def save(folder: Path, checkpoint: Checkpoint) -> None:
    """Write a temporary file, flush it to disk, rename it: a crash leaves the old or the new checkpoint, never half."""
    folder.mkdir(parents=True, exist_ok=True)
    temporary = folder / f".{NAME}.{os.getpid()}.new"
    try:
        with temporary.open("wb") as file:
            torch.save({name: getattr(checkpoint, name) for name in Checkpoint.__slots__}, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, folder / NAME)
    finally:
        temporary.unlink(missing_ok=True)
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def load(folder: Path, about: dict[str, str | int]) -> Checkpoint | None:
    """The job's checkpoint; None before the first. ContractError if it belongs to another model or data."""
    path = folder / NAME
    if not path.exists():
        return None
    try:
        found = Checkpoint(**torch.load(path, weights_only=True))
    except Exception as problem:  # torch.load can raise anything on a foreign file
        raise ContractError(
            f"{path} is not a checkpoint of this trainer ({problem}); remove or rename it"
        ) from None
    if found.about != about:
        changed = [
            f"{k}: {found.about.get(k)} in the checkpoint, {v} now"
            for k, v in about.items()
            if found.about.get(k) != v
        ]
        raise ContractError(
            f"{path} belongs to another job ({'; '.join(changed)}). Use the same options as before, or another folder."
        )
    return found
