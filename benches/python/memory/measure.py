"""Programs under one recorder of memory: python measure.py TOOL FOLDER LIBRARY PAIRS PART [PROGRAM...]

Each program is run without and with the recorder in turn, a process each; a line is told for each such pair. PART: so
many repetitions of a program become one.
"""

import json
import os
import subprocess
import sys
import time

from programs import EVENTS, PROGRAMS
from report import tell, version
from tools import TOOLS, Plain

RUN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "run.py")
LONGEST = 300
LONGEST_REPORT = 60
BENCHES = {
    "memory/cpu": "x",
    "memory/wall": "x",
    "memory/total": "x",
    "memory/event": "ns",
    "memory/rss": "x",
    "memory/rss-added": "MB",
    "memory/file": "MB",
    "memory/report": "ms",
}


class Failed(Exception):
    pass


def run(command, folder, longest=LONGEST):
    """CPU seconds and the highest resident size of a process, in bytes. It ends within so many seconds."""
    with open(os.path.join(folder, "said"), "w+b") as said:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, cwd=folder)
        until = time.monotonic() + longest
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() > until:
                process.kill()
                _, _, usage = os.wait4(process.pid, 0)
                process.returncode = -9
                raise Failed(f"took more than {longest} s")
            time.sleep(0.005)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            said.seek(0)
            lines = said.read().decode(errors="replace").strip().splitlines()
            raise Failed(f"{command[0]}: exit {process.returncode}: {lines[-1][:200] if lines else ''}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def measured(tool, program, times, library, folder):
    """What the work and its process took."""
    result = os.path.join(folder, "result.json")
    if os.path.exists(result):
        os.remove(result)
    tool.clear()
    total, rss = run(tool.command([RUN, program, str(times), library, result]), folder)
    try:
        with open(result) as file:
            found = json.load(file)
    except FileNotFoundError:
        raise Failed("the program did not come to its end") from None
    if "absent" in found:
        raise Failed(found["absent"])
    return {**found, "total": total, "rss": rss}


def tell_pair(case, name, plain, found, events):
    for what in ("cpu", "wall", "total", "rss"):
        tell(f"memory/{what}", case, "x", name, cost=found[what] / plain[what])
    tell("memory/rss-added", case, "MB", name, cost=max(0, found["rss"] - plain["rss"]) / 1e6)
    if events:
        tell("memory/event", case, "ns", name, cost=(found["cpu"] - plain["cpu"]) / events * 1e9)


def tell_left(case, name, tool, found, folder):
    """What it leaves, and how long it takes to look at that."""
    size = tool.size()
    if size is not None:
        tell("memory/file", case, "MB", name, cost=size / 1e6)
    command = tool.report()
    if command:
        before = time.perf_counter()
        try:
            run(command, folder, LONGEST_REPORT)
        except Failed as why:
            tell("memory/report", case, "ms", name, absent=why)
        else:
            tell("memory/report", case, "ms", name, cost=(time.perf_counter() - before) * 1e3)
    elif "report" in found:
        tell("memory/report", case, "ms", name, cost=found["report"] * 1e3)


def measure(program, name, pairs, part, library, folder):
    case = f"{version()}, {program}"
    tool, plain_tool = TOOLS[name](folder), Plain(folder)
    times = max(1, PROGRAMS[program][1] // part)
    try:
        if tool.absent():
            raise Failed(tool.absent())
        for pair in range(pairs):
            order = [plain_tool, tool] if pair % 2 == 0 else [tool, plain_tool]
            found = {one: measured(one, program, times, library, folder) for one in order}
            tell_pair(case, name, found[plain_tool], found[tool], EVENTS.get(program, 0) * times)
            if order[-1] is tool:
                left = found[tool]
        if order[-1] is not tool:
            left = measured(tool, program, times, library, folder)
        tell_left(case, name, tool, left, folder)
        tool.clear()
    except Failed as why:
        for bench, unit in BENCHES.items():
            if bench != "memory/event" or program in EVENTS:
                tell(bench, case, unit, name, absent=why)


def main():
    name, folder, library, pairs, part, *programs = sys.argv[1:]
    folder = os.path.join(folder, str(os.getpid()))
    os.mkdir(folder)
    for program in programs or PROGRAMS:
        measure(program, name, int(pairs), int(part), library, folder)


if __name__ == "__main__":
    main()
