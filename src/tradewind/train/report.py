"""Progress reports of a rank: one JSON line per iteration, appended to its file."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any


class ReportWriter:
    """Writes {"iteration", "seconds", "bytes_sent", "loss", "workers", "at"} and what else was measured."""

    def __init__(self, path: Path | None, workers: int) -> None:
        self._workers = workers
        self._file: IO[str] | None = None
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("a", encoding="utf-8", buffering=1)

    def write(
        self, iteration: int, seconds: float, bytes_sent: int, loss: float, processed: Sequence[str] = (),
        **more: float,
    ) -> None:  # fmt: skip
        """Append a line; processed: names of shards; more: `accuracy` and others, where they are known."""
        if self._file is None:
            return
        line: dict[str, Any] = {
            "iteration": iteration,
            "seconds": round(seconds, 6),
            "bytes_sent": bytes_sent,
            "loss": loss,
            "workers": self._workers,
            "at": round(time.time(), 3),
        }
        line |= {name: round(value, 6) for name, value in more.items()}
        line |= {"processed": processed} if processed else {}
        self._file.write(json.dumps(line) + "\n")
