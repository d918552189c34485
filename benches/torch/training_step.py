"""What a history of CUDA memory costs a step of training: none, torch's recorder and ours in turn. Needs a GPU.

    python benches/torch/training_step.py [FIGURES.json]

A transformer of 6 layers, 512 wide, AdamW, one step with its backward pass. `large`: 16 x 256 tokens, where the GPU is
what takes the time. `small`: 2 x 64, where Python and the launches are: there a recorder can be seen. `step`: wall
clock with the GPU waited for. `launch`: wall clock until everything is asked of the GPU. Milliseconds, the least and
the median over the rounds, each of some steps; all in one process, in turn. Torch's history is cleared before each
round, and ours begins a file.
"""

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
        """Milliseconds of each step: until it is launched, and until it is done."""
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


def contenders(torch, path):
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

    return {
        "none": lambda training: training.timed(),
        "torch, Python and C++": of_torch("all"),
        "torch, Python": of_torch("python"),
        "ours": ours(),
        "ours, no stacks of frees": ours(free_stacks=False),
    }


def events_of_step(training):
    """How many events a step has, as torch counts them."""
    memory = training.torch.cuda.memory
    memory._record_memory_history("all", context=None, max_entries=100_000, clear_history=True)
    training.step()
    training.torch.cuda.synchronize()
    events = len(memory._snapshot()["device_traces"][0])
    memory._record_memory_history(None)
    return events


def measure(name, shape, folder):
    import torch

    training = Training(*shape)
    for _ in range(3):
        training.timed()
    path = os.path.join(folder, "step.swv")
    runs = contenders(torch, path)
    times = {contender: ([], []) for contender in runs}
    for round_ in range(ROUNDS + 1):
        for contender, run in runs.items():
            launched, done = run(training)
            if round_:
                times[contender][0].extend(launched)
                times[contender][1].extend(done)
    found = {
        contender: {"launch": figures.least_and_middle(pair[0]), "step": figures.least_and_middle(pair[1])}
        for contender, pair in times.items()
    }
    rows = []
    for contender, figure in found.items():
        row = [contender]
        for part in ("step", "launch"):
            slowdown = figure[part]["median"] / found["none"][part]["median"]
            figure[part]["slowdown"] = slowdown
            least = figure[part]["min"] / found["none"][part]["min"]
            row += [
                figures.number(figure[part]["min"]),
                figures.number(figure[part]["median"]),
                f"{slowdown:.3f}x",
                f"{least:.3f}x",
            ]
        rows.append(row)
    events = events_of_step(training)
    header = ["", "step min", "median", "to none", "(min)", "launch min", "median", "to none", "(min)"]
    figures.print_table(f"{name}: ms of a step, {events:,} events of memory in one", header, rows)
    return {"events": events, **found}


def main():
    found = {"machine": figures.machine()}
    print(found["machine"])
    with tempfile.TemporaryDirectory(prefix="stackweave-") as folder:
        for name, shape in SHAPES.items():
            try:
                found[name] = measure(name, shape, folder)
            except Exception as error:
                found[name] = {"failed": repr(error)}
                print(f"{name} failed: {error!r}")
            figures.write(sys.argv[1] if len(sys.argv) > 1 else None, found)


if __name__ == "__main__":
    main()
