"""What the tests of recordings with calls and memory share."""

import stackweave
from tests.memory_support import BEGIN as BEGIN_OF_MEMORY
from tests.memory_support import MemoryCase, library_path
from tests.recordings import recording_of

#: What programs of their own process begin with. The library is their second argument.
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
    """Has recordings of both of its own."""

    def record(self, **options):
        record = stackweave.record(self.path, overwrite=True, **options)
        self.addCleanup(lambda: record.state in ("recording", "paused") and record.stop())
        return record

    def run_program(self, code, *arguments, **expected):
        """As run_script(), after the usual begin."""
        return self.run_script(BEGIN + code, library_path(), *arguments, **expected)


def calls_of(recording, name, **selection):
    """How often a function was called, by its last name."""
    rows = recording_of(recording).top(measure="time", all=True, **selection)
    return sum(row.calls for row in rows if row.name.rpartition(".")[2] == name)
