"""Interface to HiGHS: a deterministic solver without output, and mixed-integer programs built row by row."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import highspy
import numpy as np
from numpy.typing import NDArray

INFINITY = highspy.kHighsInf
_TYPES = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)

Entry = tuple[int, float]
"""(column, coefficient) of a row."""


def quiet_solver(seed: int = 1, **options: float | str) -> highspy.Highs:
    """A solver with one thread, a fixed seed, no output and no time limit; `options` are HiGHS options by name."""
    model = highspy.Highs()
    for name, value in {"output_flag": False, "threads": 1, "random_seed": seed, **options}.items():
        model.setOptionValue(name, value)
    return model


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramSolution:
    """Result of a solve.

    optimal  whether the solution is proven optimal
    bound    no solution is better than this
    columns  values of the columns; empty if no solution was found
    duals    of a linear program: what a unit more on the right of each row adds to the value; else empty
    """

    optimal: bool
    value: float
    bound: float
    columns: NDArray[np.float64]
    duals: NDArray[np.float64]


@dataclass(slots=True)
class Program:
    """A linear or mixed-integer program: columns in [0, high], rows with a lower and an upper limit."""

    cost: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)
    whole: list[bool] = field(default_factory=list)
    row_low: list[float] = field(default_factory=list)
    row_high: list[float] = field(default_factory=list)
    starts: list[int] = field(default_factory=lambda: [0])
    index: list[int] = field(default_factory=list)
    value: list[float] = field(default_factory=list)

    def column(self, cost: float, high: float, *, whole: bool = False) -> int:
        """Add a column in [0, high]; return its number."""
        self.cost.append(cost)
        self.high.append(high)
        self.whole.append(whole)
        return len(self.cost) - 1

    def row(self, low: float, high: float, entries: Iterable[Entry]) -> None:
        """Add the row low <= sum of factor * column <= high."""
        self.row_low.append(low)
        self.row_high.append(high)
        for column, factor in entries:
            self.index.append(column)
            self.value.append(factor)
        self.starts.append(len(self.index))

    def solve(self, model: highspy.Highs, *, maximise: bool = False) -> ProgramSolution:
        """Minimise (or maximise) the cost within the limits on nodes and gap set on `model`."""
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = len(self.cost), len(self.row_low)
        lp.sense_ = highspy.ObjSense.kMaximize if maximise else highspy.ObjSense.kMinimize
        lp.col_cost_ = np.array(self.cost)
        lp.col_lower_, lp.col_upper_ = np.zeros(lp.num_col_), np.array(self.high)
        lp.row_lower_, lp.row_upper_ = np.array(self.row_low), np.array(self.row_high)
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_ = np.array(self.starts, dtype=np.int32)
        lp.a_matrix_.index_ = np.array(self.index, dtype=np.int32)
        lp.a_matrix_.value_ = np.array(self.value)
        lp.integrality_ = [_TYPES[whole] for whole in self.whole]
        model.passModel(lp)
        model.run()
        info, solution = model.getInfo(), model.getSolution()
        found = solution.value_valid
        worst = -INFINITY if maximise else INFINITY
        return ProgramSolution(
            optimal=model.getModelStatus() == highspy.HighsModelStatus.kOptimal,
            value=float(info.objective_function_value) if found else worst,
            bound=float(info.mip_dual_bound),
            columns=np.array(solution.col_value if found else ()),
            duals=np.array(solution.row_dual if solution.dual_valid else ()),
        )
