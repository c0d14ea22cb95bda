"""Checks for authors of policies: what the project's own contract tests ask of every policy.

    from tradewind.testing import check_policy

    def test_my_policy_keeps_the_contract():
        check_policy(MY_POLICY)

`tradewind check-policy FILE.py:NAME` does the same from the command line.
"""

from tradewind.testing.contract import CheckFailed, check_policy, run_checks
from tradewind.testing.scenarios import contended_cluster, fitting_scenarios

__all__ = ["CheckFailed", "check_policy", "contended_cluster", "fitting_scenarios", "run_checks"]
