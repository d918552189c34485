"""Captures of fresh stacks: python fresh_frames.py LIBRARY quick|full from-python|from-c

Figures exclude the same descent without a capture, timed in the same rounds. So they include the cost of freeing frame objects.
"""

import functools
import sys
from typing import Callable, NamedTuple

import contenders
import fresh_stacks
from contenders import Absent, NoPart
from fresh_stacks import FRAMES_BESIDES, RECURSION, THROUGH_C, Descent, Stage, distinct_functions
from library import NATIVE, PART_NAMES, WOVEN, Library
from report import report_result, version

DEPTHS = 5, 20, 100
MIXED_DEPTH = 101
# More chains than any contender caches last stacks.
CHAINS = 8


class Stack(NamedTuple):
    """A case: its name, the captured parts, the number of Python frames, and the source that builds them."""

    name: str
    parts: int
    depth: int
    source: Callable[[int], str]
    chains: int = 1


def stacks():
    for parts, name in PART_NAMES.items():
        for depth in DEPTHS:
            yield Stack(f"{name} {depth}", parts, depth, lambda levels: RECURSION)
    yield Stack("woven 100 functions", WOVEN, 100, distinct_functions)
    for depth in 20, 100:
        alternating = functools.partial(distinct_functions, chains=CHAINS)
        yield Stack(f"woven {depth} alternating", WOVEN, depth, alternating, CHAINS)
    yield Stack("woven 101 through C", WOVEN, MIXED_DEPTH, lambda levels: THROUGH_C)


class FromPython:
    """A Python function calls the contender."""

    bench, leaf_frames = "python/from-python", 1

    def __init__(self, library):
        self.library, self.created = library, {}
        for contender in contenders.ALL:
            try:
                self.created[contender.name] = contender(library)
            except Absent as absent:
                self.created[contender.name] = absent

    def contenders(self):
        return list(self.created)

    def baseline(self):
        return Stage(lambda: None)

    def stage(self, name, parts):
        contender = self.created[name]
        if isinstance(contender, Absent):
            raise contender
        return Stage(contender.leaf(parts))

    def frames(self, name, result):
        return self.created[name].frames(result)

    def python_frames(self, name, result):
        count = getattr(self.created[name], "python_frames", None)
        return count and count(result)


class FromC:
    """A C function, called by the innermost Python frame, calls the contender."""

    bench, leaf_frames = "python/from-c", 0
    names = {"ours": "ours", "PyTorch's way": "torch_way", "torch": "torch"}

    def __init__(self, library):
        self.library, self.absent = library, {}
        reason = library.install_ours()
        if reason:
            self.absent["ours"] = Absent(reason.decode())
        try:
            torch = contenders.Torch(library)
            if not library.bind_torch(torch.big_library):
                self.absent["torch"] = Absent("no such function")
        except Absent as absent:
            self.absent["torch"] = absent

    def contenders(self):
        return list(self.names)

    def _probe(self, number, parts):
        return Stage(self.library.probe, prepare=lambda: self.library.select(number, parts))

    def baseline(self):
        return self._probe(self.library.contender("nothing"), 0)

    def stage(self, name, parts):
        if name in self.absent:
            raise self.absent[name]
        if name == "PyTorch's way":
            contenders.TorchWay(self.library).leaf(parts)
        return self._probe(self.library.contender(self.names[name]), parts)

    def frames(self, name, result):
        return self.library.probe_frames(self.library.contender(self.names[name]))

    def python_frames(self, name, result):
        return None


def count_frames(setup, descent, stages):
    """Returns the frames of each contender's capture on the timed stack, and its Python frames, if the contender reports them."""
    frames, python = {}, {}

    def count():
        for name, stage in stages.items():
            descent.enter(stage)
            result = descent.batch([None])
            frames[name], python[name] = setup.frames(name, result), setup.python_frames(name, result)

    fresh_stacks.on_bare_thread(count)
    return frames, python


def wrong(setup, descent, stack, stages, counted):
    """Returns the contenders that did not capture every Python frame, with the number that they captured."""
    if stack.parts == NATIVE:
        return {}
    frames, python = counted
    native, wrong = {}, {}
    if stack.parts == WOVEN:
        native, _ = count_frames(setup, descent, {name: setup.stage(name, NATIVE) for name in stages})
    for name, captured in frames.items():
        found = python[name] if python[name] is not None or captured is None else captured - native.get(name, 0)
        if found is not None and found != stack.depth:
            wrong[name] = f"wrong: {found} of {stack.depth} Python frames"
    return wrong


def measure(setup, stack, rounds):
    levels = stack.depth - FRAMES_BESIDES - setup.leaf_frames
    descent = Descent(stack.source(levels), levels, stack.chains)
    baseline, stages, absent = setup.baseline(), {}, {}
    for name in setup.contenders():
        try:
            stages[name] = setup.stage(name, stack.parts)
        except NoPart:
            pass
        except Absent as reason:
            absent[name] = reason
    frames, python = count_frames(setup, descent, stages)
    for name, reason in wrong(setup, descent, stack, stages, (frames, python)).items():
        absent[name] = reason
        del stages[name]
    fresh_stacks.measure(descent, [baseline, *stages.values()], rounds, setup.library)
    case = f"{version()}, {stack.name}"
    for name in setup.contenders():
        if name in absent:
            report_result(setup.bench, case, "ns", name, absent=absent[name])
        elif name in stages:
            report_result(setup.bench, case, "ns", name, cost=stages[name].cost(baseline), frames=frames[name])


def main():
    library, effort, kind = Library(sys.argv[1]), sys.argv[2], sys.argv[3]
    setup = (FromPython if kind == "from-python" else FromC)(library)
    for stack in stacks():
        measure(setup, stack, 31 if effort == "quick" else 201)


if __name__ == "__main__":
    main()
