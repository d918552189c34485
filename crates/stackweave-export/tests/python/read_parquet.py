"""Queries a folder of Parquet files with DuckDB and Polars, and prints the results as JSON."""

import contextlib
import io
import json
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import duckdb
import polars
from spans import Tree

TABLES = ["events", "stacks", "frames", "modules", "threads", "processes"]
# Calls, primitive calls, self and total nanoseconds of each function.
FUNCTIONS = """
    select coalesce(any_value(f.qualname), any_value(f.name)), count(*), count(*) filter (e.is_outermost),
        sum(e.self_ns)::bigint, coalesce(sum(e.duration_ns) filter (e.is_outermost), 0)::bigint
    from events e join frames f using (process, frame) where e.kind = 'span'
    group by process, f.function order by all"""
# Weights of samples by stack, outermost function first.
SAMPLES = """
    with recursive path(process, stack, callers, names) as (
        select process, stack, callers, [coalesce(qualname, name)] from stacks join frames using (process, frame)
        union all
        select p.process, p.stack, s.callers, list_prepend(coalesce(f.qualname, f.name), p.names)
        from path p join stacks s on s.process = p.process and s.stack = p.callers
        join frames f on f.process = s.process and f.frame = s.frame
    )
    select p.names, sum(e.weight)::bigint from events e join path p using (process, stack)
    where e.kind = 'sample' and p.callers is null group by p.names order by all"""
BYTES = "select sum(size)::bigint from events where kind = 'allocate'"
LIVE = """
    select coalesce(sum(size), 0)::bigint from (
        select size, kind, row_number() over (partition by process, address order by start_ns desc) as nth
        from events where kind in ('allocate', 'free')
    ) where nth = 1 and kind = 'allocate'"""


def with_duckdb(folder):
    connection = duckdb.connect()
    for table in TABLES:
        files = f"'{folder}/{table}/*/*.parquet'"
        connection.execute(f"create view {table} as from read_parquet({files}, hive_partitioning = true)")
    one = lambda sql: connection.execute(sql).fetchall()  # noqa: E731
    describe = {table: {row[0]: row[1] for row in one(f"describe {table}")} for table in TABLES}
    return {
        "functions": one(FUNCTIONS),
        "samples": one(SAMPLES),
        "bytes": one(BYTES)[0][0],
        "live": one(LIVE)[0][0],
        "processes": one("select process, pid, host, command_line, epoch_ns(started) from processes order by process"),
        "counts": {table: one(f"select count(*) from {table}")[0][0] for table in TABLES},
        "columns": describe,
    }


def with_polars(folder):
    scan = lambda table: polars.scan_parquet(f"{folder}/{table}", hive_partitioning=True)  # noqa: E731
    named = scan("frames").with_columns(shown=polars.coalesce("qualname", "name"))
    spans = scan("events").filter(polars.col("kind") == "span").join(named, on=["process", "frame"])
    self_time = polars.col("self_ns").sum()
    total = polars.col("duration_ns").filter("is_outermost").sum()
    primitive = polars.col("is_outermost").sum()
    functions = spans.group_by("process", "function").agg(
        polars.col("shown").first(), polars.len(), primitive, self_time, total
    )
    rows = functions.select("shown", "len", "is_outermost", "self_ns", "duration_ns").collect().rows()
    return {"functions": sorted(map(list, rows)), "tree": tree_of(spans.collect())}


def tree_of(spans):
    """Returns calls by the numbers of spans: parents begin before their children."""
    tree, paths = Tree(), {}
    columns = ["process", "span", "parent", "shown", "duration_ns", "self_ns"]
    for process, span, parent, name, duration, self_time in spans.sort("process", "span").select(columns).iter_rows():
        paths[process, span] = [*paths.get((process, parent), []), name]
        tree.add(paths[process, span], duration, duration - self_time)
    return tree.printed()


def documented(folder, page):
    """Runs the queries of the documentation page, and returns their results."""
    text = Path(page).read_text().replace("out.parquet", folder)
    sql, live = re.findall("```sql\\n(.*?)```", text, re.S)
    python = next(block for block in re.findall("```python\\n(.*?)```", text, re.S) if "polars" in block)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(python, {"polars": polars})
    given = {name: duckdb.connect().execute(query).fetchall() for name, query in [("duckdb", sql), ("live", live)]}
    return {**given, "polars": printed.getvalue()}


def main(folder, page=None):
    seen = {"duckdb": with_duckdb(folder), "polars": with_polars(folder)}
    if page:
        seen["documented"] = documented(folder, page)
    json.dump(seen, sys.stdout)


main(*sys.argv[1:])
