"""Records programs, makes report pages, and saves the figures of the exports of the same recordings.

    python make.py FOLDER

The tests in browsers open the pages and compare. `expected.json` has rows of (name, file, line, calls, primitive
calls, own, total); costs are in nanoseconds or bytes.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import stackweave

HERE = Path(__file__).resolve().parent
HOSTILE_ARGUMENT = "</script><script>window.pwned=8</script>"


def run(*command, cwd):
    done = subprocess.run(
        [sys.executable, "-m", "stackweave", *command], cwd=cwd, capture_output=True, text=True, timeout=120
    )
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: {done.stderr}")
    return done.stdout


def rows(costs, scale):
    """Returns costs in the units of the page. Seconds are exact to the nanosecond, as programs take about a second."""
    return sorted(
        [
            row.name,
            row.filename,
            row.lineno,
            row.calls,
            row.primitive_calls,
            round(row.self * scale),
            round(row.total * scale),
        ]
        for row in costs
    )


def expected_of_range(recording):
    """Returns the time range of the middle half of the events: a program may be idle at its start and its end."""
    times = [event.time for event in recording.events()]
    start, end = (round(times[len(times) * quarter // 4], 6) for quarter in (1, 3))
    return {
        "startNs": round(start * 1e9),
        "endNs": round(end * 1e9),
        "rows": rows(recording.top(start=start, end=end), 1e9),
    }


def expected_of_calls(folder):
    recording = stackweave.open(folder / "calls.swv")
    run("export", "calls.swv", "-o", "calls.json", "--format", "chrome", cwd=folder)
    events = json.loads((folder / "calls.json").read_text())["traceEvents"]
    stats = recording.stats()
    return {
        "pstats": sorted(
            [*key, *row[:2], round(row[2] * 1e9), round(row[3] * 1e9)] for key, row in stats.stats.items()
        ),
        "everything": rows(recording.top(all=True), 1e9),
        "default": rows(recording.top(), 1e9),
        "range": expected_of_range(recording),
        "spans": sum(event["ph"] in ("X", "B") for event in events),
        "before": rows(stackweave.open(folder / "before.swv").top(), 1e9),
    }


def expected_of_memory(folder):
    recording = stackweave.open(folder / "memory.swv")
    measures = ["peak", "live", "bytes", "allocations", "temporary"]
    return {
        "measures": {measure: rows(recording.top(measure=measure), 1) for measure in measures},
        "heap": json.loads(run("heap", "memory.swv", "--json", cwd=folder)),
    }


def expected_of_devices(folder):
    return {
        "account": json.loads((folder / "devices.json").read_text()),
        "heap": [json.loads(run("heap", "devices.swv", "--device", str(n), "--json", cwd=folder)) for n in range(2)],
    }


def record(folder):
    run("trace", "-q", "-o", "calls.swv", str(HERE / "calls.py"), "12", cwd=folder)
    run("trace", "-q", "-o", "before.swv", str(HERE / "calls.py"), "6", cwd=folder)
    subprocess.run([sys.executable, str(HERE / "inside.py"), "inside.swv"], cwd=folder, check=True, timeout=120)
    run("memory", "-q", "-o", "memory.swv", str(HERE / "memory.py"), cwd=folder)
    devices = [sys.executable, str(HERE / "devices.py"), "devices.swv", "devices.json"]
    subprocess.run(devices, cwd=folder, check=True, timeout=120)
    run("trace", "-q", "-o", "hostile.swv", str(HERE / "hostile.py"), HOSTILE_ARGUMENT, cwd=folder)


def main(folder):
    folder.mkdir(parents=True)
    record(folder)
    run("report", "calls.swv", "--before", "before.swv", "-o", "calls.html", cwd=folder)
    for name in ("inside", "memory", "devices", "hostile"):
        run("report", f"{name}.swv", "-o", f"{name}.html", cwd=folder)
    inside = {"range": expected_of_range(stackweave.open(folder / "inside.swv"))}
    expected = {
        "calls": expected_of_calls(folder),
        "inside": inside,
        "memory": expected_of_memory(folder),
        "devices": expected_of_devices(folder),
    }
    (folder / "expected.json").write_text(json.dumps(expected, indent=1))


if __name__ == "__main__":
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    main(Path(sys.argv[1]))
