"""Queries a process for its stacks, as `stackweave stacks` does where ptrace is not allowed."""

import contextlib
import ctypes
import os
import re
import struct
import time
from collections import namedtuple

SI_QUEUE = -1
MARK = 0x53774173
RT_SIGQUEUEINFO = 129

Thread = namedtuple("Thread", "task name frames problem")
Python = namedtuple("Python", "name qualname filename line first_line")

_library = ctypes.CDLL(None, use_errno=True)


def shown_signals(process):
    """Returns the signals by which a process advertises that it replies to queries."""
    with open(f"/proc/{process}/maps") as maps:
        return [int(number) for number in re.findall(r"/memfd:stackweave-answers-(\d+) \(deleted\)", maps.read())]


def queue(process, signal, value, *, sender=None):
    """Sends a signal with a value, as sigqueue(3) does. `sender` is the process id that the signal states."""
    sender = os.getpid() if sender is None else sender
    information = struct.pack("iiiiiIQ", signal, 0, SI_QUEUE, 0, sender, os.getuid(), value)
    information = ctypes.create_string_buffer(information.ljust(128, b"\0"), 128)
    if _library.syscall(RT_SIGQUEUEINFO, process, signal, information) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


@contextlib.contextmanager
def query_file(process):
    """Creates the memory file that a process writes its reply to."""
    descriptor = os.memfd_create(f"stackweave-question-{process}")
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def text_in(descriptor):
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0).decode()


def query_stacks(process, timeout=30):
    """Returns the threads of a process by their numbers. Repeats the query while the process is busy."""
    (signal,) = shown_signals(process)
    end = time.monotonic() + timeout
    while True:
        with query_file(process) as descriptor:
            queue(process, signal, MARK << 32 | descriptor)
            while not (text := text_in(descriptor)).endswith("\nend\n"):
                if time.monotonic() > end:
                    raise TimeoutError(f"process {process} has not replied: {text!r}")
                time.sleep(0.0002)
        if "\nrefused another dump is being written\n" not in text:
            return _threads_in(text, process)


def forbid(system_call):
    """Returns code after which a system call fails with EPERM: in this process, and in programs that it executes."""
    return f"""
import ctypes, os, struct, sys
_library = ctypes.CDLL(None)
_lines = [(0x20, 0, 0, 0), (0x15, 0, 1, {system_call}), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7FFF0000)]
_program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in _lines))
assert _library.prctl(38, 1, 0, 0, 0) == 0
assert _library.prctl(22, 2, struct.pack("HxxxxxxQ", len(_lines), ctypes.addressof(_program))) == 0
"""


def _threads_in(text, process):
    head, *lines, end = text.splitlines()
    assert (head, end) == (f"stackweave-answer 1 {process}", "end"), text
    threads = {}
    thread = None
    for line in lines:
        word, _, rest = line.partition(" ")
        if word == "thread":
            number, _, name = rest.partition(" ")
            thread = threads[int(number)] = Thread(int(number), name, [], [])
        elif word == "p":
            name, qualname, filename, line_number, first_line = rest.split("\x1f")
            thread.frames.append(Python(name, qualname or None, filename, int(line_number), int(first_line)))
        elif word in ("r", "x"):
            thread.frames.append((word, int(rest, 16)))
        elif word in ("cut", "silent"):
            thread.problem.append(rest)
        else:
            raise AssertionError(f"{line!r} in {text}")
    return threads


def python_frames(thread):
    return [frame for frame in thread.frames if isinstance(frame, Python)]
