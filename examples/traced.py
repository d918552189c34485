"""A small service, for tracing: stackweave trace examples/traced.py

It has tasks, a thread, a generator, spans, a counter and log records. It also runs without a trace.
"""

import asyncio
import json
import logging
import threading

import stackweave

log = logging.getLogger("orders")


class Order:
    def __init__(self, number):
        self.lines = [(f"part {line}", line * number % 7 + 1) for line in range(20)]

    def total(self):
        return sum(self.prices())

    def prices(self):
        for name, amount in self.lines:
            yield len(name) * amount


async def serve(number):
    with stackweave.span("order", number=number):
        order = Order(number)
        await asyncio.sleep(0.001)
        if order.total() > 500:
            log.info("order %d is large", number)
        return json.dumps({"number": number, "total": order.total()})


async def main():
    answers = await asyncio.gather(*map(serve, range(100)))
    stackweave.counter("answers", len(answers))
    print(answers[-1])


def refresh(stopped):
    while not stopped.wait(0.01):
        with stackweave.span("refresh"):
            sum(Order(number).total() for number in range(50))


if __name__ == "__main__":
    log.setLevel(logging.INFO)
    stopped = threading.Event()
    refresher = threading.Thread(target=refresh, args=(stopped,), name="refresher")
    refresher.start()
    asyncio.run(main())
    stopped.set()
    refresher.join()
