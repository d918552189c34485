"""Every call is counted as cProfile counts it: all calls, primitive calls, and the calls from each caller."""

import os
import re
import sys
import unittest

import stackweave
from tests.trace_support import NO_FILE, Counts, TraceCase, key_of, key_of_code, load, profile, reference

#: All programs except those with threads, which cProfile does not see.
PROGRAMS = (
    "asynchronous",
    "callbacks",
    "classes",
    "comprehensions",
    "decorators",
    "exceptions",
    "executing",
    "functional",
    "generators",
    "imports",
    "mixed",
    "records",
    "recursion",
    "serialising",
)
HERE = os.path.dirname(os.path.abspath(__file__))
#: The files of the code that runs only because there is a trace or a profile.
AROUND = (os.path.dirname(stackweave.__file__) + os.sep, os.path.join(HERE, "trace_support.py"))


#: cProfile looks up a native method by name at the type of its receiver: it finds what overrides it, or nothing. We
#: have the names that the methods have where they are defined.
OUR_NAMES = {
    "__init_subclass__": "object.__init_subclass__",
    "__reduce_ex__": "object.__reduce_ex__",
    "Random.seed": "_random.Random.seed",
    "Unpickler.find_class": "_pickle.Unpickler.find_class",
    "from_bytes": "int.from_bytes",
    "socket.close": "_socket.socket.close",
}


def is_around(key):
    return key[0].startswith(AROUND)


def of_program(counts):
    """Returns counts without the code that runs only because calls are counted."""
    functions = {key: value for key, value in counts.functions.items() if not is_around(key)}
    edges = {edge: value for edge, value in counts.edges.items() if not any(map(is_around, edge))}
    return functions, edges


def code_key(code):
    return None if isinstance(code, str) else key_of_code(code)


def native_or_code_key(code):
    if not isinstance(code, str):
        return key_of_code(code)
    name = native_name(code)
    return None if name is None else (NO_FILE, 0, name)


def native_name(shown):
    """Returns the name that a trace has for a native function: cProfile shows a repr."""
    if shown == "<method 'disable' of '_lsprof.Profiler' objects>":
        return None
    for pattern, name in (
        (r"<method '(?P<name>.*)' of '(?P<type>.*)' objects>", "{type}.{name}"),
        (r"<built-in method (?P<name>[\w.]+)>", "{name}"),
        (r"<built-in method (?P<name>\w+) of type object at 0x\w+>", "{name}"),
        (r"<function (?P<name>[\w.]+) at 0x\w+>", "{name}"),
        (r"<method '(?P<name>\w+)'>", "{name}"),
    ):
        match = re.fullmatch(pattern, shown)
        if match:
            shown = name.format(**match.groupdict())
            break
    return OUR_NAMES.get(shown, shown)


def counted(main):
    """Returns what cProfile counts. From 3.14 on it always sees native functions, and loses callers of Python code."""
    counts = Counts.from_profiler(profile(main), code_key)
    if sys.version_info >= (3, 14):
        counts.edges = reference(main).counts.edges
    return counts


class SameAsCProfile(TraceCase):
    maxDiff = 4000

    def assert_same(self, ours, of_cprofile):
        for mine, other in zip(of_program(ours), of_program(of_cprofile)):
            self.assertEqual(differences(mine, other), {})
        self.assertGreater(len(of_program(ours)[0]), 2)

    def test_python_functions(self):
        for name in PROGRAMS:
            main = load(name).main
            main()
            of_cprofile = counted(main)
            for mechanism in self.each_complete_mechanism():
                with self.subTest(program=name):
                    trace = self.trace(main, mechanism=mechanism)
                    self.assert_same(Counts.from_stats(trace.recording.stats()), of_cprofile)
                    check_times(self, trace)
                    stats = trace.tracer_stats()
                    self.assertEqual((stats["repairs"], stats["ignored_ends"], stats["dropped"]), (0, 0, 0))

    def test_native_functions(self):
        for name in PROGRAMS:
            main = load(name).main
            main()
            of_cprofile = Counts.from_profiler(profile(main, builtins=True), native_or_code_key)
            for mechanism in self.each_complete_mechanism():
                if mechanism == "eval":
                    continue
                with self.subTest(program=name):
                    trace = self.trace(main, mechanism=mechanism, c_calls=True)
                    self.assert_same(Counts.from_stats(trace.recording.stats()), of_cprofile)

    def test_functions_of_threads(self):
        """The calls that start a thread differ from run to run, so the test compares only those of the program."""
        program = load("threads")
        program.main()
        of_cprofile = reference(program.main).counts.of(program.__file__)
        self.assertEqual(of_cprofile[0]["fibonacci"], (34, 6))
        for mechanism in self.each_complete_mechanism():
            functions, edges = Counts.from_stats(self.trace(program.main, mechanism=mechanism).recording.stats()).of(
                program.__file__
            )
            # The other profilers start to count inside _bootstrap_inner().
            edges.pop(("_bootstrap_inner", "run"), None)
            self.assertEqual((functions, edges), of_cprofile)

    def test_seeds_of_the_mixed_program(self):
        program = load("mixed")
        for seed in range(8):

            def main(seed=seed):
                program.main(seed * 1000, 600)

            main()
            of_cprofile = counted(main)
            for mechanism in self.each_complete_mechanism():
                with self.subTest(seed=seed):
                    self.assert_same(
                        Counts.from_stats(self.trace(main, mechanism=mechanism).recording.stats()), of_cprofile
                    )

    def test_functions_of_one_name_and_place_are_one(self):
        """The one difference: cProfile distinguishes code objects whose file, line and name are the same."""

        def main():
            for _ in range(3):
                eval("(lambda: 1)()")

        stats = self.trace(main).recording.stats().stats
        called = {key_of(*key): value[1] for key, value in stats.items()}
        self.assertEqual(called[("<string>", 1, "<module>")], 3)
        self.assertEqual(called[("<string>", 1, "<lambda>")], 3)


def check_times(case, trace):
    """Checks that the times agree with each other."""
    stats = trace.recording.stats().stats
    for key, (primitive, calls, own, total, callers) in stats.items():
        case.assertGreaterEqual(total * (1 + 1e-9) + 1e-9, own, key)
        case.assertGreaterEqual(own, 0, key)
        case.assertGreaterEqual(calls, primitive, key)
        if callers:
            case.assertLessEqual(sum(caller[0] for caller in callers.values()), calls, key)
    owned = sum(row[2] for row in stats.values())
    case.assertAlmostEqual(owned, trace.recording.tree().total, places=6)


def differences(mine, other):
    return {
        key: (mine.get(key), other.get(key)) for key in mine.keys() | other.keys() if mine.get(key) != other.get(key)
    }


if __name__ == "__main__":
    unittest.main()
