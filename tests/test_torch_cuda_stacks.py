"""Stacks of CUDA memory have the Python frames of the standard library, in order with native frames. Needs a GPU."""

import asyncio
import contextlib
import functools
import sys
import threading
import traceback
import unittest
import weakref

from tests.torch_cuda_support import (
    HAS_GPU,
    CudaCase,
    expected_part,
    exported,
    is_python,
    names,
    needs_gpu,
    new_size,
    print_info,
    python_part,
    the_alloc,
    trace_of,
)

if HAS_GPU:
    import torch

MERGES_CALLS = sys.version_info >= (3, 11)
taken = []


def take(*_arguments, **_options):
    """Allocates memory, and extracts the stack in the same line."""
    size = new_size()
    taken.append((size, torch.empty(size, dtype=torch.uint8, device="cuda"), traceback.extract_stack()))
    return size


def one():
    return two()


def two():
    return take()


def deep(depth):
    return deep(depth - 1) if depth else take()


def generated():
    yield take()
    yield from (take() for _ in range(2))


class Owner:
    size = None

    def __init__(self):
        self.size = take()

    @property
    def more(self):
        return take()

    @classmethod
    def made(cls):
        return cls()

    def __del__(self):
        take()


async def awaited():
    await asyncio.sleep(0)
    return take()


@contextlib.contextmanager
def managed():
    take()
    yield
    take()


