"""Checks for authors of policies and fleets: what the project's own contract tests ask of every one of them.

    from tradewind.testing import check_policy

    def test_my_policy_keeps_the_contract():
        check_policy(MY_POLICY)

`tradewind check-policy FILE.py:NAME` does the same from the command line. `check_fleet(make_fleet)` checks a fleet
(`tradewind.worlds.fleet`); FakeFleet and FakeTime run live runs without processes.
"""

from tradewind.testing.contract import CheckFailed, check_policy, run_checks
from tradewind.testing.fleet_bed import Faults
from tradewind.testing.fleet_checks import check_fleet
from tradewind.testing.fleet_fake import FakeCluster, FakeFleet, FakeTime, MemoryStore
from tradewind.testing.scenarios import contended_cluster, fitting_scenarios

__all__ = [
    "CheckFailed", "FakeCluster", "FakeFleet", "FakeTime", "Faults", "MemoryStore", "check_fleet", "check_policy",
    "contended_cluster", "fitting_scenarios", "run_checks",
]  # fmt: skip
