"""Many different stacks: of Python functions that C code calls and, with torch, of a small training loop."""

import functools
import json
import re

FUNCTIONS = 30
DEPTH = 8


def _callers():
    """Returns ten functions in which C code calls a Python function."""
    return [
        lambda call: next(map(lambda _: call(), "x")),
        lambda call: sorted("x", key=lambda _: call()),
        lambda call: functools.reduce(lambda *_: call(), "xy"),
        lambda call: json.loads("{}", object_hook=lambda _: call()),
        lambda call: re.sub("x", lambda _: call() or "", "x"),
        lambda call: max("x", key=lambda _: call() or 0),
        lambda call: list(filter(lambda _: call(), "x")),
        lambda call: functools.partial(call)(),
        lambda call: any(call() for _ in "x"),
        lambda call: eval("call()", {"call": call}),
    ]


def _functions():
    source = "".join(f"def step_{number}(call):\n    return call()\n" for number in range(FUNCTIONS))
    namespace = {}
    exec(compile(source, __file__, "exec"), namespace)
    return [namespace[f"step_{number}"] for number in range(FUNCTIONS)]


def through_builtins(leaf, count):
    """Returns `count` captures of different stacks."""
    callers, functions, captured = _callers(), _functions(), []

    def descend(number, levels):
        if not levels:
            captured.append(leaf())
            return
        caller, function = callers[number % len(callers)], functions[number // len(callers) % FUNCTIONS]
        # Each level takes another branch, and each number takes another path.
        caller(lambda: function(lambda: descend(number * 7 + levels, levels - 1)))

    for number in range(count):
        descend(number, DEPTH)
    return captured


def through_torch(torch, leaf, count):
    from torch.utils._python_dispatch import TorchDispatchMode

    captured = []

    class CaptureEachOperation(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, arguments=(), options=None):
            captured.append(leaf())
            return function(*arguments, **(options or {}))

    nn = torch.nn
    net = nn.Sequential(nn.Conv1d(2, 4, 3, padding=1), nn.GELU(), nn.Flatten(), nn.Linear(32, 8), nn.LayerNorm(8), nn.Linear(8, 4))
    optimizer = torch.optim.Adam(net.parameters())
    with CaptureEachOperation():
        while len(captured) < count:
            optimizer.zero_grad()
            nn.functional.mse_loss(net(torch.ones(4, 2, 8)), torch.zeros(4, 4)).backward()
            optimizer.step()
    return captured[:count]