@needs_gpu
class StackTest(CudaCase):
    def setUp(self):
        super().setUp()
        self.addCleanup(taken.clear)

    def assert_same(self, work, at_least=1, **options):
        """Records CUDA memory while `work` runs. Asserts that stacks have the Python frames of the standard library."""
        with self.cuda_memory(**options) as memory:
            work()
            torch.cuda.synchronize()
        trace = trace_of(exported(memory))
        self.assertGreaterEqual(len(taken), at_least)
        for size, _tensor, extracted in taken:
            self.assertEqual(python_part(the_alloc(trace, size)["frames"]), expected_part(extracted))
        return trace

    def test_functions_and_generators(self):
        def work():
            one()
            deep(60)
            list(generated())
            [take() for _ in range(2)]
            list(map(take, range(2)))
            sorted([2, 1], key=lambda _: two())
            functools.partial(take, 1)()
            functools.reduce(lambda _, number: take(number), range(3))
            with managed():
                take()
            asyncio.run(awaited())
            exec(compile("take()", "<written here>", "exec"), {"take": take})

        self.assert_same(work, 15)

    def test_objects_and_threads(self):
        def work():
            owner = Owner.made()
            owner.more
            del owner
            watched = Owner()
            finalizer = weakref.finalize(watched, take)
            del watched
            finalizer.detach()
            threads = [threading.Thread(target=deep, args=(number,)) for number in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(timeout=60)
            try:
                raise ValueError("only to handle it")
            except ValueError:
                take()

        self.assert_same(work, 9)

    def test_autograd(self):
        class Taking(torch.autograd.Function):
            @staticmethod
            def forward(ctx, inputs):
                one()
                return inputs * 2

            @staticmethod
            def backward(ctx, gradient):
                one()
                return gradient * 2

        def work():
            inputs = torch.ones(8, device="cuda", requires_grad=True)
            hooked = inputs * 3
            hooked.register_hook(lambda _: take() and None)
            result = Taking.apply(hooked)
            result.sum().backward()
            with torch.autograd.graph.saved_tensors_hooks(lambda tensor: take() and tensor, lambda tensor: tensor):
                (inputs * inputs).sum()

        self.assert_same(work, 4)

    def test_modules(self):
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = torch.nn.Linear(4, 4)

            def forward(self, inputs):
                two()
                return self.inner(inputs)

        net = Net().cuda()
        # A result of a pre-hook would replace the inputs.
        net.register_forward_pre_hook(lambda *_: take() and None)
        net.inner.register_forward_hook(lambda *_: take() and None)
        net.register_full_backward_hook(lambda *_: take() and None)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        optimizer.register_step_post_hook(lambda *_: take() and None)

        def work():
            inputs = torch.ones(2, 4, device="cuda", requires_grad=True)
            net(inputs).sum().backward()
            optimizer.step()

        self.assert_same(work, 5)

    def test_dispatch(self):
        from torch.utils._python_dispatch import TorchDispatchMode

        class Taking(TorchDispatchMode):
            def __torch_dispatch__(self, function, types, arguments=(), options=None):
                result = function(*arguments, **(options or {}))
                take()
                return result

        def work():
            tensor = torch.ones(8, device="cuda")
            with Taking():
                tensor.add(1).mul(2)

        self.assert_same(work, 2)

    def test_only_python_frames(self):
        trace = self.assert_same(one, native=False)
        frames = the_alloc(trace, taken[0][0])["frames"]
        self.assertEqual([frame for frame in frames if not is_python(frame)], [])

    def test_only_the_inner_frames(self):
        with self.cuda_memory(depth=7, native=False) as memory:
            deep(30)
        size, _tensor, extracted = taken[0]
        frames = the_alloc(trace_of(exported(memory)), size)["frames"]
        self.assertEqual(python_part(frames)[:7], expected_part(extracted)[:7])
        self.assertLessEqual(len(frames), 8, "seven, and at most one that stands for the others")

    def test_native_frames_stand_where_they_belong(self):
        class Woven(torch.autograd.Function):
            @staticmethod
            def forward(ctx, inputs):
                return inner(inputs)

            @staticmethod
            def backward(ctx, gradient):
                return gradient

        def inner(inputs):
            take()
            return inputs * 2

        def outer(inputs):
            return Woven.apply(inputs)

        inputs = torch.ones(8, device="cuda")
        torch.cuda.memory._record_memory_history(stacks="all", context="all", clear_history=True)
        with self.cuda_memory() as memory:
            outer(inputs)
            trace = trace_of(torch.cuda.memory._snapshot())
        size = taken[0][0]
        frames = the_alloc(trace_of(exported(memory)), size)["frames"]
        found = names(frames)
        self.assertEqual(order_of(frames), [], found)
        self.assertFalse(is_python(frames[0]), "the allocator's functions are the innermost ones")
        self.assertFalse(is_python(frames[-1]), "the interpreter was started by native code")
        self.assertEqual(
            [name for name in found if "stackweave" in name or "Tracker::" in name],
            [],
            "our own functions are not shown",
        )
        print_info(f"innermost frames of ours: {found[: found.index('take')]}")
        of_torch = the_alloc(trace, size)["frames"]
        print_info(f"torch's order of the same stack: {order_of(of_torch) or 'right'}; {names(of_torch)}")

    def test_a_native_function_is_between_its_caller_and_its_callee(self):
        def called_back(_):
            return two()

        def caller():
            return sorted([1], key=called_back)

        trace = self.assert_same(caller)
        frames = the_alloc(trace, taken[0][0])["frames"]
        found = names(frames)
        between = frames[found.index("called_back") + 1 : found.index("caller")]
        self.assertNotEqual(between, [], found)
        self.assertTrue(all(not is_python(frame) for frame in between), found)
        if MERGES_CALLS:
            self.assertEqual(found[found.index("take") :][:3], ["take", "two", "called_back"], found)


def order_of(frames):
    """Returns sentences about mistakes in the order of the stack of `Woven`."""
    kinds = [(name, is_python(frame)) for name, frame in zip(names(frames), frames)]
    wanted = ["take", "inner", "forward", "apply", "outer"]
    missing = [f"{name} is not there" for name in wanted if (name, True) not in kinds]
    if missing:
        return missing
    places = [kinds.index((name, True)) for name in wanted]
    wrong = [f"{wanted[place]} is in the wrong place" for place in range(1, 5) if places[place] < places[place - 1]]
    if not wrong and all(of_python for _, of_python in kinds[places[2] : places[3]]):
        wrong.append("nothing native calls forward")
    if not wrong and MERGES_CALLS and places[2] - places[0] != 2:
        wrong.append("native frames between Python calls")
    if any("THPFunction_apply" in name for name, _ in [*kinds[: places[2]], *kinds[places[3] :]]):
        wrong.append("THPFunction_apply is in the wrong place")
    return wrong


class OrderTest(unittest.TestCase):
    """Tests order_of() on stacks that are written by hand."""

    def frames(self, text):
        """Returns frames with these names. A lowercase name is that of a Python frame."""
        return [{"name": name, "filename": "a.py" if name.islower() else "a.so", "line": 1} for name in text.split()]

    def test_a_right_order_and_wrong_ones(self):
        right = "Alloc take inner forward Eval THPFunction_apply Eval apply outer main Eval _Start"
        self.assertEqual(order_of(self.frames(right)), [])
        of_torch = "Alloc take Eval THPFunction_apply inner Eval _Start forward apply outer main"
        self.assertIn("THPFunction_apply is in the wrong place", order_of(self.frames(of_torch)))
        self.assertIn("nothing native calls forward", order_of(self.frames(of_torch)))
        self.assertEqual(
            order_of(self.frames("Alloc take inner forward")), ["apply is not there", "outer is not there"]
        )
        swapped = "Alloc take forward inner Eval apply outer"
        self.assertEqual(order_of(self.frames(swapped)), ["forward is in the wrong place"])
        if MERGES_CALLS:
            torn = right.replace("take", "take Eval")
            self.assertEqual(order_of(self.frames(torn)), ["native frames between Python calls"])


if __name__ == "__main__":
    unittest.main()
