"""`tracebacks.py FILE` reads JSON lines, gives each event its frames in PyTorch's shape, and prints each as a line of text."""

import json
import sys


def frame_text(frame):
    name, filename, line = frame["name"], frame["filename"], frame["line"]
    assert isinstance(name, str) and isinstance(filename, str) and type(line) is int, frame
    return f"{filename}:{line}:{name}"


def events(lines):
    """Returns the events of a file, each with its frames, innermost first."""
    frames, stacks = {}, {None: []}
    for line in lines:
        item = json.loads(line)
        match item.pop("define", None):
            case "frame":
                frames[item.pop("frame")] = item
            case "stack":
                stacks[item["stack"]] = [frames[item["frame"]], *stacks[item["callers"]]]
            case None:
                yield {**item, "frames": stacks[item["stack"]]}


def read(path):
    with open(path, encoding="utf-8", newline="\n") as lines:
        for event in events(lines):
            assert type(event["time_ns"]) is int and type(event["process"]) is int and type(event["thread"]) is int
            frames = "; ".join(frame_text(frame) for frame in event["frames"])
            print(event["time_ns"], event["kind"], event.get("name", ""), frames, sep=" | ")


if __name__ == "__main__":
    read(sys.argv[1])
