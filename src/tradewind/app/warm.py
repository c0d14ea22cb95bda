"""Compiles the kernels once, after installation, so that the first run is as quick as the second."""

from __future__ import annotations

from tradewind import policies
from tradewind.app import api


def main() -> None:
    """Runs every scheduler on a handful of jobs; numba keeps what it compiled beside the source."""
    scenario = api.generate("cluster", jobs=30, seed=0)
    for name in policies.names():
        spec = policies.find(name)
        if "fixed" in spec.works and spec.online:
            api.run(scenario, name)


if __name__ == "__main__":
    main()
