"""DPS: unit prices posted to each arriving job, and its servers if it accepts."""

from tradewind.model.system import System

SYSTEM = System(
    name="dps",
    summary="Capacity for sale at posted prices that learn what customers will pay",
    policies={
        "bfp": "tradewind.systems.dps.rivals.fixed_price:BFP",
        "bfp-printed": "tradewind.systems.dps.rivals.fixed_price:BFP_PRINTED",
        "bfp-tau": "tradewind.systems.dps.rivals.fixed_price:BFP_TAU",
        "dps": "tradewind.systems.dps.policy:DPS",
        "dps-paper": "tradewind.systems.dps.paper:DPS_PAPER",
        "dps-rs": "tradewind.systems.dps.paper:DPS_RS",
        "dps-simple": "tradewind.systems.dps.paper:DPS_SIMPLE",
        "eris-units": "tradewind.systems.dps.rivals.scarcity_price:ERIS_UNITS",
        "random": "tradewind.systems.dps.rivals.bandits:RANDOM_PRICE",
        "top": "tradewind.systems.dps.rivals.bandits:TOP",
    },
    ours=("dps",),
    workloads={
        "dps": "tradewind.systems.dps.workload.generator:DPS",
    },
    bound="tradewind.systems.dps.bound:bound",
    bound_for=frozenset(("profit_usd",)),
    offline="tradewind.systems.dps.offline:offline",
    remarks="tradewind.systems.dps.explain:remarks",
    study="tradewind.systems.dps.study.figures:STUDY",
    reference_policy="bfp",
    reference_sales="tradewind.systems.dps.bound:fixed_price_sales",
)
