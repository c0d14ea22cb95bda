"""CSV files read by Arrow, by column. None where the reader row by row might see something else, which then decides."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tradewind.model.arrays import Floats
from tradewind.model.columns import Texts
from tradewind.traces.packed import unpacked


def arrow_columns(path: Path, needed: Sequence[str], optional: Sequence[str]) -> Mapping[str, Texts] | None:
    """The columns that are asked for; None where the file has quotes, other line ends, or is not as it should be."""
    import pyarrow as pa
    from pyarrow import csv

    try:
        data = unpacked(path) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError, zlib.error):
        return None
    head = data[: data.find(b"\n") + 1 or len(data)]
    if b'"' in data or b"\0" in data or data.count(b"\r") != data.count(b"\r\n") or not _is_text(data):
        return None
    names = [name.strip() for name in head.decode().split(",")]
    wanted = [name for name in (*needed, *optional) if name in names]
    if data.startswith(b"\xef\xbb\xbf") or len(set(names)) < len(names) or not set(needed) <= set(names):
        return None
    try:
        table = csv.read_csv(
            pa.BufferReader(data),
            read_options=csv.ReadOptions(column_names=names, skip_rows=1, use_threads=False),
            convert_options=csv.ConvertOptions(
                include_columns=wanted,
                column_types=dict.fromkeys(wanted, pa.string()),
                strings_can_be_null=False,
            ),
        )
        return {name: Texts.of(_whole(table.column(name))) for name in wanted}
    except pa.ArrowException:
        return None


def _is_text(data: bytes) -> bool:
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _whole(column: Any) -> Any:
    """A column as one array."""
    import pyarrow as pa

    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)


def arrow_numbers(column: Texts, *, gaps: bool) -> Floats | None:
    """Finite numbers; with `gaps`, an empty text becomes NaN. None where a text is none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = column.arrow()
    try:
        if gaps:
            texts = pc.if_else(pc.equal(texts, ""), pa.scalar(None, texts.type), texts)
        read: Floats = pc.cast(texts, pa.float64()).to_numpy(zero_copy_only=False)
    except pa.ArrowException:
        return None
    missing = len(texts) - texts.null_count
    return read if int(np.isfinite(read).sum()) == missing else None


def arrow_seconds(column: Texts) -> Any:
    """Times without a zone as datetime64[s]; None where a text is none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        return pc.cast(column.arrow(), pa.timestamp("s")).to_numpy(zero_copy_only=False)
    except pa.ArrowException:
        return None
