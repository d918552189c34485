"""Runs the test modules whose names come on standard input, one for each line, and writes a result in JSON for each.

scripts/test-python starts several of these for each Python, so that all cores work.
"""

import io
import json
import os
import time
import unittest


def processor_time():
    """Returns the processor time of this process and its ended children, in seconds."""
    return sum(os.times()[:4])


def result_of(name):
    began, used = time.monotonic(), processor_time()
    text = io.StringIO()
    suite = unittest.defaultTestLoader.loadTestsFromName(name)
    result = unittest.TextTestRunner(stream=text, verbosity=0).run(suite)
    return {
        "module": name,
        "seconds": time.monotonic() - began,
        "processor_seconds": processor_time() - used,
        "tests": result.testsRun,
        "skipped": [reason for _, reason in result.skipped],
        "is_ok": result.wasSuccessful(),
        "text": text.getvalue(),
    }


# Not in a function, because the frames of this file are below all tests.
_modules, _results = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
# Programs that tests start have no input, and their output goes to standard error.
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
os.dup2(2, 1)
for _line in _modules:
    _results.write(json.dumps(result_of(_line.strip())) + "\n")
    _results.flush()
