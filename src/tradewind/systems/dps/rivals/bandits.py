"""Simpler ways to choose from a grid of unit prices: a sliding window (TOP-like), and at random."""

from tradewind.systems.dps.kernels.arms import UNIFORM, WINDOW
from tradewind.systems.dps.paper import bandit_spec

TOP = bandit_spec(
    "top", "TOP-like: the best price of each type over a sliding window of offers", theta="0", mode=WINDOW
)
RANDOM_PRICE = bandit_spec("random", "Unit prices drawn at random from [0, 1]", theta="0", mode=UNIFORM)
