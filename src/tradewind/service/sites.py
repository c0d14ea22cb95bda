"""Sites as people see them: capacity, use and prices, written where they changed."""

from __future__ import annotations

from tradewind.engine.ledger import Ledger
from tradewind.model.units import UNLIMITED
from tradewind.store.board import Board
from tradewind.store.rows import Put

Key = tuple[str, str]
Values = tuple[int, int, float, bool]
NAMES = ("capacity_milli", "used_milli", "price_factor", "is_down")


class Sites:
    """Compares the ledger with what was written last."""

    def __init__(self, ledger: Ledger, board: Board) -> None:
        self._ledger, setup = ledger, ledger.setup
        every = {(node, resource) for node in setup.hosts for resource in range(len(setup.resources))}
        self._keys = sorted(every | setup.rent.keys())
        self._shown: dict[Key, Values] = {
            (row["node"], row["resource"]): (
                row["capacity_milli"], row["used_milli"], row["price_factor"], bool(row["is_down"]))
            for row in board.rows("board_sites", most=1_000_000)
        }  # fmt: skip

    def changed(self) -> list[Put]:
        """Rows of what changed."""
        ledger, setup, rows = self._ledger, self._ledger.setup, []
        for node, resource in self._keys:
            most = ledger.capacity(node, resource)
            if most >= UNLIMITED and (node, resource) not in setup.rent:
                continue  # it has neither a limit nor a price
            used = most - ledger.free(node, resource)
            factor = float(ledger.price_factor(node, resource))
            values = (int(most), int(used), factor, ledger.is_down(node))
            key = (setup.nodes[node].name, setup.resources[resource])
            if (before := self._shown.get(key)) != values:
                self._shown[key] = values
                named = dict(zip(NAMES, values, strict=True))
                where = {"node": key[0], "resource": key[1]}
                row = Put("board_sites", {**where, **named})
                rows.append(row if before is None else Put("board_sites", named, where))
        return rows
