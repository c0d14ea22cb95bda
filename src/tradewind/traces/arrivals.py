"""Arrivals of recorded jobs for generated workloads: `arrivals=google:FILE` in place of the generator's own process.

A workload needs a number of arrivals in a number of slots. They come from the trace in real time, as follows:

1. The trace is closed to a circle: its end is followed by its beginning, so that it can be as long as needed.
2. A window as long as the slots begins at an instant that the seed draws uniformly from the circle, or, where nothing
   was submitted in that window, at the next submission.
3. Of the jobs submitted in the window (those of the circle once per turn), the number wanted is drawn without
   replacement, all equally likely. Where there are fewer, each is taken equally often first, and the rest is drawn.
4. A job arrives in the slot in which it was submitted, counted from the start of the window.

So neither time nor the shape of days and bursts is scaled; only the number of jobs is thinned (or multiplied).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.model.errors import InputError
from tradewind.model.spec import Param
from tradewind.traces.google import submitted_us

DRAWN = "drawn"
ARRIVALS = Param(
    default=DRAWN,
    doc="when jobs arrive: drawn, or google:FILE for submissions of Google's cluster data of 2011",
)
_instead: ContextVar[str] = ContextVar("arrivals of workloads that draw them", default=DRAWN)


@contextmanager
def instead_of_drawn(spec: str) -> Iterator[None]:
    """Within this context, workloads with `arrivals=drawn` take these arrivals: for a whole study at once."""
    before = _instead.set(spec)
    try:
        yield
    finally:
        _instead.reset(before)


def in_force(spec: str) -> str:
    """The arrivals in force where a workload has the parameter `spec`."""
    return _instead.get() if spec == DRAWN else spec


def with_arrivals(params: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters for the origin of a scenario: the arrivals in force, with the name of the file without its folder."""
    return {**params, "arrivals": recorded_name(in_force(params["arrivals"]))}


def recorded_name(spec: str) -> str:
    """The arrivals with the name of the file without its folder."""
    source, _, file = spec.partition(":")
    return f"{source}:{Path(file).name}" if file else source


def recorded_slots(spec: str, count: int, slots: int, slot_us: int, rng: np.random.Generator) -> Ints | None:
    """Slots of `count` arrivals in [0, slots), ascending; None where the workload draws its own."""
    spec = in_force(spec)
    if spec == DRAWN:
        return None
    source, _, file = spec.partition(":")
    if source != "google" or not file:
        raise InputError(
            f"found {spec!r}; it must be drawn or google:FILE, such as google:google2011_jobs.csv.gz",
            where="arrivals",
        )
    path = Path(file)
    return window(
        _instants(path, path.stat().st_mtime_ns if path.exists() else 0), count, slots, slot_us, rng
    )


@lru_cache(maxsize=2)
def _instants(path: Path, changed: int) -> Floats:
    """Instants of submission in microseconds; read again when the file has changed."""
    return submitted_us(path)


def window(instants_us: Floats, count: int, slots: int, slot_us: int, rng: np.random.Generator) -> Ints:
    """Slots of `count` of the instants in a window of the circle that they form, as described above."""
    if not len(instants_us):
        raise InputError("the trace has no arrivals; give a trace with jobs", where="arrivals")
    turn = float(instants_us[-1] - instants_us[0]) + 1.0
    offset = np.sort((instants_us - instants_us[0] - rng.uniform(0.0, turn)) % turn)
    span = float(slots) * slot_us
    whole, rest = divmod(span, turn)
    if span <= offset[0]:
        offset -= offset[0]
    available = int(whole) * len(offset) + int(np.searchsorted(offset, rest, side="left"))
    often, more = divmod(count, available)
    picked = np.sort(rng.choice(available, more, replace=False))
    turns, row = np.divmod(np.concatenate([np.repeat(np.arange(available), often), picked]), len(offset))
    return np.sort((offset[row] + turns * turn) // slot_us).astype(np.int64)
