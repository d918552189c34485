"""Python threads that allocate and free in the host, with the GIL and without, beside threads of the host's own, while
every stack is compared with the truth: python drive.py LIBSTACKWEAVE LIBHOST [SECONDS [THREADS]]
"""

import ctypes
import faulthandler
import random
import sys
import threading
import time

import library
import truth

ALLOCATE = (
    "native host::StackweaveRecorder::capture",
    "native host::DeviceAllocator::allocate",
    "native host_allocate",
)
FREE = ("native host::StackweaveRecorder::capture", "native host::DeviceAllocator::free", "native host_free")
DEEPEST, MOST_HELD, ROUND = 6, 64, 300
# Beyond what the first two rounds need, in which each thread meets all of its stacks.
MOST_GROWTH = 4 << 20
TEMPLATE = """
def generated_{number}(churn, random, depth):
{padding}    return churn.descend(random, depth)
"""


class Churn:
    """What one thread does, over and over: walk down a random path of calls, then allocate or free at its end."""

    def __init__(self, hosts, truths):
        self.hosts = hosts
        self.truths = truths
        self.held = []
        self.rounds = 0

    def run(self, seed, stop):
        while not stop.is_set():
            generator = random.Random(seed)
            for _ in range(ROUND):
                self.descend(generator, generator.randrange(DEEPEST))
            while self.held:
                self.free(generator.choice(self.hosts))
            self.rounds += 1

    def descend(self, generator, depth):
        if depth == 0:
            return self.arrive(generator)
        return generator.choice(self.STEPS)(self, generator, depth - 1)

    def directly(self, generator, depth):
        return self.descend(generator, depth)

    def by_comprehension(self, generator, depth):
        return [self.descend(generator, depth) for _ in range(1)]

    def by_generator(self, generator, depth):
        return next(self.descend(generator, depth) for _ in range(1))

    def by_generated_code(self, generator, depth):
        """Code objects that come and go, at addresses that are used again."""
        number = generator.randrange(20)
        names = {}
        source = TEMPLATE.format(number=number, padding="    pass\n" * number)
        exec(compile(source, f"generated_{number}.py", "exec"), names)
        return names[f"generated_{number}"](self, generator, depth)

    def through_the_host(self, generator, depth):
        host, kind = self.hosts[0], library.CALLBACK
        callback = kind(lambda: (self.descend(generator, depth), 0)[1])
        with self.truths.crossing():
            return host.host_call(callback)

    def through_the_host_with_gil(self, generator, depth):
        host, kind = self.hosts[1], library.CALLBACK_WITH_GIL
        callback = kind(lambda: (self.descend(generator, depth), 0)[1])
        with self.truths.crossing():
            return host.host_call(callback)

    STEPS = (
        directly,
        by_comprehension,
        by_generator,
        by_generated_code,
        through_the_host,
        through_the_host_with_gil,
    )

    def arrive(self, generator):
        host = generator.choice(self.hosts)
        if self.held and (len(self.held) == MOST_HELD or generator.randrange(2)):
            self.free(host)
        else:
            self.allocate(host, generator.randrange(1, 1 << 16))

    def allocate(self, host, size):
        self.held.append(host.host_allocate(size, self.truths.of(sys._getframe(), ALLOCATE)))

    def free(self, host):
        assert host.host_free(self.held.pop(), self.truths.of(sys._getframe(), FREE))


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def check(stackweave, host, truths):
    """Compares every pair of truth and stack so far. How many there are, and how many captures they stand for."""
    pairs = library.witnesses(host)
    resolved = stackweave.resolve([stack for _, stack, _ in pairs])
    for (number, _, _), frames in zip(pairs, resolved, strict=True):
        functions = host.host_functions_of(number)
        if functions is None:
            expected = list(truths.stacks[number])
        else:
            expected = [f"native {name}" for name in functions.decode().split()]
        found = truth.seen(frames, "libhost.so")
        if found != expected:
            show = "\n    ".join
            raise SystemExit(f"wrong stack:\n    {show(found)}\n  expected:\n    {show(expected)}\n  all: {frames}")
    return len(pairs), sum(count for _, _, count in pairs)


def main():
    stackweave = library.Stackweave(sys.argv[1])
    hosts = [library.load_host(sys.argv[2], loader) for loader in (ctypes.CDLL, ctypes.PyDLL)]
    seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 2
    threads = int(sys.argv[4]) if len(sys.argv) > 4 else 3
    faulthandler.dump_traceback_later(seconds * 4 + 120, exit=True)
    stackweave.enable_python()
    truths, stop = truth.Truths(), threading.Event()
    churns = [Churn(hosts, truths) for _ in range(threads)]
    runners = [threading.Thread(target=churn.run, args=(seed, stop)) for seed, churn in enumerate(churns)]
    hosts[0].host_start_workers(2)
    for runner in runners:
        runner.start()
    while min(churn.rounds for churn in churns) < 2:
        time.sleep(0.05)
    end = time.monotonic() + seconds / 2
    while time.monotonic() < end:
        check(stackweave, hosts[0], truths)
        time.sleep(min(1, seconds / 8))
    # Captures alone: what a check takes and gives back to the system is Python's.
    before = resident()
    time.sleep(seconds / 2)
    growth = resident() - before
    stop.set()
    for runner in runners:
        runner.join()
    blocks = hosts[0].host_stop_workers()
    pairs, captures = check(stackweave, hosts[0], truths)
    assert growth < MOST_GROWTH, f"{growth} bytes more"
    assert blocks > 0
    print(
        f"{captures} captures, {pairs} distinct, all right; {blocks} of the host's own blocks, {growth >> 10} KiB more"
    )


if __name__ == "__main__":
    main()
