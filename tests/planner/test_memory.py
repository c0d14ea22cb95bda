"""Memory of GPUs in plans: of each machine, as the list says it."""

from __future__ import annotations

import pytest

from tests.planner.test_plan import JOB, LIST, PATHS, PRICES
from tradewind.files.jobs_file import PlanFile
from tradewind.model.errors import InputError
from tradewind.planner.plan import Overrides, make
from tradewind.prices.table import read_machines


def test_memory_is_that_of_the_machine_and_an_unknown_one_is_named() -> None:
    """Two machines of one type differ in memory; the list's order of rows does not decide."""
    more = "aws,us-east-1,b8,A100,8,80,24,\naws,us-east-1,c8,A100,8,,30,\n"
    jobs = [{**JOB, "id": "small"}, {**JOB, "gpu_memory": "50 GB"}]
    file = PlanFile.model_validate({"tradewind_jobs": 1, "jobs": jobs})
    head, body = LIST.split("spot_usd_per_hour\n")
    for rows in (body + more, more + body):
        prices = read_machines(f"{head}spot_usd_per_hour\n{rows}", "list.csv", egress=PRICES.egress)
        small, large = make(file, {}, prices, PATHS, Overrides()).jobs
        assert (small.what, large.what) == ("1 x a8, 8 A100", "1 x b8, 8 A100")
        assert [small.usd, large.usd] == pytest.approx([200.0, 240.0])
        elsewhere = file.model_copy(
            update={"jobs": [job.model_copy(update={"regions": ("gcp",)}) for job in file.jobs[1:]]}
        )
        with pytest.raises(InputError, match="no machine with A100 is listed with 50 GB on a GPU in gcp"):
            make(elsewhere, {}, prices, PATHS, Overrides())
    silent = read_machines(LIST.replace(",40,", ",,"), "list.csv", egress=PRICES.egress)
    with pytest.raises(InputError, match="of A100 the price list says no memory; add gpu_gb"):
        make(file, {}, silent, PATHS, Overrides())
