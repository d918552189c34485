"""Fresh stacks: new activations for every capture, of every contender in turn.

All contenders stand at the end of the same functions, so that only their own cost differs.
"""

import _thread
import functools
import gc
from itertools import repeat
from time import thread_time_ns

BATCH_NS = 400_000
TIMES_TO_ADAPT = 100
# `run`, `take_turns`, `batch`, and the innermost of the levels.
FRAMES_BESIDES = 4

# `leaf`, `LEVELS` and `partial` come with the namespace.
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

CALL_OUTERMOST = """
def batch(repetitions):
    for _ in repetitions:
        result = level_{}()
    return result
"""


def distinct_functions(levels):
    """As `RECURSION`, each level a function of its own."""
    source = ["def level_0():\n    return leaf()\n"]
    source += [f"def level_{level}():\n    return level_{level - 1}()\n" for level in range(1, levels + 1)]
    return "".join(source) + CALL_OUTERMOST.format(levels)


class Descent:
    """Functions that call each other down to a leaf."""

    def __init__(self, source, levels):
        self.names = {"leaf": None, "LEVELS": levels, "partial": functools.partial}
        exec(compile(source, __file__, "exec"), self.names)
        self.batch = self.names["batch"]

    def enter(self, stage):
        stage.prepare()
        self.names["leaf"] = stage.leaf


class Stage:
    """One contender at the end of a descent."""

    def __init__(self, leaf, prepare=lambda: None):
        self.leaf, self.prepare = leaf, prepare
        self.repetitions, self.samples = 1, []


def take_turns(descent, stages, rounds):
    """Samples every stage once a round: nanoseconds of thread CPU time for one descent."""
    for _ in range(rounds):
        for stage in stages:
            descent.enter(stage)
            # The interpreter adapts the innermost call to whom it calls.
            descent.batch(repeat(None, min(stage.repetitions, TIMES_TO_ADAPT)))
            start = thread_time_ns()
            descent.batch(repeat(None, stage.repetitions))
            stage.samples.append((thread_time_ns() - start) / stage.repetitions)


def calibrate(descent, stages):
    for stage in stages:
        descent.enter(stage)
        descent.batch(repeat(None, TIMES_TO_ADAPT))
        while True:
            start = thread_time_ns()
            descent.batch(repeat(None, stage.repetitions))
            if thread_time_ns() - start > BATCH_NS * 0.7:
                break
            stage.repetitions *= 2


def on_bare_thread(function, *arguments):
    """Runs it as the outermost frame of a thread, and hands on what it raises."""
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


def measure(descent, stages, rounds):
    gc.collect()
    gc.disable()
    calibrate(descent, stages)
    on_bare_thread(take_turns, descent, stages, rounds)
    gc.enable()
