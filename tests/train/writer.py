"""A child process that writes checkpoints one after another until it is killed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from tradewind.train.checkpoint import Checkpoint, save


def write_for_ever(argument: dict[str, Any]) -> int:
    torch.set_num_threads(1)
    folder, number = Path(argument["folder"]), 0
    while True:
        number += 1
        values = torch.full((50_000,), float(number))
        save(
            folder,
            Checkpoint(
                iteration=number,
                model={"w": values},
                optimizer={"m": values.clone()},
                random=torch.get_rng_state(),
                about={"seed": 1},
            ),
        )
