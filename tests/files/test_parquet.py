"""Parquet files that decode to far more than they hold are refused before memory is used."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tradewind.files import parquet
from tradewind.files.parquet import read_columns
from tradewind.model.errors import InputError

READ = """
import resource, sys
from pathlib import Path
import pyarrow.parquet, pyarrow.compute
from tradewind.files import parquet
from tradewind.files.parquet import read_columns
from tradewind.model.errors import InputError
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    read_columns(Path(sys.argv[1]))
except InputError as error:
    print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024, error)
"""


def write(path: Path, columns: dict[str, Any], **options: Any) -> Path:
    pq.write_table(
        pa.table(columns), path, compression="zstd", store_schema=False, write_statistics=False, **options
    )
    return path


def repeated(text: str, count: int) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array([0] * count, pa.int32()), pa.array([text]))


def bombs(folder: Path) -> dict[str, Path]:
    """Small files that decode to gigabytes."""
    long = "x" * 1_000_000
    plain = {"use_dictionary": False, "data_page_size": 1 << 30}
    delta = {"use_dictionary": False, "column_encoding": {"a": "DELTA_BYTE_ARRAY"}}
    one = pa.array(["y" * 400_000_000])
    return {
        "decode to more bytes": write(folder / "a", {"a": repeated(long, 20_000)}),
        "decodes to more than": write(folder / "b", {"a": one}, **plain),
        "are delta-encoded": write(folder / "c", {"a": pa.array([long] * 50)}, **delta),
        "decodes to more than 300,000,000": write(
            folder / "f", {"a": pa.array([b"x" * 1_000_000] * 300, pa.binary(1_000_000))}
        ),
        "has nested columns": write(folder / "d", {"a": pa.array([[1] * 5_000_000])}),
        "claims 3,000,000 rows": write(folder / "e", {"a": pa.array([0] * 3_000_000)}),
    }


def test_bombs_are_refused_before_memory_is_used(tmp_path: Path) -> None:
    for why, path in bombs(tmp_path).items():
        assert path.stat().st_size < 150_000
        words = [sys.executable, "-c", READ, str(path)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        used, _, text = done.stdout.partition(" ")
        assert why in text, (why, done.stdout, done.stderr)
        assert int(used) < 60, why  # MB; 7 GB for the first


def test_a_summary_that_claims_small_pages_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "BYTES_PER_ROW", 16)
    path = write(tmp_path / "a", {"a": pa.array(["y" * 40_000_000])}, use_dictionary=False)
    data = path.read_bytes()
    size = int.from_bytes(data[-8:-4], "little")
    claimed = pq.read_metadata(path).row_group(0).column(0).total_uncompressed_size
    footer, varint = data[-8 - size : -8], _zigzag(claimed)
    assert varint in footer
    lie = footer.replace(varint, _zigzag(1 << 24)[:1] + b"\x80" * (len(varint) - 2) + b"\x01")
    path.write_bytes(data[: -8 - size] + lie + data[-8:])
    assert pq.read_metadata(path).row_group(0).column(0).total_uncompressed_size != claimed
    with pytest.raises(InputError, match="decodes to more than"):
        read_columns(path)


def _zigzag(value: int) -> bytes:
    rest, found = value << 1, b""
    while rest > 127:
        rest, found = rest >> 7, found + bytes([rest & 127 | 128])
    return found + bytes([rest])


@pytest.mark.parametrize("options", [{}, {"data_page_version": "2.0"}, {"use_dictionary": False}])
def test_what_is_honest_is_read_as_it_was_written(tmp_path: Path, options: Any) -> None:
    columns: dict[str, Any] = {
        "n": list(range(70_000)),
        "x": [i / 7 for i in range(70_000)],
        "t": [f"text {i % 900}" for i in range(69_999)] + [None],
    }
    path = write(tmp_path / "a", columns, row_group_size=30_000, **options)
    assert read_columns(path, 70_000) == columns
    with pytest.raises(InputError, match="has 70000 rows, not 7"):
        read_columns(path, 7)


def test_a_file_that_is_cut_or_changed_anywhere_is_read_or_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a", {"n": [1, 2, 3], "t": ["a", "b", "b"]})
    data = path.read_bytes()
    for at in range(0, len(data) - 1, 3):
        path.write_bytes(data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :])
        try:
            read_columns(path)
        except InputError:
            continue
