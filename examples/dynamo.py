"""Shows where the time of torch.compile goes: python examples/dynamo.py, with torch installed

A small model with a graph break (it prints), and a batch of a different type, for which it is compiled again. The first
argument names a backend: inductor (needs a C++ compiler), aot_eager or eager. Your own program needs no change:
stackweave dynamo train.py
"""

import sys

import stackweave.torch.dynamo
import torch


class Block(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.first = torch.nn.Linear(size, 2 * size)
        self.second = torch.nn.Linear(2 * size, size)

    def forward(self, batch):
        return normalized(batch + self.second(torch.relu(self.first(batch))))


class Model(torch.nn.Module):
    def __init__(self, size=16, blocks=3):
        super().__init__()
        self.blocks = torch.nn.ModuleList(Block(size) for _ in range(blocks))
        self.head = torch.nn.Linear(size, 1)

    def forward(self, batch):
        for block in self.blocks:
            batch = block(batch)
        print("a graph break: print is not part of a graph")
        return squashed(self.head(batch), depth=3)


def normalized(batch):
    return (batch - batch.mean()) / (batch.std() + 1e-5)


def squashed(batch, depth):
    return torch.tanh(batch) if depth == 0 else squashed(batch * 0.9, depth - 1)


def main(backend="inductor"):
    model = Model()
    compiled = torch.compile(model, backend=backend)
    with torch.no_grad(), stackweave.torch.dynamo.profile() as recorder:
        compiled(torch.ones(4, 16))
        model.double()
        compiled(torch.ones(4, 16, dtype=torch.float64))
    print(stackweave.torch.dynamo.report(recorder.recording))


if __name__ == "__main__":
    main(*sys.argv[1:2])
