"""Data that Tradewind brings to this rank's site: shards that appear while the job runs (docs/jobs.md, "Data").

The workers of a site divide its shards among themselves by number. A worker trains on what is there, in the order of the
numbers, and says which shards it has finished; more appear in the manifest while it runs.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tradewind.train.contract import ContractError, Rank
from tradewind.train.data import SIDE, normalised

IDLE_S, LOOK_S = 0.3, 0.02
"""Where no worker has data, each looks for new data this long, this often, before the next exchange."""
RECORD_BYTES = 1 + SIDE * SIDE
"""A record: a byte for the class, then the pixels of a picture."""


class SiteData:
    """This worker's share of the data at its site. batch: samples of an iteration over all workers."""

    def __init__(self, rank: Rank, batch: int, is_stopped: Callable[[], bool]) -> None:
        if rank.data is None:
            raise ContractError("--data site needs TRADEWIND_DATA_DIR, which jobs with `data` have")
        number, workers = rank.shard
        self._share = (number + 1) * batch // workers - number * batch // workers
        if self._share < 1:
            raise ContractError(
                f"--batch is {batch}, but there are {workers} workers; each needs at least one sample"
            )
        self.batch, self._folder, self._mine = batch, rank.data, rank.site_shard
        self._seed, self._is_stopped = rank.seed, is_stopped
        self._known: set[str] = set()
        self._waiting: list[dict[str, Any]] = []
        self._inputs, self._labels = torch.zeros(0, 1, SIDE, SIDE), torch.zeros(0, dtype=torch.long)
        self._name, self._finished = "", list[str]()
        self._is_idle = True

    def take(self, iteration: int) -> tuple[Tensor, Tensor]:
        """This worker's next samples: as many as there are, up to its share of a batch; of one shard after another."""
        del iteration
        until = time.monotonic() + (IDLE_S if self._is_idle else 0.0)
        while not self._fill() and time.monotonic() < until and not self._is_stopped():
            time.sleep(LOOK_S)
        inputs, labels = self._inputs[: self._share], self._labels[: self._share]
        self._inputs, self._labels = self._inputs[self._share :], self._labels[self._share :]
        if self._name and not len(self._labels):
            self._finished.append(self._name)
            self._name = ""
        return inputs, labels

    def settle(self, samples: int) -> list[str]:
        """Names of the shards that are finished with this iteration, in which all workers had so many samples."""
        self._is_idle = samples == 0
        found, self._finished = self._finished, []
        return found

    def _fill(self) -> bool:
        """Read the next shard if there is nothing left of this one; whether there is anything to train on."""
        while not len(self._labels):
            if not self._waiting:
                self._look()
            if not self._waiting:
                return False
            self._read(self._waiting.pop(0))
        return True

    def _look(self) -> None:
        manifest = read_manifest(self._folder)
        if manifest["record_bytes"] != RECORD_BYTES:
            raise ContractError(
                f"records of {manifest['record_bytes']} bytes; this trainer reads pictures of {SIDE} x {SIDE} pixels after "
                f"a byte for the class, {RECORD_BYTES} bytes (data: {{source: shapes, record_bytes: {RECORD_BYTES}}})"
            )
        mine, of = self._mine
        for shard in manifest["shards"]:
            if shard["number"] % of == mine and shard["name"] not in self._known:
                self._known.add(shard["name"])
                self._waiting.append(shard | {"epochs": manifest["epochs"]})

    def _read(self, shard: dict[str, Any]) -> None:
        """Make a shard the one that is trained on, all its epochs one after another, each in an order of its own."""
        raw = bytearray((self._folder / shard["file"]).read_bytes())
        if not raw:
            self._finished.append(shard["name"])
            return
        records = torch.frombuffer(raw, dtype=torch.uint8).view(-1, RECORD_BYTES)
        rng = torch.Generator().manual_seed(self._seed * 1_000_003 + shard["number"])
        orders = [torch.randperm(len(records), generator=rng) for _ in range(shard["epochs"])]
        records = records[torch.cat(orders)]
        self._labels = records[:, 0].long()
        self._inputs = normalised(records[:, 1:]).view(-1, 1, SIDE, SIDE)
        self._name = shard["name"]


def read_manifest(folder: Path) -> dict[str, Any]:
    """What is at a site; it is replaced as a whole, so that it can be read at any time."""
    found: dict[str, Any] = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    return found
