"""Amounts in euro."""

import json
from pathlib import Path


def in_euro(folder: Path, amount: float, currency: str, day: str) -> float:
    return round(amount * rate_on(folder, currency, day), 2)


def rate_on(folder: Path, currency: str, day: str) -> float:
    return read_rates(folder)[currency, day]


def read_rates(folder: Path) -> dict[tuple[str, str], float]:
    """The bank's rates, by currency and day."""
    text = (folder / "rates.json").read_text(encoding="utf-8")
    return {(row["currency"], row["day"]): row["euro"] for row in json.loads(text)}
