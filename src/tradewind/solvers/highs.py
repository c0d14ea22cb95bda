"""The door to HiGHS: a quiet solver that gives the same answer every time, and mixed-integer programs written row by row."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import highspy
import numpy as np
from numpy.typing import NDArray

INFINITY = highspy.kHighsInf
_TYPES = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)

Entry = tuple[int, float]
"""A column's number and its factor in a row."""


def quiet_solver(seed: int = 1, **options: float | str) -> highspy.Highs:
    """A solver on one thread without output or clock; further options by their names."""
    model = highspy.Highs()
    for name, value in {"output_flag": False, "threads": 1, "random_seed": seed, **options}.items():
        model.setOptionValue(name, value)
    return model


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Whether it is proven, the value found and what no solution can better, the columns (none where nothing was found)."""

    optimal: bool
    value: float
    bound: float
    columns: NDArray[np.float64]


@dataclass(slots=True)
class Program:
    """A program as it is written down: columns from 0 to a limit, rows that hold a sum between two limits."""

    cost: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)
    whole: list[bool] = field(default_factory=list)
    row_low: list[float] = field(default_factory=list)
    row_high: list[float] = field(default_factory=list)
    starts: list[int] = field(default_factory=lambda: [0])
    index: list[int] = field(default_factory=list)
    value: list[float] = field(default_factory=list)

    def column(self, cost: float, high: float, *, whole: bool = False) -> int:
        """A column in [0, high]; its number."""
        self.cost.append(cost)
        self.high.append(high)
        self.whole.append(whole)
        return len(self.cost) - 1

    def row(self, low: float, high: float, entries: Iterable[Entry]) -> None:
        """low <= sum factor * column <= high."""
        self.row_low.append(low)
        self.row_high.append(high)
        for column, factor in entries:
            self.index.append(column)
            self.value.append(factor)
        self.starts.append(len(self.index))

    def solve(self, model: highspy.Highs, *, maximise: bool = False) -> Answer:
        """Least (or most) cost, with the solver's own limits on nodes and gap."""
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
        return Answer(
            optimal=model.getModelStatus() == highspy.HighsModelStatus.kOptimal,
            value=float(info.objective_function_value) if found else worst,
            bound=float(info.mip_dual_bound),
            columns=np.array(solution.col_value if found else ()),
        )
