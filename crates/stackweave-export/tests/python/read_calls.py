"""Queries the calls in a folder of Parquet files with DuckDB, and prints them as JSON."""

import json
import sys
from pathlib import Path

import duckdb

SPANS = """
    select e.start_ns, coalesce(f.qualname, f.name), e.is_call, coalesce(c.qualname, c.name), c.filename, c.line,
        e.address, e.details->>'task'
    from events e join frames f using (frame) left join frames c on e.caller = c.frame
    where e.kind = 'span' order by e.start_ns"""
COLLECTIONS = """
    select (details->>'generation')::int, (details->>'collected')::int from events
    where details->>'generation' is not null"""


def main(folder):
    connection = duckdb.connect()
    for table in ["events", "frames"]:
        [path] = Path(folder, table).rglob("*.parquet")
        connection.execute(f"create view {table} as select * from read_parquet('{path}')")
    query = lambda sql: connection.execute(sql).fetchall()  # noqa: E731
    json.dump({"spans": query(SPANS), "collections": query(COLLECTIONS)}, sys.stdout)


main(sys.argv[1])
