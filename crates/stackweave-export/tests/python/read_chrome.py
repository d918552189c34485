"""Reads a Chrome trace strictly, checks its structure, lets viztracer load it, and prints its contents as JSON."""

import gzip
import json
import sys
import tempfile
from collections import defaultdict
from decimal import Decimal
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from spans import Tree, nest
from viztracer.report_builder import ReportBuilder

COMMON = {"ph", "pid", "tid"}
# By phase: required keys, and optional ones.
SCHEMA = {
    "M": ({"name", "args"}, set()),
    "X": ({"name", "cat", "ts", "dur"}, {"args", "sf", "bind_id", "flow_in", "flow_out"}),
    "i": ({"name", "cat", "ts", "s"}, {"args", "sf"}),
    "C": ({"name", "cat", "ts", "args"}, set()),
}


def once(pairs):
    keys = [key for key, _ in pairs]
    assert len(keys) == len(set(keys)), f"a key is there twice: {keys}"
    return dict(pairs)


def refuse(constant):
    raise ValueError(f"{constant} is no JSON")


def nanoseconds(time):
    exact = Decimal(time) * 1000
    assert exact == int(exact) and exact >= 0, time
    return int(exact)


def check(event, frames):
    needed, allowed = SCHEMA[event["ph"]]
    keys = set(event)
    assert COMMON | needed <= keys <= COMMON | needed | allowed, event
    assert isinstance(event["name"], str) and isinstance(event["pid"], int) and isinstance(event["tid"], int), event
    assert isinstance(event.get("args", {}), dict) and event.get("args") != {}, event
    if "sf" in event:
        assert event["sf"] in frames, event


def stack(frames, number):
    names = []
    while number is not None:
        frame = frames[number]
        names.insert(0, frame["name"])
        number = frame.get("parent")
    return names


def viztracer_events(path):
    """Returns how many events viztracer has after loading the file, writing a report and loading it again."""
    with tempfile.TemporaryDirectory() as folder:
        report = ReportBuilder([path], verbose=0)
        report.save(f"{folder}/report.html")
        report.save(f"{folder}/again.json")
        assert Path(folder, "report.html").stat().st_size > 0
        return len(json.loads(Path(folder, "again.json").read_text())["traceEvents"])


def main(path):
    data = Path(path).read_bytes()
    text = (gzip.decompress(data) if path.endswith(".gz") else data).decode()
    trace = json.loads(text, parse_float=Decimal, parse_int=int, parse_constant=refuse, object_pairs_hook=once)
    events, frames = trace["traceEvents"], trace["stackFrames"]
    threads, meta, instants, counters = defaultdict(list), [], [], []
    for event in events:
        check(event, frames)
        where = f"{event['pid']}/{event['tid']}"
        if event["ph"] == "X":
            threads[where].append((nanoseconds(event["ts"]), nanoseconds(event["dur"]), event["name"]))
        elif event["ph"] == "M":
            meta.append([where, event["name"], *event["args"].values()])
        elif event["ph"] == "i":
            sampled = stack(frames, event.get("sf"))
            instants.append([where, nanoseconds(event["ts"]), event["name"], sampled, event.get("args", {})])
        else:
            counters.append([where, nanoseconds(event["ts"]), event["name"], event["args"]])
    tree = Tree()
    for spans in threads.values():
        nest(tree, spans)
    unfinished = sum(1 for event in events if event.get("args", {}).get("unfinished"))
    seen = {
        "tree": tree.printed(),
        "meta": meta,
        "instants": instants,
        "counters": counters,
        "args": {event["name"]: event["args"] for event in events if event["ph"] == "X" and "args" in event},
        "unfinished": unfinished,
        "events": len(events),
        "other": trace["otherData"],
        "viztracer": None if path.endswith(".gz") else viztracer_events(path),
    }
    json.dump(seen, sys.stdout, default=float)


main(sys.argv[1])
