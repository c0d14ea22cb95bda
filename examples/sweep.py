"""Compares settings of a policy over seeds, and looks into one run with pandas.

python examples/sweep.py
"""

from __future__ import annotations

import tradewind as tw


def main() -> None:
    scenarios = [tw.generate("cluster", jobs=200, servers=4, load=1.2, seed=seed) for seed in range(3)]
    found = tw.compare(scenarios, ["fifo", "las", "las:limits=600,3600", "srtf"], seeds=range(3), bound=True)
    for run in found.runs:
        print(
            f"{run.policy:6} {run.params.get('limits', '')!s:10} seed {run.seed}: {run.value / 3600:6.2f} h"
        )

    last = found.runs[-1]
    steps = last.frame("steps").merge(last.frame("plans")["job"], left_on="plan", right_index=True)
    starts = steps.groupby("job").size()
    print(
        f"{last.policy}, seed {last.seed}: {int((starts > 1).sum())} of {len(starts)} jobs were interrupted"
    )


if __name__ == "__main__":
    main()
