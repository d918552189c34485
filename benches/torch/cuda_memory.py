"""Measures what a history of CUDA memory costs: torch's recorder beside ours, in the same run. Needs a GPU.

    python benches/torch/cuda_memory.py [FIGURES.json]

`pair`: Python code creates and drops a tensor of 512 floats on the GPU, which is an allocation and a free. The figures
are microseconds of wall-clock time. All recorders take turns in one process, some hundred pairs at a time; the figures
are the fastest tenth, because the machine may do other work, and the median. Our hook stays in torch once it is
installed, so "bare" is measured before that; "bare, ours attached" is with the hook installed and off. All others are
measured with the hook installed, and compared with that. Depth is the number of Python frames. Torch keeps the last
100,000 events, ours writes them to a file.

`cold`: 100,000 events of a hundred stacks. For torch, `_dump_snapshot` runs in a new process, for each of its ways to
find names. For ours, `stop()` and the export to the same format run in the process, and the command in a new one.
`memory`: the growth of the process's resident size by a million events of a hundred stacks, before anything is
exported.
"""

import functools
import gc
import json
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import figures

PAIRS, TURNS, ROUNDS, DEPTHS = 500, 10, 12, (5, 40)
STACKS, ENTRIES, MANY = 100, 100_000, 1_000_000
EVENTS_OF_PAIR = 3


def churn(pairs):
    """Returns the seconds that `pairs` pairs take. The loop is in this frame."""
    import torch

    empty, device = torch.empty, torch.device("cuda")
    before = time.perf_counter()
    for _ in range(pairs):
        empty(512, device=device)
    return time.perf_counter() - before


def parts_measured():
    """Returns the microseconds of a pair in each part. The first pairs of a stack cost more, and are not measured."""
    churn(300)
    return [churn(PAIRS) / PAIRS * 1e6 for _ in range(TURNS)]


