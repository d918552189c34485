"""Memory recorders: the command that runs a program under each, the file that it writes, and the command for a report."""

import importlib.util
import os
import shutil
import sys


class Plain:
    """No recorder."""

    def __init__(self, folder):
        self.out = os.path.join(folder, "out")

    def absent(self):
        return None

    def command(self, program):
        return [sys.executable, *program]

    def report(self):
        """Returns the command that shows the file; None if there is none."""
        return None

    def size(self):
        """Returns the size of the recorder's output in bytes."""
        if os.path.isdir(self.out):
            files = (os.path.join(base, name) for base, _, names in os.walk(self.out) for name in names)
            return sum(map(os.path.getsize, files))
        return os.path.getsize(self.out) if os.path.exists(self.out) else None

    def clear(self):
        shutil.rmtree(self.out, ignore_errors=True)
        if os.path.exists(self.out):
            os.remove(self.out)


class Module(Plain):
    """A module that runs scripts."""

    module = ""
    options = ()

    def absent(self):
        return None if importlib.util.find_spec(self.module) else f"not installed: {self.module}"


class Ours(Module):
    module = "stackweave"

    def command(self, program):
        return [sys.executable, "-m", "stackweave", "memory", "-q", "-o", self.out, *self.options, *program]

    def report(self):
        return [sys.executable, "-m", "stackweave", "heap", self.out]


class Memray(Module):
    module = "memray"

    def command(self, program):
        return [sys.executable, "-m", "memray", "run", "-q", "-f", "-o", self.out, *self.options, *program]

    def report(self):
        return [sys.executable, "-m", "memray", "summary", self.out]


class Tracemalloc(Plain):
    frames = 1

    def command(self, program):
        return [sys.executable, "-X", f"tracemalloc={self.frames}", *program]


class Fil(Module):
    module = "filprofiler"

    def command(self, program):
        return [sys.executable, "-m", "filprofiler", "--no-browser", "-o", self.out, "run", *program]


class Scalene(Module):
    module = "scalene"

    def command(self, program):
        return [sys.executable, "-m", "scalene", "run", "-o", self.out, *program]


class Heaptrack(Plain):
    def absent(self):
        return None if shutil.which("heaptrack") else "not installed: heaptrack"

    def command(self, program):
        return ["heaptrack", "-o", self.out, sys.executable, *program]

    def written(self):
        """Returns the file, whose name heaptrack extends with a suffix."""
        suffixes = (".zst", ".gz")
        return next((self.out + suffix for suffix in suffixes if os.path.exists(self.out + suffix)), None)

    def size(self):
        return self.written() and os.path.getsize(self.written())

    def report(self):
        return ["heaptrack_print", "-f", self.written() or ""] if shutil.which("heaptrack_print") else None

    def clear(self):
        if self.written():
            os.remove(self.written())


def with_options(base, *options):
    return type(base.__name__, (base,), {"options": options})


TOOLS = {
    "ours": Ours,
    "ours, Python stacks": with_options(Ours, "--no-native"),
    "ours, Python allocators": with_options(Ours, "--python-allocators"),
    "ours, aggregate": with_options(Ours, "--mode", "aggregate"),
    "ours, sampled": with_options(Ours, "--mode", "sampled"),
    "memray": Memray,
    "memray, native": with_options(Memray, "--native"),
    "memray, Python allocators": with_options(Memray, "--trace-python-allocators"),
    "memray, Python allocators, native": with_options(Memray, "--trace-python-allocators", "--native"),
    "memray, aggregate": with_options(Memray, "--aggregate"),
    "tracemalloc 1": Tracemalloc,
    "tracemalloc 25": type("Tracemalloc", (Tracemalloc,), {"frames": 25}),
    "filprofiler": Fil,
    "scalene": Scalene,
    "heaptrack": Heaptrack,
    "plain": Plain,
}
