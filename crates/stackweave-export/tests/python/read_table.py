"""Reads a table of allocations by Python's csv and by Polars, and prints the results as JSON."""

import csv
import json
import sys

import polars


def main(path):
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file, strict=True))
    table = polars.read_csv(path)
    print(json.dumps({"rows": rows, "polars": [table.height, table["size"].sum()]}))


main(sys.argv[1])
