"""cProfile as an oracle of dumps.

`pstats_oracle.py ORACLE record COUNT FOLDER` runs programs of ORACLE, the script that makes random ones, prints their
events and dumps what cProfile counted; `compare` then holds NUMBER.ours.prof against NUMBER.prof.
"""

import importlib.util
import marshal
import pstats
import sys
from pathlib import Path


def load_oracle(path):
    spec = importlib.util.spec_from_file_location("cprofile_oracle", path)
    oracle = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(oracle)
    return oracle


def record(oracle, count, folder):
    for seed in range(count):
        events, statistics = oracle.run(seed)
        print("program", seed)
        for event in events:
            print(*event)
        (folder / f"{seed}.prof").write_bytes(marshal.dumps(statistics))


def in_ticks(numbers):
    calls, more_calls, self_time, total = numbers
    return calls, more_calls, round(self_time * 1e9), round(total * 1e9)


def calls_only(statistics):
    return {
        key: (*numbers[:2], {caller: edge[:2] for caller, edge in callers.items()})
        for key, (*numbers, callers) in statistics.items()
        if key[0] != "~"
    }


def compare(_, count, folder):
    for seed in range(count):
        expected = pstats.Stats(str(folder / f"{seed}.prof")).stats
        ours = pstats.Stats(str(folder / f"{seed}.ours.prof")).stats
        ours = {
            key: (*in_ticks(numbers), {caller: in_ticks(edge) for caller, edge in callers.items()})
            for key, (*numbers, callers) in ours.items()
        }
        if any(file == "~" for file, _, _ in expected):
            # From 3.14 on, Python profiles C functions even if that is disabled: times differ, calls do not.
            ours, expected = calls_only(ours), calls_only(expected)
        assert ours == expected, f"seed {seed}: {ours} instead of {expected}"


if __name__ == "__main__":
    oracle, action, count, folder = sys.argv[1:]
    {"record": record, "compare": compare}[action](load_oracle(oracle), int(count), Path(folder))
