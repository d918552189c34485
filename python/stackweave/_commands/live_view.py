"""--live: runs a program in a child process that records, and shows the recording while it runs."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import signal
import subprocess
import sys
import tempfile
import termios
import threading
from typing import TYPE_CHECKING, Any

from .. import _native

if TYPE_CHECKING:
    from types import FrameType

NO_TERMINAL = "--live draws on a terminal, and neither standard output nor error is one: omit it"

#: The interval at which a reader checks whether the program has ended, in seconds.
_LOOK = 0.1
_PIECE = 1 << 16
#: The number of reads that empty a terminal: 64 KiB, 4 KiB at a time.
_ENOUGH = 64


def has_terminal() -> bool:
    return os.isatty(1) or os.isatty(2)


def run(name: str, arguments: list[str], path: str, output: str | None) -> int:
    """Returns the exit status of the program. A signal that ended the program ends this process, too.

    arguments are those of the command `name`, path is the recording, and output is the option for it.
    """
    ours = list(arguments)
    ours.remove("--live")  # An option of the program with this name comes later.
    if output is None:
        path = _native.unused_path(path)
        ours[:0] = ["-o", path]
    old = _identity(path)  # The program replaces it later, so it is not shown.
    collected = [_Collected(stream) for stream in (1, 2) if os.isatty(stream)]
    places: dict[str, Any] = {("stdout", "stderr")[each.stream - 1]: each.slave for each in collected}
    # An interrupt of the terminal reaches the program, too, if it has started.
    early: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: early.append(number))
    program = subprocess.Popen(
        [*_this_command(), name, *ours], stdin=subprocess.DEVNULL if os.isatty(0) else None, **places
    )
    for number in early:
        program.send_signal(number)
    for each in collected:
        each.start()
    _pass_signals(program)
    files = [word for each in collected for word in ("--printed", f"/proc/self/fd/{each.file.fileno()}")]
    try:
        _native.run_command(["stackweave", "live", path, "--program", str(program.pid), *old, *files])
    finally:
        for each in collected:
            each.release()
        program.wait()
        for each in collected:
            each.finish()
    return _status(program.returncode)


def _identity(path: str) -> list[str]:
    """Returns the option with the identity of the file that is at the path now, if there is one."""
    try:
        known = os.stat(path)
    except OSError:
        return []
    return ["--old", f"{known.st_dev}:{known.st_ino}"]


def _this_command() -> list[str]:
    """Returns the command that runs this package as it was run now."""
    python = [sys.executable, *subprocess._args_from_interpreter_flags()]  # type: ignore[attr-defined]
    return [*python, "-m", "stackweave"] if sys.argv[0].endswith("__main__.py") else [*python, sys.argv[0]]


def _pass_signals(program: subprocess.Popen[bytes]) -> None:
    """Passes other signals on to the program."""

    def forward(number: int, _: FrameType | None) -> None:
        program.send_signal(number)

    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, forward)


def _status(returned: int) -> int:
    if returned >= 0:
        return returned
    with contextlib.suppress(OSError, ValueError):  # some can't be handled, and need not be
        signal.signal(-returned, signal.SIG_DFL)
    os.kill(os.getpid(), -returned)
    return 128 - returned


class _Collected:
    """Keeps what the program writes to the terminal until the terminal is free, and then passes it on.

    The program has a terminal of its own for it, so that it prints as on a real one.
    """

    def __init__(self, stream: int) -> None:
        self.stream = stream
        self.file = tempfile.TemporaryFile()  # noqa: SIM115
        self._master, self.slave = pty.openpty()
        modes = termios.tcgetattr(self.slave)
        modes[1] &= ~termios.OPOST  # The ends of lines stay unchanged: the real terminal converts them.
        termios.tcsetattr(self.slave, termios.TCSANOW, modes)
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, fcntl.ioctl(stream, termios.TIOCGWINSZ, bytes(8)))
        self._lock = threading.Lock()
        self._is_free = False
        self._has_ended = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)

    def start(self) -> None:
        """Starts to read. The program has been started."""
        os.close(self.slave)
        self._thread.start()

    def release(self) -> None:
        """Writes what was kept, now that the terminal is free, and what follows immediately."""
        with self._lock:
            self.file.seek(0)
            while piece := self.file.read(_PIECE):
                self._write(piece)
            self._is_free = True

    def finish(self) -> None:
        """Stops reading after the program has ended. Processes that it left running are not waited for."""
        self._has_ended.set()
        self._thread.join()
        os.close(self._master)
        self.file.close()

    def _read(self) -> None:
        left = _ENOUGH  # a process that was left behind may write forever
        while left > 0:
            has_ended = self._has_ended.is_set()
            if not select.select([self._master], [], [], _LOOK)[0]:
                if has_ended:
                    return
                continue
            try:
                piece = os.read(self._master, _PIECE)
            except OSError:  # no process has it open any more
                return
            left -= has_ended
            with self._lock:
                if self._is_free:
                    self._write(piece)
                else:
                    self.file.write(piece)
                    self.file.flush()

    def _write(self, piece: bytes) -> None:
        with contextlib.suppress(OSError):
            while piece:
                piece = piece[os.write(self.stream, piece) :]
