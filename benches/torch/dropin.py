"""Measures what torch's tracebacks cost, with torch's functions and with ours in their place. Needs no GPU.

    python benches/torch/dropin.py [FIGURES.json]

`capture`: `gather_traceback` and `CapturedTraceback.extract`, called and dropped, in nanoseconds of the thread's CPU
time, by the number of Python frames. Both take turns in one process; the figures are the minimum and the median of the
rounds. `names`: each in a new process, in wall-clock time. `first`: one traceback of Python frames, captured and named.
`300`: 300 tracebacks with native frames, one from each operation of a small training loop, named; and the same ones
again. Torch has a row for each of its ways to name native functions (TORCH_SYMBOLIZE_MODE).
"""

import contextlib
import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import figures

CALLS, ROUNDS, DEPTHS, TRACEBACKS = 2_000, 9, (5, 20, 100), 300


def using(contender):
    """Returns a context in which torch's functions are those of the contender."""
    if contender == "torch":
        return contextlib.nullcontext()
    import stackweave.torch

    return stackweave.torch.installed()


def calls():
    """Returns the functions to call, looked up each time, because a program gets the installed ones that way."""
    import torch
    from torch.utils._traceback import CapturedTraceback

    return {
        "gather, Python": lambda: torch._C._profiler.gather_traceback(True, True, False),
        "gather, Python and C++": lambda: torch._C._profiler.gather_traceback(True, True, True),
        "extract": lambda: CapturedTraceback.extract(),
        "extract, C++": lambda: CapturedTraceback.extract(cpp=True),
    }


def nanoseconds(call):
    def work():
        for _ in range(200):
            call()
        before = time.thread_time_ns()
        for _ in range(CALLS):
            call()
        return (time.thread_time_ns() - before) / CALLS

    return work


def measure_capture():
    times = {}
    for round_ in range(ROUNDS + 1):
        for contender in ("torch", "ours"):
            with using(contender):
                for name, call in calls().items():
                    for depth in DEPTHS:
                        # The last frame calls the loop, which calls the lambda.
                        taken = figures.at_depth(depth - 1, nanoseconds(call))
                        if round_:
                            times.setdefault((name, depth, contender), []).append(taken)
    found = {" / ".join(map(str, key)): figures.least_and_middle(taken) for key, taken in times.items()}
    rows = []
    for name in calls():
        for depth in DEPTHS:
            of_torch, of_ours = (found[f"{name} / {depth} / {contender}"] for contender in ("torch", "ours"))
            shown = [figures.number(figure[part], 0) for figure in (of_torch, of_ours) for part in ("min", "median")]
            rows.append([name, depth, *shown, f"{of_torch['median'] / of_ours['median']:.1f}x"])
    header = ["", "depth", "torch min ns", "median", "ours min ns", "median", "torch to ours"]
    figures.print_table("a traceback, captured and dropped", header, rows)
    return found


def part_first(contender):
    import torch
    from torch._C import _profiler

    with using(contender):
        before = time.perf_counter()
        captured = _profiler.gather_traceback(True, True, False)
        named = _profiler.symbolize_tracebacks([captured])
        taken = time.perf_counter() - before
    if not named[0]:
        raise RuntimeError("the traceback has no frames")
    return {"first_s": taken, "torch": torch.__version__}


def tracebacks_of_training():
    import torch
    from torch._C import _profiler
    from torch.utils._python_dispatch import TorchDispatchMode

    taken = []

    class Capturing(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, arguments=(), options=None):
            taken.append(_profiler.gather_traceback(True, True, True))
            return function(*arguments, **(options or {}))

    net = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.GELU(), torch.nn.LayerNorm(64), torch.nn.Linear(64, 4))
    optimizer = torch.optim.Adam(net.parameters())
    with Capturing():
        while len(taken) < TRACEBACKS:
            optimizer.zero_grad()
            net(torch.ones(8, 32)).square().mean().backward()
            optimizer.step()
    return taken[:TRACEBACKS]


def part_many(contender):
    from torch._C import _profiler

    with using(contender):
        # Torch imports modules for generated code when it first names a frame; `first` measures that.
        _profiler.symbolize_tracebacks([_profiler.gather_traceback(True, True, False)])
        taken = tracebacks_of_training()
        before = time.perf_counter()
        named = _profiler.symbolize_tracebacks(taken)
        middle = time.perf_counter()
        _profiler.symbolize_tracebacks(taken)
        again = time.perf_counter() - middle
    frames = sum(map(len, named))
    unnamed = sum(frame["name"] in ("", "??") for stack in named for frame in stack)
    return {"cold_s": middle - before, "again_s": again, "frames": frames, "unnamed": unnamed}


def measure_names():
    script = os.path.abspath(__file__)
    found = {"ours": {}}
    modes = {"ours": "fast", "torch, addr2line": "addr2line", "torch, fast": "fast", "torch, dladdr": "dladdr"}
    rows = []
    for name, mode in modes.items():
        contender = name.split(",")[0]
        figure = {}
        for part, timeout in (("first", 30), ("many", 40)):
            if part == "first" and name not in ("ours", "torch, fast"):
                continue
            result = figures.in_a_process(script, "--part", part, contender, timeout=timeout, TORCH_SYMBOLIZE_MODE=mode)
            if "failed" in result:
                print(f"{name}, {part}: {result['failed']}")
            figure.update(result)
        found[name] = figure
        times = [
            figures.number(value and value * 1e3, 2) for value in map(figure.get, ("first_s", "cold_s", "again_s"))
        ]
        rows.append([name, *times, figure.get("frames", "?"), figure.get("unnamed", "?")])
    header = ["", "first ms", f"{TRACEBACKS} ms", "again ms", "frames", "without a name"]
    figures.print_table("names", header, rows)
    return found


PARTS = {"first": part_first, "many": part_many}


def main():
    if sys.argv[1:2] == ["--part"]:
        print(json.dumps(PARTS[sys.argv[2]](sys.argv[3])))
        return
    found = {"machine": figures.machine(with_gpu=False)}
    print(found["machine"])
    for name, measure in (("capture", measure_capture), ("names", measure_names)):
        try:
            found[name] = measure()
        except Exception as error:
            found[name] = {"failed": repr(error)}
            print(f"{name} failed: {error!r}")
        figures.write(sys.argv[1] if len(sys.argv) > 1 else None, found)


if __name__ == "__main__":
    main()
