"""Claims about the gap between Eris and its bound."""

from __future__ import annotations

import numpy as np

from tradewind.systems.eris.study.gap import shares


def test_each_tightening_lowers_the_bound_and_keeps_it_valid() -> None:
    found = shares("testbed", 501, 6)
    assert found.shape == (6, 4, 3)
    assert found.max() <= 1.0
    assert (np.diff(found, axis=2) <= 1e-9).all()
    assert found[:, 0, 0].mean() > found[:, 0, 1].mean() + 0.01
