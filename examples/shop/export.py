"""The inputs: the till's export of orders, the bank's rates, and customers' requests for reports.

All of them are generated, and the same in each run.
"""

import json
import random
import zlib
from collections.abc import Iterator
from pathlib import Path

CUSTOMERS = 25
ORDERS = 4000
DAYS = [f"2024-{month:02}-{day:02}" for month in (1, 2) for day in range(1, 29)]
CURRENCIES = ["EUR", "USD", "GBP", "CHF", "JPY", "SEK"]
GOODS = ["kettle", "lamp", "desk, oak", "chair", "rug <wool>", "mirror", "shelf & brackets", "clock"]


def write(folder: Path) -> None:
    """Writes orders as compressed lines of JSON, and rates as one document."""
    made = random.Random(12)
    lines = "".join(json.dumps(order(made, number)) + "\n" for number in range(ORDERS))
    (folder / "orders.jsonl.z").write_bytes(zlib.compress(lines.encode()))
    (folder / "rates.json").write_text(json.dumps(rates(made)), encoding="utf-8")


def order(made: random.Random, number: int) -> dict[str, object]:
    return {
        "number": number,
        "customer": made.randrange(CUSTOMERS),
        "day": made.choice(DAYS),
        "goods": made.choice(GOODS),
        "amount": made.randrange(500, 90_000) / 100,
        "currency": made.choice(CURRENCIES),
        "note": f"paid by card {made.randrange(10**16):016}, please ring twice",
    }


def rates(made: random.Random) -> list[dict[str, object]]:
    return [
        {"day": day, "currency": currency, "euro": round(made.uniform(0.5, 1.5), 4)}
        for day in DAYS
        for currency in CURRENCIES
    ]


def requests(count: int) -> Iterator[tuple[int, str]]:
    """Yields requests: the customer and the form of the report. Most reports are requested more than once."""
    made = random.Random(34)
    for _ in range(count):
        yield made.randrange(CUSTOMERS), made.choice(["html", "html", "json"])
