"""The learner in a whole market, compiled."""

from tradewind.solvers.kernel import kernel
from tradewind.systems.dps.kernels.learner import Arrival, observe, observe_unpriced, quote
from tradewind.systems.dps.kernels.occupancy import Stream, commit, plan
from tradewind.systems.dps.kernels.sales import (
    ACCEPTED,
    REFUSED_CAPACITY,
    Outcome,
    Sales,
    has_room,
    outcome,
)
from tradewind.systems.dps.kernels.state import LearnerState, Settings


def simulate_learner(
    sales: Sales, learner: LearnerState, settings: Settings, told: Stream | None = None
) -> Outcome:
    """Run the learner over a market; both are changed. `told`: runtimes that it expects, where they turn out otherwise."""
    _simulate(sales, sales.stream if told is None else told, learner, settings)
    return outcome(sales)


@kernel
def _simulate(sales: Sales, told: Stream, learner: LearnerState, settings: Settings) -> None:
    stream, occupancy = sales.stream, sales.occupancy
    for i in range(sales.budget.shape[0]):
        room = has_room(occupancy, stream, i)
        k, m, spread = stream.k[i], stream.m[i], told.spread[i]
        count, tau = plan(occupancy, stream, i, sales.rule) if room else (0, spread)
        expected = told.together[i] if count == 1 else spread
        idle_k, idle_m = occupancy.idle_k[k], occupancy.idle_m[m]
        arrival = Arrival(
            k, m, stream.d_k[i], stream.d_m[i], stream.arrive[i], expected, spread, idle_k, idle_m, 0.0
        )
        if not room:
            sales.answer[i] = REFUSED_CAPACITY
            observe_unpriced(learner, settings, arrival)
            continue
        sales.payment[i] = quote(learner, settings, arrival).payment
        if sales.payment[i] <= 0.0:
            sales.answer[i] = REFUSED_CAPACITY
            continue
        accepted = sales.payment[i] <= sales.budget[i]
        if accepted:
            commit(occupancy, stream, i, count, tau)
            sales.answer[i], sales.runtime[i] = ACCEPTED, tau
        observe(learner, settings, accepted)
