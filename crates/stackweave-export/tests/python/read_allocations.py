"""Queries DuckDB and Polars for the allocations of a folder of Parquet files, and prints the results as JSON."""

import json
import sys

import duckdb
import polars

ROWS = """
    select a.allocator, a.size, a.device, t.name, a.start_ns, a.lifetime_ns, a.thread, a.freed_by, f.name
    from allocations a
    left join stacks s using (process, stack)
    left join frames f on f.process = a.process and f.frame = s.frame
    left join frames t on t.process = a.process and t.frame = a.tag
    order by a.start_ns, a.lifetime_ns nulls last"""
LIVE = "select sum(size)::bigint from allocations where lifetime_ns is null and device = -1"


def main(folder):
    connection = duckdb.connect()
    for table in ["events", "allocations", "stacks", "frames"]:
        files = f"'{folder}/{table}/*/*.parquet'"
        connection.execute(f"create view {table} as from read_parquet({files}, hive_partitioning = true)")
    one = lambda sql: connection.execute(sql).fetchall()  # noqa: E731
    live = polars.scan_parquet(f"{folder}/allocations", hive_partitioning=True)
    live = live.filter(polars.col("lifetime_ns").is_null() & (polars.col("device") == -1))
    seen = {
        "duckdb": one(ROWS),
        "kinds": one("select kind, count(*) from events group by kind order by kind"),
        "live": one(LIVE)[0][0],
        "polars": live.select(polars.col("size").sum()).collect().item(),
    }
    print(json.dumps(seen))


main(sys.argv[1])
