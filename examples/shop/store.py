"""Orders in a database."""

import json
import re
import sqlite3
import zlib
from collections.abc import Iterator
from pathlib import Path

import rates

CARD = re.compile(r"\b\d{12}(\d{4})\b")
TABLE = """
create table orders (number integer primary key, customer integer, day text, goods text, euro real, note text);
create index by_customer on orders (customer, day);
"""


def connect(folder: Path) -> sqlite3.Connection:
    return sqlite3.connect(folder / "shop.db")


def load(folder: Path) -> int:
    """Loads the export into the database, and returns the number of orders."""
    connection = connect(folder)
    connection.executescript(TABLE)
    with connection:
        connection.executemany("insert into orders values (?, ?, ?, ?, ?, ?)", rows(folder))
    (count,) = connection.execute("select count(*) from orders").fetchone()
    connection.close()
    return int(count)


def rows(folder: Path) -> Iterator[tuple[object, ...]]:
    text = zlib.decompress((folder / "orders.jsonl.z").read_bytes()).decode()
    for line in text.splitlines():
        order = json.loads(line)
        euro = rates.in_euro(folder, order["amount"], order["currency"], order["day"])
        yield order["number"], order["customer"], order["day"], order["goods"], euro, masked(order["note"])


def masked(note: str) -> str:
    """Returns the note with only the last digits of card numbers."""
    return CARD.sub(r"…\1", note)


def of_customer(connection: sqlite3.Connection, customer: int) -> list[tuple[int, str, str, float, str]]:
    query = "select number, day, goods, euro, note from orders where customer = ? order by day, number"
    return connection.execute(query, (customer,)).fetchall()
