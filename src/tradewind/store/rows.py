"""Rows to be written, many in one statement: a database server takes its time for every question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import sqlalchemy as sql

from tradewind.store import schema


class Put(NamedTuple):
    """A row to be written: a new one, or new values of the row with this key."""

    table: str
    values: Mapping[str, Any]
    key: Mapping[str, Any] = {}


class Kind(NamedTuple):
    """Rows that are written alike: a table, columns that get values, and those by which a row is found."""

    table: str
    columns: tuple[str, ...]
    keys: tuple[str, ...]


Group = tuple[Kind, list[dict[str, Any]]]
_LAST = sql.select(sql.func.max(schema.requests.c.number))


def last_request(connection: sql.Connection) -> int:
    """The number of the last request; databases do not number them."""
    return int(connection.execute(_LAST).scalar() or 0)


def put(connection: sql.Connection, rows: Sequence[Put]) -> None:
    """Write rows in the connection's transaction: new ones first, else in their order."""
    groups: dict[Kind, list[dict[str, Any]]] = {}
    last: int | None = None
    for table, values, key in rows:
        if table == "requests" and not key and "number" not in values:
            last = (last_request(connection) if last is None else last) + 1
            values = {"number": last, **values}
        given = {**values, **{f"key_{name}": value for name, value in key.items()}}
        groups.setdefault(Kind(table, tuple(values), tuple(key)), []).append(given)
    left: list[Group] = sorted(groups.items(), key=lambda group: bool(group[0].keys))
    if connection.dialect.name != "postgresql":
        for kind, each in left:
            connection.execute(_one_at_a_time(kind), each)
        return
    while left:  # a statement has each table once
        now: dict[str, Group] = {}
        for group in left:
            now.setdefault(group[0].table, group)
        left = [group for group in left if now[group[0].table] is not group]
        connection.execute(_together(tuple(kind for kind, _ in now.values())), _given(now))


def _given(groups: Mapping[str, Group]) -> dict[str, list[dict[str, Any]]]:
    """What a statement is given: a table's rows, and of several with new values of the same row the last."""
    return {
        table: list({tuple(row[f"key_{key}"] for key in kind.keys) or n: row for n, row in enumerate(rows)}.values())
        for table, (kind, rows) in groups.items()
    }  # fmt: skip


@cache
def _one_at_a_time(kind: Kind) -> sql.Insert | sql.Update:
    """What writes rows of a kind, one after the other."""
    return _update(kind, sql.bindparam) if kind.keys else schema.tables.tables[kind.table].insert()


@cache
def _together(kinds: tuple[Kind, ...]) -> sql.Select[Any]:
    """What writes rows of several kinds, of each all rows at once, as JSON."""
    found: sql.Select[Any] = sql.select(sql.literal_column("1"))
    for kind in kinds:
        table = schema.tables.tables[kind.table]
        names = [*kind.columns, *(f"key_{key}" for key in kind.keys)]
        types = (table.c[name].type for name in (*kind.columns, *kind.keys))
        rows = sql.func.json_to_recordset(sql.bindparam(kind.table, type_=sql.JSON))
        given = rows.table_valued(*map(sql.column, names, types))
        given = given.render_derived(name=f"given_{kind.table}", with_types=True)
        written = (
            _update(kind, given.c.__getitem__)
            if kind.keys
            else table.insert().from_select(kind.columns, sql.select(given))
        )
        found = found.add_cte(written.cte(f"written_{kind.table}"))
    return found


def _update(kind: Kind, given: Any) -> sql.Update:
    """What changes a row; given: name -> its new value, or (key_…) what finds it."""
    table = schema.tables.tables[kind.table]
    found = [table.c[key] == given(f"key_{key}") for key in kind.keys]
    return table.update().where(*found).values({column: given(column) for column in kind.columns})
