"""A small shop's order reports: loads a day's export into sqlite, then answers requests from two threads.

    python examples/shop [REQUESTS]

It is correct, but slower than necessary, and keeps memory that it does not need. docs/tutorial.md finds the causes.
"""

import sys
import tempfile
import time
from pathlib import Path

import export
import service
import store


def main() -> None:
    requests = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    with tempfile.TemporaryDirectory(prefix="shop-") as name:
        folder = Path(name)
        export.write(folder)

        began = time.perf_counter()
        orders = store.load(folder)
        loaded = time.perf_counter()
        answers = service.answer_all(folder, export.requests(requests))
        served = time.perf_counter()

    size = sum(len(answer.body) for answer in answers)
    print(f"{orders:,} orders loaded in {loaded - began:.2f} s")
    print(f"{len(answers):,} requests answered in {served - loaded:.2f} s, {size / 1e6:.1f} MB sent")
    print(f"checksum {service.checksum(answers)}")


main()
