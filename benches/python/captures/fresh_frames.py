"""Captures of fresh stacks: python fresh_frames.py LIBRARY quick|full from-python|from-c

Net of the same descent without a capture, timed in the same rounds; what it costs to take frame objects down again is
therefore in.
"""

import functools
import sys
from typing import Callable, NamedTuple

import contenders
import fresh_stacks
from contenders import Absent, NoPart
from fresh_stacks import FRAMES_BESIDES, RECURSION, THROUGH_C, Descent, Stage, distinct_functions
from library import NATIVE, PART_NAMES, WOVEN, Library
from report import tell, version

DEPTHS = 5, 20, 100
MIXED_DEPTH = 101
# So many that nobody remembers the last stack of each.
CHAINS = 8


class Stack(NamedTuple):
    """A case: its name, what is captured, how many Python frames there are, and how to build them."""

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
        self.library, self.made = library, {}
        for contender in contenders.ALL:
            try:
                self.made[contender.name] = contender(library)
            except Absent as absent:
                self.made[contender.name] = absent

    def contenders(self):
        return list(self.made)

    def baseline(self):
        return Stage(lambda: None)

    def stage(self, name, parts):
        contender = self.made[name]
        if isinstance(contender, Absent):
            raise contender
        return Stage(contender.leaf(parts))

    def frames(self, name, result):
        return self.made[name].frames(result)

    def python_frames(self, name, result):
        count = getattr(self.made[name], "python_frames", None)
        return count and count(result)


class FromC:
    """A C function, called by the innermost Python frame, calls the contender."""

    bench, leaf_frames = "python/from-c", 0
    names = {"ours": "ours", "PyTorch's way": "torch_way", "torch": "torch"}

    def __init__(self, library):
        self.library, self.absent = library, {}
        why = library.install_ours()
        if why:
            self.absent["ours"] = Absent(why.decode())
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


def count_frames(way, descent, stages):
    """Frames of each contender's capture, taken on the stack on which it is then timed; of Python only, where it knows."""
    frames, python = {}, {}

    def count():
        for name, stage in stages.items():
            descent.enter(stage)
            result = descent.batch([None])
            frames[name], python[name] = way.frames(name, result), way.python_frames(name, result)

    fresh_stacks.on_bare_thread(count)
    return frames, python


def wrong(way, descent, stack, stages, counted):
    """Whoever did not see every Python frame, and how many it saw."""
    if stack.parts == NATIVE:
        return {}
    frames, python = counted
    native, wrong = {}, {}
    if stack.parts == WOVEN:
        native, _ = count_frames(way, descent, {name: way.stage(name, NATIVE) for name in stages})
    for name, seen in frames.items():
        found = python[name] if python[name] is not None or seen is None else seen - native.get(name, 0)
        if found is not None and found != stack.depth:
            wrong[name] = f"wrong: {found} of {stack.depth} Python frames"
    return wrong


def measure(way, stack, rounds):
    levels = stack.depth - FRAMES_BESIDES - way.leaf_frames
    descent = Descent(stack.source(levels), levels, stack.chains)
    baseline, stages, absent = way.baseline(), {}, {}
    for name in way.contenders():
        try:
            stages[name] = way.stage(name, stack.parts)
        except NoPart:
            pass
        except Absent as why:
            absent[name] = why
    frames, python = count_frames(way, descent, stages)
    for name, why in wrong(way, descent, stack, stages, (frames, python)).items():
        absent[name] = why
        del stages[name]
    fresh_stacks.measure(descent, [baseline, *stages.values()], rounds, way.library)
    case = f"{version()}, {stack.name}"
    for name in way.contenders():
        if name in absent:
            tell(way.bench, case, "ns", name, absent=absent[name])
        elif name in stages:
            tell(way.bench, case, "ns", name, cost=stages[name].cost(baseline), frames=frames[name])


def main():
    library, effort, kind = Library(sys.argv[1]), sys.argv[2], sys.argv[3]
    way = (FromPython if kind == "from-python" else FromC)(library)
    for stack in stacks():
        measure(way, stack, 31 if effort == "quick" else 201)


if __name__ == "__main__":
    main()
