"""Threads, one after the other. Their work is always the same; the calls that start them are not."""

import contextvars
import threading

variable = contextvars.ContextVar("variable", default=0)


def fibonacci(number):
    return number if number < 2 else fibonacci(number - 1) + fibonacci(number - 2)


def numbers(limit):
    yield from range(limit)


def work(number, results):
    results.append((number, fibonacci(number), sum(numbers(number))))


class Worker(threading.Thread):
    def __init__(self, results):
        super().__init__()
        self.results = results

    def run(self):
        self.results.append(variable.get())


def handed_over(generator, results):
    results.extend(generator)


def one_after_the_other(thread):
    thread.start()
    thread.join()


def main():
    results = []
    for number in range(6):
        one_after_the_other(threading.Thread(target=work, args=(number, results)))
    assert results[-1] == (5, 5, 10)
    one_after_the_other(Worker(results))
    generator = numbers(4)
    next(generator)
    one_after_the_other(threading.Thread(target=handed_over, args=(generator, results)))
    assert results[-3:] == [1, 2, 3]
    context = contextvars.copy_context()
    context.run(variable.set, 5)
    assert context.run(variable.get) == 5
    local = threading.local()
    local.value = 1
    lock = threading.RLock()
    with lock, lock:
        assert local.value == 1
