"""Reads a .prof with one of its readers: `pstats_readers.py READER FILE`. Prints the result as JSON."""

import io
import json
import pstats
import subprocess
import sys
from pathlib import Path


def read_pstats(path):
    out = io.StringIO()
    stats = pstats.Stats(path, stream=out)
    result = {
        "functions": [
            [*key, *numbers, [[*caller, *edge] for caller, edge in callers.items()]]
            for key, (*numbers, callers) in stats.stats.items()
        ],
        "total": stats.total_tt,
        "calls": stats.total_calls,
        "primitive": stats.prim_calls,
    }
    stats.sort_stats("cumulative").print_stats()
    stats.print_callers()
    stats.print_callees()
    stats.strip_dirs().sort_stats("name", "ncalls").print_stats(0.5)
    stats.print_callers("f").print_callees("f")
    result["doubled"] = pstats.Stats(path).add(path).total_tt
    stats.get_stats_profile()
    result["text"] = out.getvalue()
    return result


def read_snakeviz(path):
    import snakeviz.stats

    stats = pstats.Stats(path)
    rows = snakeviz.stats.table_rows(stats)
    functions = snakeviz.stats.json_stats(stats)
    return {"rows": rows, "functions": json.loads(json.dumps(functions))}


def read_tuna(path):
    import tuna.main

    tree = tuna.main.read(path)
    tuna.main.render(tree, path)
    return tree


def read_gprof2dot(path):
    program = str(Path(sys.executable).parent / "gprof2dot")
    command = [program, "-f", "pstats", "-n0", "-e0", path]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout


if __name__ == "__main__":
    print(json.dumps(globals()["read_" + sys.argv[1]](sys.argv[2])))
