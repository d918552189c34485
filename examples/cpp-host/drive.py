"""Python threads that allocate and free in the host, with and without the GIL, beside the host's own threads, while
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
DEEPEST, MAX_HELD, ROUND = 6, 64, 300
# The growth after the first two rounds, in which each thread meets all of its stacks.
MAX_GROWTH = 4 << 20
TEMPLATE = """
def generated_{number}(churn, random, depth):
{padding}    return churn.descend(random, depth)
"""


class Churn:
    """The work of one thread: repeatedly follows a random path of calls, and allocates or frees at its end."""

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
        """Creates and drops code objects, whose addresses are reused."""
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
        if self.held and (len(self.held) == MAX_HELD or generator.randrange(2)):
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
    """Compares every pair of truth and stack so far. Returns their number, and the number of their captures."""
    pairs = library.witnesses(host)
    resolved = stackweave.resolve([stack for _, stack, _ in pairs])
    for (number, _, _), frames in zip(pairs, resolved, strict=True):
        functions = host.host_functions_of(number)
        if functions is None:
            expected = list(truths.stacks[number])
        else:
            expected = [f"native {name}" for name in functions.decode().split()]
        found = truth.found(frames, "libhost.so")
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
    # Only captures: checks allocate and free memory of Python.
    before = resident()
    time.sleep(seconds / 2)
    growth = resident() - before
    stop.set()
    for runner in runners:
        runner.join()
    blocks = hosts[0].host_stop_workers()
    pairs, captures = check(stackweave, hosts[0], truths)
    assert growth < MAX_GROWTH, f"{growth} bytes more"
    assert blocks > 0
    print(
        f"{captures} captures, {pairs} distinct, all correct; {blocks} blocks of host threads, {growth >> 10} KiB more"
    )


if __name__ == "__main__":
    main()
