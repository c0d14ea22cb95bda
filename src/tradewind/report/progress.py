"""Progress bars on stderr; none if stderr is not a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic

from tradewind.engine.loop import Progress

REFRESH_S = 0.1


@contextmanager
def bar(label: str, total: int, *, unit: str = "jobs") -> Iterator[Progress | None]:
    """Yield a function (now_us, done) -> None that updates the bar, or None if stderr is not a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(label, total=total)
        last = monotonic()

        def update(now_us: int, jobs_over: int) -> None:
            nonlocal last
            if monotonic() - last > REFRESH_S:
                last = monotonic()
                shown.update(task, completed=jobs_over)

        yield update
