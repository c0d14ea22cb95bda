"""Tradewind places, scales, routes and prices distributed machine-learning training.

    import tradewind as tw

    scenario = tw.generate("cluster", jobs=500, seed=1)
    run = tw.run(scenario, policy="las", seed=1)
    print(run.metrics["jct_mean_s"])

Names are imported when they are first used, so that `import tradewind` stays quick.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tradewind.version import __version__

if TYPE_CHECKING:
    from tradewind.api import (
        Comparison,
        Optimum,
        Where,
        bound,
        check,
        compare,
        dump,
        explain,
        generate,
        load,
        load_run,
        optimum,
        period,
        replay,
        run,
        save,
        whatif,
    )
    from tradewind.model.result import Run
    from tradewind.model.scenario import Scenario
    from tradewind.service.client import AsyncClient, Client

__all__ = [
    "AsyncClient", "Client", "Comparison", "Optimum", "Run", "Scenario", "Where", "__version__", "bound", "check",
    "compare", "dump", "explain", "generate", "load", "load_run", "optimum", "period", "replay", "run", "save", "whatif",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'tradewind' has no attribute {name!r}; it has {', '.join(__all__)}")
    from importlib import import_module

    where = {"Run": "tradewind.model.result", "Scenario": "tradewind.model.scenario"}
    where |= dict.fromkeys(("AsyncClient", "Client"), "tradewind.service.client")
    value = getattr(import_module(where.get(name, "tradewind.api")), name)
    globals()[name] = value
    return value