def churn_of_stacks(events):
    """Makes `events` events of a hundred stacks: ten depths, ten lines."""
    import torch

    empty, device = torch.empty, torch.device("cuda")
    lines = "".join("    for _ in range(turns): empty(512, device=device)\n" for _ in range(STACKS // 10))
    space = {"empty": empty, "device": device}
    exec(compile(f"def work(turns):\n{lines}", "generated.py", "exec"), space)
    turns = -(-events // (STACKS * EVENTS_OF_PAIR))
    work = functools.partial(space["work"], turns)
    for depth in range(10, 60, 5):
        figures.at_depth(depth, work)


class Recorders:
    """Recorders: each method returns the times of pairs while it records, part by part."""

    def __init__(self, folder):
        import torch

        self.torch = torch
        self.path = os.path.join(folder, "pairs.swv")

    def timed(self, depth):
        gc.collect()
        gc.disable()
        try:
            return figures.with_frames(depth - 2, parts_measured)
        finally:
            gc.enable()

    def bare(self, depth):
        return self.timed(depth)

    def of_torch(self, depth, stacks):
        history = self.torch.cuda.memory._record_memory_history
        history("all", context="all", stacks=stacks, max_entries=ENTRIES, clear_history=True)
        try:
            return self.timed(depth)
        finally:
            history(None)

    def ours(self, depth, **options):
        import stackweave.torch

        with stackweave.torch.cuda_memory(self.path, overwrite=True, **options) as memory:
            taken = self.timed(depth)
        if memory.stop().lost:
            raise RuntimeError(f"events were lost: {memory.stop().lost}")
        return taken


def measure_pairs(folder):
    import torch

    torch.cuda.init()
    recorders = Recorders(folder)
    contenders = {
        "torch, Python and C++": lambda depth: recorders.of_torch(depth, "all"),
        "torch, Python": lambda depth: recorders.of_torch(depth, "python"),
        "ours": lambda depth: recorders.ours(depth),
        "ours, no stacks of frees": lambda depth: recorders.ours(depth, free_stacks=False),
        "ours, Python": lambda depth: recorders.ours(depth, native=False),
        "bare, ours attached": recorders.bare,
    }
    churn(PAIRS)
    before = {"bare": recorders.bare}
    times = {}
    measure_in_turn(before, times)
    start = time.perf_counter()
    recorders.ours(5)
    print(f"first use of ours, including the build of its hook: {time.perf_counter() - start:.1f} s")
    measure_in_turn(contenders, times)
    found = {f"{name} / {depth}": figures.quick_and_middle(taken) for (name, depth), taken in times.items()}
    for depth in DEPTHS:
        show_pairs(found, [*before, *contenders], depth)
    return found


def measure_in_turn(contenders, times):
    for round_ in range(ROUNDS + 1):
        for name, contender in contenders.items():
            for depth in DEPTHS:
                taken = contender(depth)
                # The first round warms up.
                if round_:
                    times.setdefault((name, depth), []).extend(taken)


def show_pairs(found, names, depth):
    off = found[f"bare, ours attached / {depth}"]
    rows = []
    for name in names:
        figure = found[f"{name} / {depth}"]
        added = [figure[way] - off[way] for way in ("quick", "median")]
        rows.append([name, *map(figures.number, (figure["quick"], figure["median"], *added))])
    header = ["", "fastest tenth us", "median us", "added us", "added, median"]
    figures.print_table(f"a pair of allocation and free at depth {depth}", header, rows)
    for way in ("quick", "median"):
        of_torch, of_ours = (found[f"{name} / {depth}"][way] - off[way] for name in ("torch, Python and C++", "ours"))
        if of_ours > 0:
            found[f"added by torch to added by ours, {way} / {depth}"] = of_torch / of_ours
            print(f"torch adds {of_torch / of_ours:.1f} times as much as ours ({way})")


def part_torch_cold(folder):
    import torch

    torch.cuda.init()
    torch.cuda.memory._record_memory_history("all", context="all", stacks="all", max_entries=ENTRIES)
    churn_of_stacks(ENTRIES)
    path = os.path.join(folder, "torch.pickle")
    before = time.perf_counter()
    torch.cuda.memory._dump_snapshot(path)
    return {"snapshot_s": time.perf_counter() - before, "pickle_bytes": os.path.getsize(path)}


def part_ours_cold(folder):
    import torch

    import stackweave.torch

    torch.cuda.init()
    path, out = os.path.join(folder, "cold.swv"), os.path.join(folder, "ours.pickle")
    memory = stackweave.torch.cuda_memory(path, overwrite=True).start()
    churn_of_stacks(ENTRIES)
    before = time.perf_counter()
    summary = memory.stop()
    stopped = time.perf_counter()
    memory.recording.export(out, overwrite=True)
    exported = time.perf_counter()
    return {
        "stop_s": stopped - before,
        "export_s": exported - stopped,
        "snapshot_s": exported - before,
        "events": summary.events,
        "swv_bytes": os.path.getsize(path),
        "pickle_bytes": os.path.getsize(out),
    }


def part_torch_memory(folder):
    import torch

    torch.cuda.init()
    churn(1000)
    history = torch.cuda.memory._record_memory_history
    history("all", context="all", stacks="all")
    churn_of_stacks(STACKS * EVENTS_OF_PAIR)
    before = figures.resident_bytes()
    churn_of_stacks(MANY)
    return {"grown_bytes": figures.resident_bytes() - before}


def part_ours_memory(folder):
    import torch

    import stackweave.torch

    torch.cuda.init()
    churn(1000)
    path = os.path.join(folder, "many.swv")
    with stackweave.torch.cuda_memory(path, overwrite=True) as memory:
        churn_of_stacks(STACKS * EVENTS_OF_PAIR)
        before = figures.resident_bytes()
        churn_of_stacks(MANY)
        grown = figures.resident_bytes() - before
    return {"grown_bytes": grown, "events": memory.stop().events, "swv_bytes": os.path.getsize(path)}


PARTS = {
    "torch-cold": part_torch_cold,
    "ours-cold": part_ours_cold,
    "torch-memory": part_torch_memory,
    "ours-memory": part_ours_memory,
}


def measure_cold(folder):
    script = os.path.abspath(__file__)
    found = {"ours": figures.in_a_process(script, "--part", "ours-cold", folder, timeout=40)}
    command = [sys.executable, "-m", "stackweave", "export", os.path.join(folder, "cold.swv"), "--overwrite"]
    before = time.perf_counter()
    done = subprocess.run(
        [*command, "-o", os.path.join(folder, "command.pickle")], capture_output=True, text=True, timeout=40
    )
    found["command"] = {"export_s": time.perf_counter() - before}
    if done.returncode != 0:
        found["command"] = {"failed": done.stderr[-600:]}
    for mode, timeout in (("addr2line", 30), ("fast", 20), ("dladdr", 20)):
        found[f"torch, {mode}"] = figures.in_a_process(
            script, "--part", "torch-cold", folder, timeout=timeout, TORCH_SYMBOLIZE_MODE=mode
        )
    rows = []
    for name, figure in found.items():
        if "failed" in figure:
            rows.append([name, figure["failed"][-90:].replace("\n", " "), "", "", "", ""])
            continue
        times = [figures.number(figure.get(key), 3) for key in ("snapshot_s", "stop_s", "export_s")]
        sizes = [figures.number(size and size / 1e6) for size in (figure.get("swv_bytes"), figure.get("pickle_bytes"))]
        rows.append([name, *times, *sizes])
    header = ["", "to the pickle s", "stop s", "export s", ".swv MB", "pickle MB"]
    figures.print_table(f"{ENTRIES:,} events of {STACKS} stacks, cold", header, rows)
    return found


def measure_memory(folder):
    script = os.path.abspath(__file__)
    found = {
        name: figures.in_a_process(script, "--part", part, folder, timeout=40)
        for name, part in (("ours", "ours-memory"), ("torch", "torch-memory"))
    }
    rows = []
    for name, figure in found.items():
        grown = figure.get("grown_bytes")
        rows.append([name, figure.get("failed", figures.number(grown and grown / 1e6, 1)), figure.get("swv_bytes", "")])
    figures.print_table(f"{MANY:,} events of {STACKS} stacks, recorded", ["", "resident MB", "bytes of the file"], rows)
    return found


def main():
    if sys.argv[1:2] == ["--part"]:
        print(json.dumps(PARTS[sys.argv[2]](sys.argv[3])))
        return
    found = {"machine": figures.machine()}
    print(found["machine"])
    with tempfile.TemporaryDirectory(prefix="stackweave-") as folder:
        for name, measure in (("pair", measure_pairs), ("cold", measure_cold), ("memory", measure_memory)):
            try:
                found[name] = measure(folder)
            except Exception as error:
                found[name] = {"failed": repr(error)}
                print(f"{name} failed: {error!r}")
            figures.write(sys.argv[1] if len(sys.argv) > 1 else None, found)


if __name__ == "__main__":
    main()
