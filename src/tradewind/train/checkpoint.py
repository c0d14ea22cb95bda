"""Checkpoints: one file per job, replaced as a whole, for any number of workers and any site of the server."""

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
    """iteration: iterations done. model, optimizer: their state. random: rank 0's random state. about: what is trained."""

    iteration: int
    model: dict[str, Any]
    optimizer: dict[str, Any]
    random: torch.Tensor
    about: dict[str, str | int]


def save(folder: Path, checkpoint: Checkpoint) -> None:
    """Write beside, flush to disk, rename: a reader or a crash finds the old one or the new one, never half."""
    folder.mkdir(parents=True, exist_ok=True)
    beside = folder / f".{NAME}.{os.getpid()}.new"
    try:
        with beside.open("wb") as file:
            torch.save({name: getattr(checkpoint, name) for name in Checkpoint.__slots__}, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, folder / NAME)
    finally:
        beside.unlink(missing_ok=True)
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def load(folder: Path, about: dict[str, str | int]) -> Checkpoint | None:
    """The job's checkpoint, None before the first; refused if it belongs to another model or data."""
    path = folder / NAME
    if not path.exists():
        return None
    try:
        found = Checkpoint(**torch.load(path, weights_only=True))
    except Exception as problem:  # a foreign file can fail anywhere in torch.load
        raise ContractError(
            f"{path} is no checkpoint of this trainer ({problem}); remove or rename it"
        ) from None
    if found.about != about:
        changed = [
            f"{k}: {found.about.get(k)} there, {v} now" for k, v in about.items() if found.about.get(k) != v
        ]
        raise ContractError(
            f"{path} is of another job ({'; '.join(changed)}). Use the same options as before, or another folder."
        )
    return found
