"""Fresh stacks: each capture of each contender, in turn, has new activations of its functions.

The same functions call all contenders, so that only their own cost differs.
"""

import _thread
import functools
import gc
from itertools import repeat
from time import thread_time_ns

from report import median_excess

BATCH_NS = 400_000
TIMES_TO_ADAPT = 100
# `run`, `sample_in_turns`, `batch`, and the innermost level.
FRAMES_BESIDES = 4

# The namespace provides `leaf`, `LEVELS` and `partial`.
RECURSION = """
def descend(levels):
    if levels:
        return descend(levels - 1)
    return leaf()

def batch(repetitions):
    for _ in repetitions:
        result = descend(LEVELS)
    return result
"""

THROUGH_C = """
def descend(levels):
    if levels:
        return through(levels - 1)
    return leaf()

through = partial(descend)

def batch(repetitions):
    for _ in repetitions:
        result = descend(LEVELS)
    return result
"""

CHAIN = """
def chain_{chain}_0():
    return leaf()
"""
LINK = """
def chain_{chain}_{level}():
    return chain_{chain}_{inner}()
"""


def distinct_functions(levels, chains=1):
    """Returns source like `RECURSION`, in which each level is another function; several chains are descended in turn."""
    source = []
    for chain in range(chains):
        source.append(CHAIN.format(chain=chain))
        source += [LINK.format(chain=chain, level=level, inner=level - 1) for level in range(1, levels + 1)]
    calls = "".join(f"        result = chain_{chain}_{levels}()\n" for chain in range(chains))
    return "".join(source) + f"\ndef batch(repetitions):\n    for _ in repetitions:\n{calls}    return result\n"


class Descent:
    """Functions that call each other down to a leaf. Each repetition descends all chains."""

    def __init__(self, source, levels, chains=1):
        self.chains = chains
        self.names = {"leaf": None, "LEVELS": levels, "partial": functools.partial}
        exec(compile(source, __file__, "exec"), self.names)
        self.batch = self.names["batch"]

    def enter(self, stage):
        self.enter_by(stage, stage.leaf)

    def enter_by(self, stage, leaf):
        """Sets the leaf, and calls it until the interpreter has adapted the innermost call to it."""
        stage.prepare()
        self.names["leaf"] = leaf
        self.batch(repeat(None, min(stage.repetitions, TIMES_TO_ADAPT)))


class Stage:
    """A contender at the end of a descent."""

    def __init__(self, leaf, prepare=lambda: None):
        self.leaf, self.prepare = leaf, prepare
        self.repetitions, self.samples, self.inside = 1, [], []

    def cost(self, baseline):
        """Returns the additional cost of a descent over the baseline, but at least the cost of the leaf's call: returning from a deep
        stack can be cheaper after the stack was read.
        """
        return max(median_excess(self.samples, baseline.samples), median_excess(self.inside, baseline.inside))


def sample_in_turns(descent, stages, rounds):
    """Samples every stage once in each round: nanoseconds of thread CPU time for one descent."""
    for _ in range(rounds):
        for stage in stages:
            descent.enter(stage)
            start = thread_time_ns()
            descent.batch(repeat(None, stage.repetitions))
            stage.samples.append((thread_time_ns() - start) / (stage.repetitions * descent.chains))


def sample_leaves_in_turns(descent, stages, rounds, library):
    """Samples only the call of the leaf: nanoseconds of wall-clock time."""
    leaves = [library.timed(stage.leaf) for stage in stages]
    for _ in range(rounds):
        for stage, leaf in zip(stages, leaves):
            descent.enter_by(stage, leaf)
            library.take_timed_ns()
            descent.batch(repeat(None, stage.repetitions))
            stage.inside.append(library.take_timed_ns())


def calibrate(descent, stages):
    for stage in stages:
        descent.enter(stage)
        while True:
            start = thread_time_ns()
            descent.batch(repeat(None, stage.repetitions))
            if thread_time_ns() - start > BATCH_NS * 0.7:
                break
            stage.repetitions *= 2


def on_bare_thread(function, *arguments):
    """Runs a function as the outermost frame of a thread, and reraises its exception."""
    done, raised = _thread.allocate_lock(), []

    def run():
        try:
            function(*arguments)
        except BaseException as error:
            raised.append(error)
        done.release()

    done.acquire()
    _thread.start_new_thread(run, ())
    done.acquire()
    if raised:
        raise raised[0]


def measure(descent, stages, rounds, library):
    gc.collect()
    gc.disable()
    calibrate(descent, stages)
    on_bare_thread(sample_in_turns, descent, stages, rounds)
    on_bare_thread(sample_leaves_in_turns, descent, stages, rounds // 4, library)
    gc.enable()
