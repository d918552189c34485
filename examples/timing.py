"""A small query planner that records where its time goes: python examples/timing.py

Views are the functions of a program that is unknown to Python: they have names, files and lines, they use each
other, one uses itself, and one cannot be planned. With a path, the recording is kept: python examples/timing.py
planner.swv, and then stackweave export planner.swv -o planner.svg --time-order
"""

import itertools
import sys

import stackweave

FILE = "shop.sql"
VIEWS = """\
create view customers_here as select * from customers join regions
create view open_orders as select * from orders join customers_here join payments join currencies
create view part_tree as select * from parts join suppliers join part_tree
create view late_orders as select * from open_orders join deliveries join carriers join holidays join depots
create view returns as select * from late_orders join complaints
create view overview as select * from late_orders join part_tree join open_orders join staff join shifts
"""
ROWS = {"customers": 20_000, "regions": 12, "orders": 900_000, "payments": 850_000, "currencies": 30, "parts": 5_000}
ROWS |= {"suppliers": 400, "deliveries": 800_000, "carriers": 9, "holidays": 60, "depots": 14, "staff": 300}
ROWS |= {"shifts": 40_000}
DEEPEST_RECURSION, COLUMNS = 4, 30


class Planner:
    def __init__(self, timing):
        self.timing = timing
        self.views = {}

    def load(self, text):
        with self.timing.phase("load schema", FILE, 1):
            for number, line in enumerate(text.splitlines(), 1):
                _, _, name, _, _, _, _, *sources = line.split()
                self.views[name] = (number, [source for source in sources if source != "join"])

    def plan(self, query):
        """Returns the cost, and the order of the tables. Records a row for each query."""
        with self.timing.run("plan", query=query) as run:
            with self.timing.phase("parse"):
                sources = [word for word in query.split()[3:] if word != "join"]
            cost, order = self.best_order([self.expand(source, []) for source in sources])
            run.note(cost=round(cost), tables=len(order))
        return cost, order

    def expand(self, name, inside):
        """Returns the cost of a table, which is its number of rows, or plans a view."""
        if name not in self.views:
            if name not in ROWS:
                raise LookupError(f"no table or view is called {name}")
            return ROWS[name], [name]
        number, sources = self.views[name]
        with self.timing.phase(name, FILE, number):
            if inside.count(name) == DEEPEST_RECURSION:
                return 1, [name]
            cost, order = self.best_order([self.expand(source, [*inside, name]) for source in sources])
            self.bind(order)
            return cost, order

    def bind(self, tables):
        with self.timing.phase("bind columns"):
            return {f"{table}.{column}" for table in tables for column in range(COLUMNS)}

    def best_order(self, parts):
        with self.timing.phase("order joins", parts=len(parts)):
            return min(map(self.cost_of, itertools.permutations(parts)), key=lambda found: found[0])

    def cost_of(self, parts):
        rows, cost, order = 1, 0.0, []
        for part_rows, tables in parts:
            rows = max(rows, part_rows) * 1.1
            cost += rows
            order += tables
        return cost, order


def main(path=None):
    with stackweave.Timing(path, overwrite=True) as timing:
        planner = Planner(timing)
        planner.load(VIEWS)
        for query in ("open_orders", "overview", "returns", "overview join customers_here"):
            try:
                cost, order = planner.plan(f"select * from {query}")
                print(f"{query}: {len(order)} tables, cost {cost:,.0f}")
            except LookupError as error:
                print(f"{query}: {error}")
        print()
        print(timing.recording.phases_text())


if __name__ == "__main__":
    main(*sys.argv[1:2])
