"""Functions that the measurements with torch share: timing, tables, child processes, and figures as JSON."""

import _thread
import json
import os
import platform
import queue
import statistics
import subprocess
import sys


def least_and_middle(times):
    return {"min": min(times), "median": statistics.median(times), "rounds": len(times)}


def quick_and_middle(times):
    """Returns the upper bound of the fastest tenth as `quick`, and the median."""
    return {"quick": sorted(times)[len(times) // 10], "median": statistics.median(times), "rounds": len(times)}


def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def at_depth(depth, work):
    """Calls `work` on a new thread, at the bottom of `depth` Python frames, which include its own; at least three."""
    results = queue.Queue()

    def begin():
        try:
            results.put((_down(depth - 3, work), None))
        except BaseException as error:
            results.put((None, error))

    _thread.start_new_thread(begin, ())
    result, error = results.get(timeout=60)
    if error is not None:
        raise error
    return result


def with_frames(depth, work):
    """Calls `work` on this thread, inside `depth` Python frames."""
    frame, there = sys._getframe(), 0
    while frame is not None:
        frame, there = frame.f_back, there + 1
    return _down(max(depth - there - 1, 0), work)


def _down(more, work):
    return _down(more - 1, work) if more > 0 else work()


def machine(with_gpu=True):
    import torch

    gpu = torch.cuda.get_device_name(0) if with_gpu and torch.cuda.is_available() else "none"
    return {"torch": torch.__version__, "python": platform.python_version(), "gpu": gpu, "cores": os.cpu_count()}


def print_table(title, header, rows):
    """Prints a Markdown table, as in the pages."""
    print(f"\n{title}\n")
    widths = [max(len(str(row[column])) for row in [header, *rows]) for column in range(len(header))]
    for row in [header, ["-" * width for width in widths], *rows]:
        print("| " + " | ".join(str(cell).ljust(width) for cell, width in zip(row, widths, strict=True)) + " |")
    sys.stdout.flush()


def write(path, figures):
    if path:
        with open(path, "w") as file:
            json.dump(figures, file, indent=1)
        print(f"\nfigures: {path}")


def in_a_process(script, *arguments, timeout=60, **environment):
    """Runs a script, and returns the last line that it prints, as JSON; a dict with `failed` if there is none."""
    command = [sys.executable, "-W", "ignore", script, *map(str, arguments)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=timeout, env={**os.environ, **environment}
        )
    except subprocess.TimeoutExpired:
        return {"failed": f"took more than {timeout} s"}
    lines = done.stdout.strip().splitlines()
    if done.returncode != 0 or not lines:
        return {"failed": f"exit status {done.returncode}: {(done.stderr or done.stdout).strip()[-600:]}"}
    try:
        return json.loads(lines[-1])
    except ValueError:
        return {"failed": f"printed {lines[-1][:200]!r}"}


def number(value, places=2):
    """Formats a figure for a table; a missing figure is "?"."""
    return "?" if value is None else f"{value:,.{places}f}"
