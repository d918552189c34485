"""Programs under one memory recorder: python measure.py TOOL FOLDER LIBRARY PAIRS PART [PROGRAM...]

Runs each program without and with the recorder in turn, each in a process, and reports results for each such pair. PART divides
the number of repetitions.
"""

import json
import os
import subprocess
import sys
import time

from programs import EVENTS, PROGRAMS
from report import report_result, version
from tools import TOOLS, Plain

RUN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "run.py")
TIMEOUT = 300
REPORT_TIMEOUT = 60
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


def run(command, folder, timeout=TIMEOUT):
    """Returns the CPU seconds and the peak resident size, in bytes, of a process, which must end within the timeout."""
    with open(os.path.join(folder, "output"), "w+b") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=folder)
        until = time.monotonic() + timeout
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() > until:
                process.kill()
                _, _, usage = os.wait4(process.pid, 0)
                process.returncode = -9
                raise Failed(f"took more than {timeout} s")
            time.sleep(0.005)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            output.seek(0)
            lines = output.read().decode(errors="replace").strip().splitlines()
            raise Failed(f"{command[0]}: exit {process.returncode}: {lines[-1][:200] if lines else ''}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def measured(tool, program, times, library, folder):
    """Returns the cost of the work and of its process."""
    result = os.path.join(folder, "result.json")
    if os.path.exists(result):
        os.remove(result)
    tool.clear()
    total, rss = run(tool.command([RUN, program, str(times), library, result]), folder)
    try:
        with open(result) as file:
            found = json.load(file)
    except FileNotFoundError:
        raise Failed("the program did not finish") from None
    if "absent" in found:
        raise Failed(found["absent"])
    return {**found, "total": total, "rss": rss}


def report_pair(case, name, plain, found, events):
    for measure in ("cpu", "wall", "total", "rss"):
        report_result(f"memory/{measure}", case, "x", name, cost=found[measure] / plain[measure])
    report_result("memory/rss-added", case, "MB", name, cost=max(0, found["rss"] - plain["rss"]) / 1e6)
    if events:
        report_result("memory/event", case, "ns", name, cost=(found["cpu"] - plain["cpu"]) / events * 1e9)


def report_outputs(case, name, tool, found, folder):
    """Reports the size of the recorder's file, and the time of its report command."""
    size = tool.size()
    if size is not None:
        report_result("memory/file", case, "MB", name, cost=size / 1e6)
    command = tool.report()
    if command:
        before = time.perf_counter()
        try:
            run(command, folder, REPORT_TIMEOUT)
        except Failed as reason:
            report_result("memory/report", case, "ms", name, absent=reason)
        else:
            report_result("memory/report", case, "ms", name, cost=(time.perf_counter() - before) * 1e3)
    elif "report" in found:
        report_result("memory/report", case, "ms", name, cost=found["report"] * 1e3)


def measure(program, name, pairs, part, library, folder):
    case = f"{version()}, {program}"
    tool, plain_tool = TOOLS[name](folder), Plain(folder)
    times = max(1, PROGRAMS[program][1] // part)
    try:
        if tool.absent():
            raise Failed(tool.absent())
        for pair in range(pairs):
            order = [plain_tool, tool] if pair % 2 == 0 else [tool, plain_tool]
            found = {each: measured(each, program, times, library, folder) for each in order}
            report_pair(case, name, found[plain_tool], found[tool], EVENTS.get(program, 0) * times)
            if order[-1] is tool:
                last = found[tool]
        if order[-1] is not tool:
            last = measured(tool, program, times, library, folder)
            report_outputs(case, name, tool, last, folder)
        tool.clear()
    except Failed as reason:
        for bench, unit in BENCHES.items():
            if bench != "memory/event" or program in EVENTS:
                report_result(bench, case, unit, name, absent=reason)


def main():
    name, folder, library, pairs, part, *programs = sys.argv[1:]
    folder = os.path.join(folder, str(os.getpid()))
    os.mkdir(folder)
    for program in programs or PROGRAMS:
        measure(program, name, int(pairs), int(part), library, folder)


if __name__ == "__main__":
    main()
