"""Runs the steps of one page, in a separate process and folder, and prints the output of each as JSON.

The files exist from the start, so that a page may show a program after the command that runs it. A later file of the
same name replaces the first at its position. The Python blocks of a page are one program, `app.py`, which grows from
block to block. Commands are run beside it.
"""

import contextlib
import glob
import importlib.util
import io
import json
import linecache
import os
import re
import subprocess
import sys
import traceback
import types

PROGRAM = "app.py"
TIMEOUT = 100


def main():
    """Reads steps from standard input, and writes results to the original standard output."""
    steps = json.load(sys.stdin)
    results = []
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    program = types.ModuleType("__main__")
    program.__file__ = os.path.abspath(PROGRAM)
    sys.modules["__main__"] = program
    for step in reversed(steps):
        if step["kind"] == "file":
            write_file(step["name"], step["body"])
    source = ""
    for step in steps:
        missing = [name for name in step["needs"] if importlib.util.find_spec(name) is None]
        if missing:
            results.append({"skipped": ", ".join(missing)})
        elif step["kind"] == "file":
            write_file(step["name"], step["body"])
            results.append({})
        elif step["kind"] == "python":
            first = source.count("\n")
            source += step["body"].rstrip("\n") + "\n"
            results.append(run_python(with_real_numbers(step["body"]), first, source, vars(program)))
        else:
            results.append({"commands": [run_command(with_real_numbers(each)) for each in step["commands"]]})
        if "failed" in results[-1]:
            break
    json.dump(results, out)
    out.close()


def write_file(name, body):
    os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
    with open(name, "w", encoding="utf-8") as file:
        file.write(body)


def run_python(body, first, source, names):
    write_file(PROGRAM, source)
    linecache.checkcache(PROGRAM)
    printed = io.StringIO()
    try:
        code = compile("\n" * first + body, names["__file__"], "exec")
        with contextlib.redirect_stdout(printed):
            exec(code, names)
    except BaseException:
        return {"printed": printed.getvalue(), "failed": traceback.format_exc()}
    return {"printed": printed.getvalue()}


def run_command(command):
    """Runs a command in bash, with both outputs in one, as in a terminal."""
    done = subprocess.run(
        ["bash", "-c", command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT,
    )
    return {"printed": done.stdout, "status": done.returncode}


def with_real_numbers(text):
    """Replaces the number of `train.4242.swv` in a page by that of the process."""

    def newest(found):
        there = [path for path in glob.glob(f"{found[1]}.*.{found[2]}") if re.search(r"\.\d+\.\w+$", path)]
        return max(there, key=os.path.getmtime) if there else found[0]

    return re.sub(r"([\w/-]+)\.4242\.(swv)", newest, text)


if __name__ == "__main__":
    main()
