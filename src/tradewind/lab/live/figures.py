"""Measured figures: training with PyTorch, and traffic on a testbed."""

from __future__ import annotations

from tradewind.lab.live import brokerage as live_brokerage
from tradewind.lab.live import estimates as live_estimates
from tradewind.lab.live import reservation as live_reservation
from tradewind.lab.live import rings as live_rings
from tradewind.lab.live import sites as live_sites
from tradewind.lab.live import trainers as live_trainers
from tradewind.lab.live import transport as live_transport
from tradewind.lab.live import workers as live_workers
from tradewind.lab.study import Chart, Claim, Claims, PaperFigure, Study

_broker = Claims("mlbroker-paper", "mlbroker")

STUDY = Study(
    system="live",
    title="Measured: training and traffic on this machine",
    figures=(
        PaperFigure(
            name="workers",
            title="Changing the number of workers, measured (Eris, Figure 6)",
            claims=(
                Claim(
                    name="unchanged",
                    words="Eris, Figure 6: changing workers between slots does not affect training; accuracy stays good.",
                    holds=live_workers.judge,
                ),
            ),
            rows=live_workers.rows,
            chart=Chart(x="iteration", y="accuracy", series="schedule"),
            paint=live_workers.paint,
        ),
        PaperFigure(
            name="reservation",
            title="Several jobs at once, with and without reserved rates",
            claims=(
                Claim(
                    name="as-planned",
                    words="Our aim: at reserved rates, rounds of several jobs at once take the planned time within 10%.",
                    holds=live_reservation.judge(live_reservation.RESERVED, live_reservation.BOTH_WAYS),
                    ours="apsp",
                ),
                Claim(
                    name="even",
                    words="Our aim: on links that are shared evenly they take what a fluid model predicts within 10%.",
                    holds=live_reservation.judge(live_reservation.EVEN),
                    ours="apsp",
                ),
                Claim(
                    name="by-phases",
                    words="Our aim: so they do where plans count pushes and pulls apart, so that jobs meet.",
                    holds=live_reservation.judge(live_reservation.TOGETHER),
                    ours="apsp",
                ),
            ),
            rows=live_reservation.rows,
            chart=Chart(x="predicted_s", y="measured_s", series="sharing"),
        ),
        PaperFigure(
            name="trainers",
            title="Three trainers at once under the live loop, with reserved rates",
            claims=(
                Claim(
                    name="as-predicted",
                    words="Our aim: measured iterations of several jobs at once take the time that their plans predict, "
                    "within 10%.",
                    holds=live_trainers.judge,
                    ours="apsp",
                ),
            ),
            rows=live_trainers.rows,
            chart=Chart(x="predicted_s", y="measured_s", series="network"),
        ),
        PaperFigure(
            name="brokerage",
            title="mlBroker's real experiment on this machine (Tables 4 and 5, Figures 15 to 17)",
            claims=(
                _broker(
                    "cheapest",
                    "mlBroker costs least: 1070 USD, Central 1100, OASiS 1201, Local 1386 (Table 4, Fig. 15).",
                    live_brokerage.least("cost", "central", "oasis", "local"),
                ),
                Claim(
                    name="Central fastest",
                    words="Central runs the fewest instance hours, because none waits for another zone (Table 5, Fig. 16).",
                    holds=live_brokerage.least("hours", "central", "oasis", "local"),
                ),
                Claim(
                    name="waiting",
                    words="Hours differ by waiting for communication, of which Central has the least (Sec. 6.4).",
                    holds=live_brokerage.least("waiting", "central", "oasis", "local"),
                ),
                _broker(
                    "discount",
                    "mlBroker pays the smallest part of list prices: 0.85; Central 0.91, OASiS 0.93, Local 0.98 (Fig. 17).",
                    live_brokerage.least("discount", "central", "oasis", "local"),
                ),
                Claim(
                    name="all processed",
                    words="Our aim: everything that arrives in a slot is trained on in it.",
                    holds=live_brokerage.all_processed,
                    ours="mlbroker",
                ),
            ),
            rows=live_brokerage.rows,
            chart=Chart(x="policy", y="cost", kind="bar", y_label="USD, rent by measured hours"),
        ),
        PaperFigure(
            name="estimates",
            title="Declarations that are wrong by factors from 0.5 to 2 (simulated)",
            claims=tuple(
                Claim(
                    name=policy,
                    words=f"Our aim: with estimates=measured {policy} does better than with declared times on average.",
                    holds=live_estimates.judge(policy),
                    ours=policy,
                )
                for policy in live_estimates.CASES
            ),
            rows=live_estimates.rows,
            chart=Chart(
                x="policy",
                y="of_truth",
                kind="bar",
                series="times",
                y_label="value over that with true times",
            ),
        ),
        PaperFigure(
            name="rings",
            title="Rings in the planned and in random order (GADGET)",
            claims=(
                Claim(
                    name="order",
                    words="GADGET embeds rings so that hops share as few links as possible: no random order of the same "
                    "servers is faster (within 10%), and they are slower on average.",
                    holds=live_rings.judge,
                    ours="gadget",
                ),
            ),
            rows=live_rings.rows,
            chart=Chart(x="ring", y="measured_s", kind="bar", y_label="measured seconds per all-reduce"),
        ),
        PaperFigure(
            name="transport",
            title="Store-and-forward, chunks and cut-through against their formula (APSP)",
            claims=(
                Claim(
                    name="formula",
                    words="APSP: a block over h links takes h times as long if every site stores and forwards it; with K "
                    "chunks 1 + (h - 1) / K times, with cut-through once, and the latency of every link on top.",
                    holds=live_transport.judge,
                ),
            ),
            rows=live_transport.rows,
            chart=Chart(x="links", y="measured_s", series="transport"),
        ),
        PaperFigure(
            name="b4",
            title="Server sites on B4, measured on real traffic",
            rows=live_sites.figure_rows,
            summary=live_sites.summary_text,
            chart=Chart(
                x="policy",
                y="measured_s",
                kind="bar",
                low="low",
                high="high",
                y_label="measured seconds per round",
            ),
        ),
    ),
    remarks=(
        "Figure `workers` trains with PyTorch (make install EXTRAS=train) and gives the same losses each time. All figures "
        "but `estimates` need root for network namespaces; times are measured and differ slightly from run to run.",
        "The rates of B4 are a hundredth of the real ones; a round moves half a megabyte per site in each direction. "
        "Packets are forwarded one by one (cut-through), so policies plan with that transport; with the paper's "
        "store-and-forward every hop counts.",
    ),
)
