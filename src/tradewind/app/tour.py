"""`make run`: a comparison of schedulers on a realistic workload, with a report to open, in under a minute."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from time import perf_counter

from tradewind.app import api, report, show
from tradewind.app.cli import guarded
from tradewind.app.progress import bar
from tradewind.studies import figures

POLICIES = ("fifo", "fifo-backfill", "drf", "las", "srsf", "srtf")
JOBS, SEEDS = 2000, 5


def tour(out: Path, pictures: Path | None) -> None:
    """Runs the comparison, prints it, writes the report and, where asked, the pictures of the README."""
    begin = perf_counter()
    print(
        f"{JOBS} training jobs arrive over a few days at 20 servers of 8 GPUs. Who finishes them soonest?\n"
    )
    scenarios = [api.generate("cluster", jobs=JOBS, seed=seed) for seed in range(SEEDS)]
    with bar("comparing", len(POLICIES) * SEEDS, unit="runs") as tell:
        done = iter(range(len(POLICIES) * SEEDS))

        def next_run(_policy: str, _seed: int) -> None:
            if tell is not None:
                tell(0, next(done))

        result = api.compare(scenarios, POLICIES, seeds=range(SEEDS), bound=True, progress=next_run)
    show.comparison(result, as_json=False, saved=None)
    out.mkdir(parents=True, exist_ok=True)
    page = report.write(out / "report.html", scenarios, result.runs, title="Six schedulers, one cluster")
    if pictures is not None:
        pictures.mkdir(parents=True, exist_ok=True)
        for path in figures.picture(pictures / "compare", scenarios, result.runs):
            print(f"picture: {path}")
    print(
        f"\nEvery decision passed the audit. Done in {perf_counter() - begin:.0f} s.\nOpen the report: {page}"
    )


def main() -> None:
    """Reads the arguments."""
    parser = argparse.ArgumentParser(prog="python -m tradewind.app.tour", description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=Path("out"), help="folder of the report")
    parser.add_argument("--pictures", type=Path, help="also write the pictures of the docs into this folder")
    given = parser.parse_args()
    sys.exit(guarded(lambda: tour(given.output, given.pictures)))


if __name__ == "__main__":
    main()
