"""Importers of SkyPilot's and gpuhunt's files: joins, zones, spot, what is left out, and clear errors."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from tradewind.cli.guard import guarded
from tradewind.cli.main import app
from tradewind.files.price_files import import_prices, load_prices
from tradewind.model.errors import InputError

SKYPILOT = "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region,AvailabilityZone\n"
GPUHUNT = (
    "instance_name,location,price,cpu,memory,gpu_count,gpu_name,gpu_memory,spot,disk_size,gpu_vendor,flags\n"
)


def imported(
    tmp_path: Path, text: str, form: str, cloud: str
) -> dict[str, tuple[str, int, float, float | None]]:
    path = tmp_path / "vms.csv"
    path.write_text(text)
    found = import_prices(path, form=form, cloud=cloud, day="2026-09-25")
    return {
        each.machine: (each.gpu, each.gpus, each.usd_per_hour, each.spot_usd_per_hour)
        for each in found.machines
    }


def test_zones_of_skypilot_become_one_row_with_the_lowest_spot(tmp_path: Path) -> None:
    info = "\"{'Gpus': [{'Name': 'A10G', 'MemoryInfo': {'SizeInMiB': 22888}}]}\""
    rows = (
        f"g5.xlarge,A10G,1.0,4.0,16.0,{info},1.006,0.5,us-east-1,us-east-1a\n"
        f"g5.xlarge,A10G,1.0,4.0,16.0,{info},1.006,0.4,us-east-1,us-east-1b\n"
        f"p5.48xlarge,H100,8,192,2048,,55.04,60,us-east-1,us-east-1a\n"
        f"m5.large,,,2.0,8.0,,0.096,0.04,us-east-1,us-east-1a\n"
        f"g6f.large,L4,0.125,2.0,8.0,,0.2,,us-east-1,us-east-1a\n"
        f"odd,H200,8,1,1,,,1,us-east-1,us-east-1a\n"
    )
    assert imported(tmp_path, SKYPILOT + rows, "skypilot", "aws") == {
        "g5.xlarge": ("A10G", 1, 1.006, 0.4),
        "p5.48xlarge": ("H100", 8, 55.04, None),
    }
    notes = import_prices(tmp_path / "vms.csv", form="skypilot", cloud="aws", day="2026").notes
    assert notes == (
        "1 row left out: a part of a GPU", "1 row left out: no GPU", "1 row left out: no price on demand",
    )  # fmt: skip


def test_hosts_and_gpus_of_google_are_added(tmp_path: Path) -> None:
    rows = (
        "a2-highgpu-1g,,,12,85,,0.74,0.43,us-central1,us-central1-a\n"
        ",A100,1,,,,2.93,1.69,us-central1,us-central1-a\n"
        "n1-standard-8,,,8,30,,0.38,0.18,us-central1,us-central1-a\n"
        ",T4,2,,,,0.7,,us-central1,us-central1-a\n"
        ",B200,8,,,,90,39,us-central1,us-central1-a\n"
        ",tpu-v3-32,1,,,,32,9.6,us-central1,us-central1-a\n"
    )
    assert imported(tmp_path, SKYPILOT + rows, "skypilot", "gcp") == {
        "a2-highgpu-1g": ("A100", 1, 3.67, 2.12),
        "n1-standard-8+2xT4": ("T4", 2, 1.08, None),
    }


def test_spot_rows_of_gpuhunt_are_joined_with_those_on_demand(tmp_path: Path) -> None:
    rows = (
        "g1,us,2.0,30,240,1,A100,80.0,False,,nvidia,\n"
        "g1,us,0.9,30,240,1,A100,80.0,True,,nvidia,\n"
        "c1,us,0.1,30,240,0,,,False,,,\n"
        "t1,us,5,30,240,4,v5p,95,False,,google,\n"
    )
    assert imported(tmp_path, GPUHUNT + rows, "gpuhunt", "lambda") == {"g1": ("A100-80GB", 1, 2.0, 0.9)}


@pytest.mark.parametrize(
    ("form", "cloud", "text", "message"),
    [
        ("skypilot", "aws", SKYPILOT + "a,H100,1,1,1,,nan,1,r,z\n", "line 2, column Price: found 'nan'"),
        ("skypilot", "aws", SKYPILOT + "a,H100,1,1,1,,-2,1,r,z\n", "line 2, column Price: found '-2'"),
        ("skypilot", "aws", SKYPILOT + "a,,,1,1,,2,1,r,z\n", "no machine with a GPU"),
        ("skypilot", "", SKYPILOT, "--cloud"),
        ("sky", "aws", SKYPILOT, "allowed are csv, skypilot, gpuhunt"),
        ("gpuhunt", "aws", GPUHUNT + "g1,us,1e300,30,240,1,A100,80.0,False,,nvidia,\n", "column price: found '1e300'"),
        ("gpuhunt", "aws", GPUHUNT + "g1,us,1,30,240,1,A100,80.0,maybe,,nvidia,\n", "column spot: found 'maybe'"),
        ("gpuhunt", "aws", SKYPILOT + "a,H100,1,1,1,,2,1,r,z\n", "has no column instance_name"),
    ],
)  # fmt: skip
def test_wrong_files_are_refused(tmp_path: Path, form: str, cloud: str, text: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        imported(tmp_path, text, form, cloud)
    assert message in str(error.value)


def test_the_command_writes_a_list_that_needs_a_date(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, out = tmp_path / "vms.csv", tmp_path / "own.csv"
    source.write_text(SKYPILOT + "p5.48xlarge,H100,8,192,2048,,55.04,20,us-east-1,us-east-1a\n")
    command = ["prices", "import", str(source), "--from", "skypilot", "--cloud", "aws", "-o", str(out)]
    assert guarded(lambda: app(command, standalone_mode=False)) == 2
    assert "--date" in capsys.readouterr().err
    assert guarded(lambda: app([*command, "--date", "25 Sep"], standalone_mode=False)) == 2
    assert "--date: the date is '25 Sep'; write a year" in capsys.readouterr().err
    assert not out.exists()
    today = date.today().isoformat()
    assert guarded(lambda: app([*command, "--date", today], standalone_mode=False)) == 0
    assert capsys.readouterr().err == ""  # nothing of egress, of which the file says nothing
    assert guarded(lambda: app([*command, "--date", "2026-09-25"], standalone_mode=False)) == 0
    assert "1 machine of 2026-09-25" in capsys.readouterr().out
    assert load_prices(str(out)).date == "2026-09-25"
    assert load_prices(str(out)).machines[0].gpu_gb == 80
