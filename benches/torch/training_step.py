"""Measures what a history of CUDA memory costs a training step: none, torch's recorder and ours in turn. Needs a GPU.

    python benches/torch/training_step.py [FIGURES.json]

A transformer of 6 layers, 512 wide, AdamW, one step with its backward pass. `large`: 16 x 256 tokens, where the GPU
takes most of the time. `small`: 2 x 64, where Python and the launches do, so that the cost of a recorder is visible.
`step`: wall-clock time, including the wait for the GPU. `launch`: wall-clock time until everything is queued on the
GPU. The figures are milliseconds, the minimum and the median over the rounds, each of some steps; all in one process.
Torch's history is cleared before each round, and ours begins a new file.

Our hook stays in torch once it is installed. So none and torch's recorder are measured in turn before that, for all
shapes; then ours, in turn with none while the hook is installed and off. Each is compared with the none of its turns.
The row "none, ours attached" is the cost of the hook while it is off.
"""

import contextlib
import os
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import figures

SHAPES = {"large, 16 x 256": (16, 256, 8), "small, 2 x 64": (2, 64, 15)}
ROUNDS = 8


class Training:
    def __init__(self, batch, length, steps):
        import torch

        torch.manual_seed(0)
        self.torch, self.steps = torch, steps
        layer = torch.nn.TransformerEncoderLayer(512, 8, 2048, dropout=0.0, batch_first=True)
        self.model = torch.nn.TransformerEncoder(layer, 6, enable_nested_tensor=False).cuda()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4)
        self.inputs = torch.randn(batch, length, 512, device="cuda")

    def step(self):
        self.optimizer.zero_grad()
        loss = self.model(self.inputs).square().mean()
        loss.backward()
        self.optimizer.step()

    def timed(self):
        """Returns the milliseconds of each step until it is launched, and until it is done."""
        launched, done = [], []
        # The first step with a recorder has new stacks.
        self.step()
        self.torch.cuda.synchronize()
        for _ in range(self.steps):
            before = time.perf_counter()
            self.step()
            launched.append((time.perf_counter() - before) * 1e3)
            self.torch.cuda.synchronize()
            done.append((time.perf_counter() - before) * 1e3)
        return launched, done


NONE, ATTACHED = "none", "none, ours attached"


def contenders(torch, path):
    """Returns the contenders of the first turns, and those of the second."""
    history = torch.cuda.memory._record_memory_history

    def of_torch(stacks):
        def run(training):
            history("all", context="all", stacks=stacks, max_entries=100_000, clear_history=True)
            try:
                return training.timed()
            finally:
                history(None)

        return run

    def ours(**options):
        def run(training):
            import stackweave.torch

            with stackweave.torch.cuda_memory(path, overwrite=True, **options) as memory:
                times = training.timed()
            if memory.stop().lost:
                raise RuntimeError(f"events were lost: {memory.stop().lost}")
            return times

        return run

    before = {NONE: Training.timed, "torch, Python and C++": of_torch("all"), "torch, Python": of_torch("python")}
    after = {ATTACHED: Training.timed, "ours": ours(), "ours, no stacks of frees": ours(free_stacks=False)}
    return before, after


def events_of_step(training):
    """Returns how many events a step has, as torch counts them."""
    memory = training.torch.cuda.memory
    memory._record_memory_history("all", context=None, max_entries=100_000, clear_history=True)
    training.step()
    training.torch.cuda.synchronize()
    events = len(memory._snapshot()["device_traces"][0])
    memory._record_memory_history(None)
    return events


def measure(training, runs):
    """Measures all contenders in turn, and returns the times of each."""
    times = {contender: ([], []) for contender in runs}
    # The first round warms up. If ours is among the contenders, it installs the hook.
    for round_ in range(ROUNDS + 1):
        for contender, run in runs.items():
            launched, done = run(training)
            if round_:
                times[contender][0].extend(launched)
                times[contender][1].extend(done)
    return {
        contender: {"launch": figures.least_and_middle(pair[0]), "step": figures.least_and_middle(pair[1])}
        for contender, pair in times.items()
    }


def show(name, events, before, after):
    found = {**before, **after}
    rows = []
    for contender, figure in found.items():
        base = found[ATTACHED if contender in after and contender != ATTACHED else NONE]
        row = [contender]
        for part in ("step", "launch"):
            slowdown = figure[part]["median"] / base[part]["median"]
            figure[part]["slowdown"] = slowdown
            least = figure[part]["min"] / base[part]["min"]
            row += [
                figures.number(figure[part]["min"]),
                figures.number(figure[part]["median"]),
                f"{slowdown:.3f}x",
                f"{least:.3f}x",
            ]
        rows.append(row)
    header = ["", "step min", "median", "to none", "(min)", "launch min", "median", "to none", "(min)"]
    figures.print_table(f"{name}: ms of a step, {events:,} events of memory in one", header, rows)
    return {"events": events, **found}


def main():
    found = {"machine": figures.machine()}
    print(found["machine"])
    import torch

    with tempfile.TemporaryDirectory(prefix="stackweave-") as folder:
        first, second = contenders(torch, os.path.join(folder, "step.swv"))
        measured = {}
        for name, shape in SHAPES.items():
            with reported(name, found):
                training = Training(*shape)
                for _ in range(3):
                    training.timed()
                measured[name] = (training, events_of_step(training), measure(training, first))
        for name, (training, events, before) in measured.items():
            with reported(name, found):
                found[name] = show(name, events, before, measure(training, second))
            figures.write(sys.argv[1] if len(sys.argv) > 1 else None, found)


@contextlib.contextmanager
def reported(name, found):
    """Records and prints an exception, so that a shape that fails does not prevent the others."""
    try:
        yield
    except Exception as error:
        found[name] = {"failed": repr(error)}
        print(f"{name} failed: {error!r}")


if __name__ == "__main__":
    main()
