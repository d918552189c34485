"""Shared by the tests of recordings with calls and memory."""

import stackweave
from tests.memory_support import BEGIN as BEGIN_OF_MEMORY
from tests.memory_support import MemoryCase, library_path
from tests.recordings import recording_of

#: The first lines of each program that runs in its own process. Its second argument is the path of the library.
BEGIN = (
    BEGIN_OF_MEMORY
    + """
def leaf():
    return None

def down(depth, then):
    return down(depth - 1, then) if depth else then()

def record(**options):
    return stackweave.record(sys.argv[1], **options)
"""
)


class RunCase(MemoryCase):
    """A test with recordings of calls and memory."""

    def record(self, **options):
        record = stackweave.record(self.path, overwrite=True, **options)
        self.addCleanup(lambda: record.state in ("recording", "paused") and record.stop())
        return record

    def run_program(self, code, *arguments, **expected):
        """Runs a script as run_script() does, with BEGIN before it."""
        return self.run_script(BEGIN + code, library_path(), *arguments, **expected)


def calls_of(recording, name, **selection):
    """Returns how often a function was called, by the last part of its name."""
    rows = recording_of(recording).top(measure="time", all=True, **selection)
    return sum(row.calls for row in rows if row.name.rpartition(".")[2] == name)
