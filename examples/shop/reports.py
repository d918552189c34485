"""Reports of a customer's orders."""

import html
import json
import sqlite3
from collections import defaultdict

import store


def render(connection: sqlite3.Connection, customer: int, form: str) -> bytes:
    orders = store.of_customer(connection, customer)
    return as_json(customer, orders) if form == "json" else as_html(customer, orders)


def as_json(customer: int, orders: list[tuple[int, str, str, float, str]]) -> bytes:
    names = ("number", "day", "goods", "euro", "note")
    document = {
        "customer": customer,
        "months": by_month(orders),
        "orders": [dict(zip(names, order, strict=True)) for order in orders],
    }
    return json.dumps(document).encode()


def as_html(customer: int, orders: list[tuple[int, str, str, float, str]]) -> bytes:
    parts = [f"<!doctype html><title>Orders of customer {customer}</title><table class='orders'>"]
    parts += [html_row(order) for order in orders]
    parts.append("</table><table class='months'>")
    parts += [f"<tr><td>{month}<td>{euro:.2f}" for month, euro in by_month(orders).items()]
    parts.append("</table>")
    return "\n".join(parts).encode()


def html_row(order: tuple[int, str, str, float, str]) -> str:
    number, day, goods, euro, note = order
    return (
        f"<tr id='order-{number}'><td class='number'>{number:06}<td class='day'><time datetime='{day}'>{day}</time>"
        f"<td class='goods'><a href='/goods?named={html.escape(goods)}'>{html.escape(goods)}</a>"
        f"<td class='euro'>{euro:.2f} &euro;"
        f"<td class='note'><details><summary>note</summary>{html.escape(note)}</details>"
    )


def by_month(orders: list[tuple[int, str, str, float, str]]) -> dict[str, float]:
    sums: dict[str, float] = defaultdict(float)
    for _, day, _, euro, _ in orders:
        sums[day[:7]] += euro
    return {month: round(euro, 2) for month, euro in sorted(sums.items())}
