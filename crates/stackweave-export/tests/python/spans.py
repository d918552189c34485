"""Trees of spans, rebuilt from exports like viewers do."""


class Tree:
    """Calls, self and total nanoseconds by path."""

    def __init__(self):
        self.paths = {}

    def add(self, path, total, inside):
        row = self.paths.setdefault(tuple(path), [0, 0, 0])
        row[0] += 1
        row[1] += total - inside
        row[2] += total

    def printed(self):
        return [[list(path), *row] for path, row in sorted(self.paths.items())]


class Thread:
    """Builds the tree from begins and ends of one thread."""

    def __init__(self, tree):
        self.tree, self.open = tree, []

    def begin(self, name, time):
        self.open.append([name, time, 0])

    def end(self, time):
        path = [name for name, _, _ in self.open]
        _, began, inside = self.open.pop()
        assert time >= began, (path, began, time)
        self.tree.add(path, time - began, inside)
        if self.open:
            self.open[-1][2] += time - began


def nest(tree, spans):
    """Builds the tree from complete spans (begin, duration, name) of one thread in the order of the file, parents first."""
    thread, ends = Thread(tree), []
    for index, (begin, duration, name) in sorted(enumerate(spans), key=lambda span: span[1][0]):
        while ends and (ends[-1][0] < begin or (ends[-1][0] == begin and (duration > 0 or ends[-1][1] < index))):
            thread.end(ends.pop()[0])
        end = begin + duration
        assert not ends or end <= ends[-1][0], f"{name} at {begin} reaches out of what is around it"
        thread.begin(name, begin)
        ends.append((end, index))
    while ends:
        thread.end(ends.pop()[0])
