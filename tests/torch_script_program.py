"""TorchScript functions that call back into Python. They need a file: torch compiles them from their source."""

import torch


def take():
    """Does nothing. The test that runs this program replaces it."""


@torch.jit.ignore
def look(value: torch.Tensor) -> torch.Tensor:
    take()
    return value


@torch.jit.script
def inner(value: torch.Tensor) -> torch.Tensor:
    return look(value) + 1


@torch.jit.script
def outer(value: torch.Tensor) -> torch.Tensor:
    inside = inner(value)
    return inside * 2


def run():
    return outer(torch.ones(2))
