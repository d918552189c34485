"""Python frames are those that `traceback.extract_stack` finds, however the code was reached."""

import asyncio
import contextlib
import ctypes
import functools
import gc
import io
import pickle
import signal
import sys
import threading
import types
import weakref
from importlib.machinery import ModuleSpec

from tests.support import WitnessCase


class Calls(WitnessCase):
    def test_plain_calls_agree(self):
        def outer():
            return middle() + 1

        def middle():
            return (lambda: self.witness())()

        outer()
        self.assert_same_stacks()

    def test_a_call_over_several_lines_agrees(self):
        def call(function, *_arguments):
            return function(
                1,
                2,
            )

        call(
            self.witness,
            [
                3,
            ],
        )
        self.assert_same_stacks()

    def test_methods_and_class_bodies_agree(self):
        witness = self.witness

        class Meta(type):
            def __new__(cls, name, bases, members):
                witness()
                return super().__new__(cls, name, bases, members)

        class Thing(metaclass=Meta):
            witness()

            def __init__(self):
                witness()

            @property
            def shown(self):
                return witness()

            @classmethod
            def made(cls):
                witness()
                return cls()

            def __getattr__(self, name):
                return witness()

            def __len__(self):
                return witness()

            def __eq__(self, other):
                return bool(witness())

        thing = Thing.made()
        for _ in range(20):  # Hot enough for specialised calls.
            Thing()
        len(thing), thing.shown, thing.missing, thing == thing, [thing].count(Thing())
        self.assert_same_stacks(27)

    def test_recursion_agrees(self):
        def recurse(depth):
            return self.witness() if depth == 0 else recurse(depth - 1)

        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(6000)
        try:
            recurse(5000)
        finally:
            sys.setrecursionlimit(limit)
        captured = self.witness.seen[0][0]
        self.assertGreater(sum(frame.name == "recurse" for frame in captured.frames), 5000)
        self.assert_same_stacks()

    def test_comprehensions_and_closures_agree(self):
        [self.witness() for _ in range(2)]
        {self.witness() for _ in range(2)}
        {n: self.witness() for n in range(2)}
        tuple(self.witness() for _ in range(2))
        self.assert_same_stacks(8)

    def test_exec_and_eval_agree(self):
        exec("def f():\n  witness()\nf()", {"witness": self.witness})
        eval("witness()", {"witness": self.witness})
        eval(compile("\n\nwitness()", "no such file.py", "eval"), {"witness": self.witness})
        self.assert_same_stacks(3)


class CallsThroughNativeCode(WitnessCase):
    def test_keys_and_maps_agree(self):
        sorted([3, 1, 2], key=lambda value: self.witness(value))
        [3, 1].sort(key=self.witness)
        max([1, 2], key=self.witness)
        list(map(self.witness, [1, 2]))
        list(filter(self.witness, [1, 2]))
        self.assert_same_stacks(9)

    def test_functools_agree(self):
        functools.reduce(lambda a, b: self.witness(a, b), [1, 2, 3])
        functools.partial(self.witness, 1)()
        functools.lru_cache(lambda n: self.witness(n))(1)
        functools.singledispatch(self.witness)(1)
        sorted([2, 1], key=functools.cmp_to_key(lambda a, b: self.witness()))
        self.assert_same_stacks(6)

    def test_ctypes_callbacks_agree(self):
        compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
        numbers = (ctypes.c_int * 4)(3, 1, 4, 2)
        ctypes.CDLL(None).qsort(numbers, 4, ctypes.sizeof(ctypes.c_int), compare(lambda a, b: self.witness()))
        self.assert_same_stacks(3)

    def test_pickling_callbacks_agree(self):
        witness = self.witness

        class Pickled:
            def __reduce__(self):
                witness()
                return (str, ("x",))

        class Pickler(pickle.Pickler):
            def persistent_id(self, obj):
                witness()

        pickle.dumps([Pickled(), Pickled()])
        Pickler(io.BytesIO()).dump([1])
        self.assert_same_stacks(4)

    def test_destructors_and_weak_references_agree(self):
        witness = self.witness

        class Doomed:
            def __del__(self):
                witness()

        Doomed()
        cycle = Doomed()
        cycle.itself = cycle
        del cycle
        gc.collect()
        doomed = Doomed()
        reference = weakref.ref(doomed, witness)
        del doomed
        self.assertIsNone(reference())
        self.assert_same_stacks(4)

    def test_imports_agree(self):
        class Loader:
            @staticmethod
            def create_module(_spec):
                return None

            exec_module = self.witness

        spec = ModuleSpec("stackweave_test_imported", Loader())
        finder = types.SimpleNamespace(find_spec=lambda name, *_: spec if name == spec.name else None)
        sys.meta_path.insert(0, finder)
        try:
            __import__(spec.name)
        finally:
            sys.meta_path.remove(finder)
            sys.modules.pop(spec.name, None)
        self.assert_same_stacks()


class SuspendedCode(WitnessCase):
    def test_generators_agree(self):
        def inner():
            self.witness()
            received = yield 1
            self.witness(received)
            yield 2

        def outer():
            yield from inner()
            self.witness()

        generator = outer()
        next(generator)
        generator.send("x")
        list(generator)
        for _ in inner():
            self.witness()
        self.assert_same_stacks(7)

    def test_a_closed_generator_agrees(self):
        def generate():
            try:
                yield
            finally:
                self.witness()

        generator = generate()
        next(generator)
        generator.close()
        generator = generate()
        next(generator)
        with contextlib.suppress(KeyError):
            generator.throw(KeyError())
        self.assert_same_stacks(2)

    def test_coroutines_agree(self):
        async def leaf():
            self.witness()
            await asyncio.sleep(0)
            self.witness()

        async def numbers():
            for number in range(2):
                self.witness()
                await asyncio.sleep(0)
                yield number

        async def main():
            await leaf()
            await asyncio.gather(leaf(), leaf())
            async for _ in numbers():
                self.witness()
            asyncio.get_running_loop().call_soon(self.witness)
            await asyncio.sleep(0)

        asyncio.run(main())
        self.assert_same_stacks(11)


class Interruptions(WitnessCase):
    def test_handlers_of_exceptions_agree(self):
        class Manager:
            def __enter__(manager):
                self.witness()

            def __exit__(manager, *_):
                self.witness()
                return True

        try:
            raise ValueError
        except ValueError:
            self.witness()
        finally:
            self.witness()
        with Manager():
            raise KeyError
        self.assert_same_stacks(4)

    def test_signal_handlers_agree(self):
        previous = signal.signal(signal.SIGUSR1, self.witness)
        try:
            signal.raise_signal(signal.SIGUSR1)
        finally:
            signal.signal(signal.SIGUSR1, previous)
        self.assert_same_stacks()

    def test_trace_and_profile_functions_agree(self):
        previous = sys.getprofile()
        sys.setprofile(lambda *_: self.witness() if not self.witness.seen else None)
        try:
            len([])
        finally:
            sys.setprofile(previous)
        self.assert_same_stacks()

    def test_threads_agree(self):
        threads = [threading.Thread(target=self.witness) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assert_same_stacks(3)
