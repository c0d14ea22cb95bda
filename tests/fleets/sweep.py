"""`python -m tests.fleets.sweep FOLDER JOBS [ON]`: a comparison and a what-if, written as run files."""

from __future__ import annotations

import sys
from pathlib import Path

import tradewind as tw
from tradewind.tasks.pool import Where

POLICY = """
from tradewind.model.spec import Spec
from tradewind.registry import policies

MINE = Spec(name="mine", summary="", works=frozenset({"fixed"}), factory=lambda *all: policies.find("las").factory(*all))
"""


def main(folder: Path, where: Where) -> None:
    """Policies of this package and of a file, on two scenarios, with bounds."""
    folder.mkdir()
    file = folder.parent / "mine.py"
    file.write_text(POLICY)
    clusters = [tw.generate("cluster", jobs=60, seed=seed) for seed in (1, 2)]
    found = tw.compare(clusters, ["fifo", f"{file}:MINE"], seeds=(1, 2), bound=True, where=where)
    brokers = tw.compare(tw.generate("mlbroker", seed=1, slots=6), ["local"], where=where)
    other = tw.whatif(clusters[0], found.runs[0], "srtf", where=where).other
    for number, run in enumerate((*found.runs, *brokers.runs, other)):
        tw.save(run, folder / f"{number}-{run.policy}.json")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Where(int(sys.argv[2]), *sys.argv[3:]))
