"""Price lists: the built-in facts, what is refused, search, comparison, contracts, dates and hashes."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from tradewind.cli.guard import guarded
from tradewind.cli.main import app
from tradewind.files.price_files import load_contract, load_prices
from tradewind.model.errors import InputError, LookupFailed
from tradewind.prices.builtin import catalogue, positions
from tradewind.prices.builtin import egress as built_in_egress
from tradewind.prices.listing import PriceList
from tradewind.prices.places import continent, means
from tradewind.prices.search import Search, diff
from tradewind.prices.table import machines_csv, read_egress, read_machines

HEAD = "# date: 2026-08-31\ncloud,region,machine,gpu,gpus,usd_per_hour,spot_usd_per_hour\n"
ROWS = "aws,us-east-1,big,H100,8,50,20\naws,us-east-1,small,H100,1,8,\ngcp,europe-west4,mid,A100,4,12,12\n"


def listing(text: str = HEAD + ROWS) -> PriceList:
    return read_machines(text, "own.csv", egress=built_in_egress())


def tradewind(*words: str) -> int:
    return guarded(lambda: app(list(words), standalone_mode=False))


def test_the_catalogue_holds_the_listed_facts() -> None:
    prices = catalogue()
    found = {(each.place, each.machine): each for each in prices.machines}
    assert len(found) == len(prices.machines) > 1000
    assert found["azure:eastus", "Standard_ND96isr_H100_v5"].gpus == 8
    joined = found["gcp:us-central1", "a2-highgpu-8g"]
    assert joined.usd_per_hour == pytest.approx(5.91582 + 23.47126)
    assert joined.spot_usd_per_hour == pytest.approx(3.41528 + 13.5512)
    attached = found["gcp:us-central1", "n1-standard-4+1xT4"]
    assert attached.usd_per_hour == pytest.approx(0.19 + 0.35)
    assert all(each.gpus >= 1 and each.usd_per_hour > 0 for each in prices.machines)
    assert all(
        each.spot_usd_per_hour is None or each.spot_usd_per_hour < each.usd_per_hour
        for each in found.values()
    )
    assert all(each.gpu_gb for each in prices.machines)
    assert not any(each.gpu.startswith("tpu") for each in prices.machines)
    assert any("12 GPUs" in note for note in prices.notes)
    assert prices.date == "2026-08"
    assert prices.source


def test_a_list_with_semicolons_is_refused_with_how_to_save_it() -> None:
    with pytest.raises(InputError, match="separated by semicolons: save it with commas"):
        listing((HEAD + ROWS).replace(",", ";"))


def test_egress_has_no_gap_and_marks_what_was_filled() -> None:
    egress = built_in_egress()
    places = sorted(egress.places)
    assert len(places) == 63
    prices = [egress.price(a, b) for a in places for b in places if a != b]
    assert all(price.usd_per_gb > 0 for price in prices)
    assert sum(price.filled for price in prices) == 826
    assert egress.price("aws:us-east-1", "aws:us-east-1").usd_per_gb == 0
    with pytest.raises(InputError, match=r"from aws:us-east-1 to moon:sea"):
        egress.price("aws:us-east-1", "moon:sea")


@pytest.mark.parametrize("price", ["nan", "-1", "0", "1e300", "inf", "", "free", "0x10"])
def test_absurd_prices_are_refused_by_line_and_column(price: str) -> None:
    with pytest.raises(InputError, match=r"own\.csv: line 4, column usd_per_hour: found .*above 0"):
        listing(f"{HEAD}aws,r,a,H100,8,50,\naws,r,b,H100,8,{price},\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEAD + "aws,r,a,H100,0.5,50,\n", "column gpus: found '0.5'; it must be a whole number"),
        (HEAD + "aws,r,a,H100,0,50,\n", "column gpus: found '0'"),
        (HEAD + "aws,,a,H100,1,50,\n", "column region: found an empty cell"),
        (HEAD + "=cmd(),r,a,H100,1,50,\n", "column cloud"),
        (HEAD + "aws,r,a,H100,1,50,nan\n", "column spot_usd_per_hour"),
        (HEAD + "aws,r,a,H100,1\n", "line 3 has 5 cells"),
        (HEAD + "aws,r,a,H100,1,50,\naws,r,a,H100,1,51,\n", "lists a in aws:r twice"),
        (HEAD, "has a header but no rows"),
        ("", "has no table"),
        ("cloud,region\na,b\n", "has no column machine"),
        ("# date: x\ncloud,region,machine,gpu,gpus,usd_per_hour,prize\na,b,c,d,1,1,1\n", "called 'prize'"),
        (HEAD.replace("2026-08-31", "2026-13") + ROWS, "the date is '2026-13'"),
        (HEAD.replace("# date: 2026-08-31\n", "") + ROWS, "has no date"),
    ],
)
def test_wrong_lists_are_refused_with_the_place(text: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        listing(text)
    assert message in str(error.value)


def test_spot_that_is_not_cheaper_is_no_spot() -> None:
    assert [each.spot_usd_per_hour for each in listing().machines] == [20.0, None, None]


def test_a_list_that_was_written_is_the_same_list() -> None:
    again = read_machines(machines_csv(listing()), "again.csv", egress=built_in_egress())
    assert again.machines == listing().machines
    assert again.hash == listing().hash


def test_the_hash_depends_on_prices_and_not_on_names_or_order() -> None:
    prices = listing()
    assert replace(prices, name="x", machines=prices.machines[::-1]).hash == prices.hash
    first = replace(prices.machines[0], usd_per_hour=50.001)
    assert replace(prices, machines=(first, *prices.machines[1:])).hash != prices.hash
    free = replace(prices.egress, tiers={})
    assert replace(prices, egress=free).hash != prices.hash


def test_old_lists_warn_by_the_clock_that_is_given() -> None:
    prices = replace(listing(), egress=replace(built_in_egress(), date="2026-08"))
    assert prices.stale(date(2026, 9, 30)) == ()
    assert [text for text in prices.stale(date(2026, 12, 31)) if "122 days old" in text]
    assert len(prices.stale(date(2026, 12, 31))) == 2
    assert prices.stale(date(2026, 12, 31), after_days=200) == ()
    assert "is to come" in prices.stale(date(2026, 8, 1))[0]  # a year that is misspelt hides no old list


def test_search_sorts_by_the_price_of_a_gpu_and_suggests_names() -> None:
    prices = listing()
    assert [each.machine for each in Search().find(prices)] == ["mid", "big", "small"]
    assert [each.machine for each in Search(gpu="h100", cheapest=True).find(prices)] == ["big"]
    assert [each.machine for each in Search(spot=True).find(prices)] == ["big"]
    assert [each.machine for each in Search(region="eu").find(prices)] == ["mid"]
    assert [each.machine for each in Search(gpus=5).find(prices)] == ["big"]
    with pytest.raises(LookupFailed, match="Did you mean 'H100'"):
        Search(gpu="H10").find(prices)
    with pytest.raises(LookupFailed, match="Did you mean 'us-east-1'"):
        Search(region="us-eats-1").find(prices)


def test_every_region_of_the_catalogue_has_a_continent_and_a_position() -> None:
    assert [place for place in catalogue().places if not continent(place)] == []
    assert {*catalogue().places, *built_in_egress().places} - set(positions()) == set()
    assert all(
        -60 < latitude < 70 and -180 <= longitude <= 180 for latitude, longitude in positions().values()
    )
    assert not means("us", "gcp:australia-southeast1")
    assert means("us", "azure:eastus2")
    assert means("eu", "azure:westeurope")
    assert means("asia-*", "gcp:asia-east1")


def test_two_lists_differ_by_what_changed_came_and_went() -> None:
    other = listing(
        HEAD
        + "aws,us-east-1,big,H100,8,45,20\naws,us-east-1,huge,H100,16,100,\n"
        + "gcp,europe-west4,mid,A100,4,12,12\n"
    )
    assert [(each.machine.machine, each.kind) for each in diff(listing(), other)] == [
        ("big", "changed"),
        ("huge", "new"),
        ("small", "gone"),
    ]
    assert diff(listing(), listing()) == ()


def test_contracts_change_prices_where_they_hold(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(
        "tradewind_contract: 1\nname: ours\nmachines:\n- {cloud: aws, percent_off: 10}\n"
        "- {machine: big, usd_per_hour: 18}\negress:\n- {src: aws, dst: gcp, percent_off: 50}\n"
        "- {src: 'aws:us-east-1', dst: 'gcp:us-east1', usd_per_gb: 0}\n"
    )
    prices = load_contract(path).apply(listing())
    assert [each.usd_per_hour for each in prices.machines] == [18.0, 7.2, 12.0]
    assert prices.machines[0].spot_usd_per_hour is None  # 20 is dearer than the contract
    assert prices.egress.price("aws:us-east-1", "gcp:us-east1").usd_per_gb == 0
    assert prices.egress.price("aws:us-east-1", "gcp:us-west1").usd_per_gb == pytest.approx(0.045)
    assert prices.egress.price("gcp:us-west1", "aws:us-east-1") == built_in_egress().price(
        "gcp:us-west1", "aws:us-east-1"
    )
    assert prices.hash != listing().hash
    assert prices.name == "own.csv at ours"


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        (
            "machines: [{cloud: awz, percent_off: 10}]",
            "ours: machines[0].cloud: No cloud is called 'awz'. Did you mean 'aws'",
        ),
        ("machines: [{cloud: aws, percent_off: 100}]", "percent_off is 100"),
        ("machines: [{cloud: aws}]", "give either percent_off or usd_per_hour"),
        ("machines: [{cloud: aws, usd_per_hour: 0}]", "usd_per_hour is 0"),
        ("machines: [{cloud: aws, usd_per_hour: 1.0e+300}]", "usd_per_hour is 1e+300"),
        ("machines: [{cloud: aws, machine: mid, percent_off: 1}]", "exclude each other"),
        ("machines: [{clod: aws, percent_off: 1}]", "Did you mean 'cloud'"),
        ("egress: [{src: mars, percent_off: 1}]", "covers no pair"),
        ("{}", "has no terms"),
    ],
)
def test_wrong_contracts_are_refused(tmp_path: Path, terms: str, message: str) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("tradewind_contract: 1\nname: ours\n" + terms.replace("{}", "machines: []") + "\n")
    with pytest.raises(InputError) as error:
        load_contract(path).apply(listing())
    assert message in str(error.value)


@pytest.mark.parametrize(
    "tiers", ["0 x1, 10 x2", "5 x1", "0 x1, 10", "0 x1, 10 x0.5, 5 x0.4", "0 x1, 10 xnan"]
)
def test_wrong_tiers_are_refused(tiers: str) -> None:
    with pytest.raises(InputError, match="is not a list of tiers"):
        read_egress(f"# date: 2026\n# tiers aws: {tiers}\nsrc,dst,usd_per_gb\naws:a,aws:b,0.1\n", "e.csv")


@pytest.mark.parametrize(
    ("row", "column"), [("a,aws:b,1", "src"), ("aws:b,aws:b,1", "dst"), ("aws:a,aws:b,-1", "usd_per_gb")]
)
def test_wrong_pairs_are_refused(row: str, column: str) -> None:
    with pytest.raises(InputError, match=f"line 3, column {column}"):
        read_egress(f"# date: 2026\nsrc,dst,usd_per_gb\n{row}\n", "e.csv")


def test_the_commands_list_show_and_compare(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = tmp_path / "own.csv"
    assert (
        tradewind("prices", "--gpu", "H100,A100", "--region", "eu", "--cheapest", "-o", str(own), "--json")
        == 0
    )
    found = json.loads(capsys.readouterr().out)
    assert found["hash"] == catalogue().hash
    assert [each["gpu"] for each in found["machines"]] == ["A100", "H100"]
    assert load_prices(str(own)).machines == Search(gpu="H100,A100", region="eu", cheapest=True).find(
        catalogue()
    )
    assert tradewind("prices", "show", "us-east-1", "--prices", "catalogue") == 0
    shown = capsys.readouterr()
    assert "egress from aws:us-east-1" in shown.out
    assert "days old" in shown.err
    assert tradewind("prices", "show", "p5.48xlarg") == 2
    assert "Did you mean 'p5.48xlarge'" in capsys.readouterr().err
    assert tradewind("prices", "diff", str(own), "catalogue") == 0
    assert f"{len(catalogue().machines) - 2} new, 0 gone" in capsys.readouterr().out
    assert tradewind("prices", "--gpu", "K80", "--region", "eu") == 2
    assert "ask for less" in capsys.readouterr().err
