"""Programs that Dynamo traces in different ways. Needs torch."""

import functools

import torch


def plain(x):
    return x.sin() + x.cos()


def halve(x):
    return x / 2


def shift(x, by=1):
    return halve(x) + by


def calls(x):
    return shift(x) * shift(x, by=3) + halve(x)


def countdown(x, steps):
    return x if steps == 0 else countdown(x + steps, steps - 1)


def recursive(x):
    return countdown(x, 4)


def even(x, steps):
    return x if steps == 0 else odd(x * 2, steps - 1)


def odd(x, steps):
    return x if steps == 0 else even(x + 1, steps - 1)


def mutually_recursive(x):
    return even(x, 5)


def numbers(x):
    for number in range(3):
        yield x + number


def generator(x):
    total = x
    for each in numbers(x):
        total = total + each
    return total


def refuses(x):
    raise KeyError("not this one")


def catches(x):
    try:
        return refuses(x)
    except KeyError:
        return halve(x)


def closures(x):
    def scaled(y):
        return y * 3

    return scaled(x) + sum(map(scaled, [x, x + 1])) + functools.reduce(lambda a, b: a + halve(b), [x, x, x])


class Block(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.wide = torch.nn.Linear(width, 2 * width)
        self.narrow = torch.nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.narrow(torch.nn.functional.gelu(self.wide(self.norm(x))))


class Net(torch.nn.Module):
    def __init__(self, width=4, depth=3):
        super().__init__()
        self.blocks = torch.nn.Sequential(*(Block(width) for _ in range(depth)))
        self.head = torch.nn.Linear(width, 1)

    def forward(self, x):
        return self.head(self.blocks(x))


def breaks_inside(x):
    y = x.sin()
    print(end="")
    return y + 1


def graph_break(x):
    return breaks_inside(x * 2) + 1


FUNCTIONS = (plain, calls, recursive, mutually_recursive, generator, catches, closures)


def net():
    torch.manual_seed(0)
    return Net()


class Attention(torch.nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.project = torch.nn.Linear(width, 3 * width)
        self.out = torch.nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.project(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        mixed = torch.nn.functional.scaled_dot_product_attention(parts[0], parts[1], parts[2], is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class Layer(torch.nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.block = Block(width)

    def forward(self, x):
        return self.block(x + self.attention(self.norm(x)))


class Transformer(torch.nn.Module):
    def __init__(self, width=32, heads=4, depth=4, tokens=64):
        super().__init__()
        self.embedding = torch.nn.Embedding(tokens, width)
        self.layers = torch.nn.ModuleList(Layer(width, heads) for _ in range(depth))
        self.head = torch.nn.Linear(width, tokens)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)
