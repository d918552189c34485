"""Measures how many requests a web server answers in a second: plainly, and while Stackweave records it.

    PYTHONPATH=$(scripts/build-package) python benches/server/measure.py [--seconds 5] [--rounds 3]

Needs uvicorn and FastAPI. Each round runs all kinds in turn, each in a new server. Prints a row of JSON for each kind, the medians of
all rounds: the requests in a second, and the processor time of the server for a request. Only ratios within a run count.
"""

import argparse
import http.client
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
#: The kinds of runs, with the command before the server's module.
KINDS = {
    "plain": [],
    "calls": ["-m", "stackweave", "trace", "-q", "-o", "calls.swv", "--overwrite"],
    "memory": ["-m", "stackweave", "memory", "-q", "-o", "memory.swv", "--overwrite"],
    "both": ["-m", "stackweave", "record", "-q", "-o", "both.swv", "--overwrite"],
}
ROWS = 20
WARM_UP = 50


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def connected(port, server):
    """Returns a connection to the server as soon as it listens."""
    while server.poll() is None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        try:
            connection.connect()
            return connection
        except ConnectionRefusedError:
            time.sleep(0.05)
    raise SystemExit(f"the server ended with status {server.returncode}")


def request(connection):
    connection.request("GET", f"/rows/{ROWS}")
    answer = connection.getresponse()
    if answer.status != 200 or len(json.loads(answer.read())) != ROWS:
        raise SystemExit(f"the server answered with status {answer.status}")


def processor_seconds(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measured(kind, seconds, folder):
    """Returns requests in a second, and processor time of the server for each in microseconds."""
    port = free_port()
    command = [sys.executable, *KINDS[kind], "-m", "uvicorn", "--app-dir", HERE, "--log-level", "error", "app:app"]
    server = subprocess.Popen([*command, "--port", str(port)], cwd=folder)
    try:
        connection = connected(port, server)
        for _ in range(WARM_UP):
            request(connection)
        count, used, began = 0, processor_seconds(server.pid), time.perf_counter()
        while time.perf_counter() - began < seconds:
            request(connection)
            count += 1
        lasted, used = time.perf_counter() - began, processor_seconds(server.pid) - used
        return count / lasted, used / count * 1e6
    finally:
        server.send_signal(signal.SIGINT)
        server.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=5.0, help="of requests for each kind and round (5)")
    parser.add_argument("--rounds", type=int, default=3, help="the table is their median (3)")
    arguments = parser.parse_args()
    found = {kind: [] for kind in KINDS}
    with tempfile.TemporaryDirectory(prefix="stackweave-") as folder:
        for _ in range(arguments.rounds):
            for kind, rounds in found.items():
                rounds.append(measured(kind, arguments.seconds, folder))
    plain = statistics.median(cost for _, cost in found["plain"])
    for kind, rounds in found.items():
        rate, cost = (statistics.median(column) for column in zip(*rounds))
        row = {"kind": kind, "requests_per_second": round(rate), "cpu_us_per_request": round(cost)}
        print(json.dumps(row | {"cpu_ratio": round(cost / plain, 2)}))


if __name__ == "__main__":
    main()
