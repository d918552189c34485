"""A terminal for tests: a program runs on it, and tests read the screen."""

import fcntl
import os
import re
import select
import signal
import struct
import subprocess
import termios
import time

#: The time limit of each step in seconds, on a busy machine.
DEADLINE = 90
_SEQUENCE = re.compile(rb"\x1b\[([0-9;?]*)([A-Za-z])|\x1b[()][0-9A-B]|\x1b[=>78M]|\x1b\][^\x07]*\x07")


class Terminal:
    """A pty that is the controlling terminal of a program."""

    def __init__(self, command, folder, rows=24, columns=100, environment=None, **options):
        self.master, self.slave = os.openpty()
        self.raw = b""
        self._rest = b""
        self.resize(rows, columns)
        self.modes = termios.tcgetattr(self.slave)
        streams = {"stdin": self.slave, "stdout": self.slave, "stderr": self.slave, **options}
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, "TERM": "xterm-256color", "NO_COLOR": "", **(environment or {})},
            start_new_session=True,
            preexec_fn=self._take_terminal,
            **streams,
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.hang_up()
        os.close(self.slave)

    def _take_terminal(self):
        """Makes keys of the terminal interrupt this process, even if tests run in the background."""
        fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
            signal.signal(number, signal.SIG_DFL)

    def hang_up(self):
        """Closes the terminal, like closing its window."""
        if self.master is not None:
            os.close(self.master)
            self.master = None

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.rows, self.columns = rows, columns
        self._lines = [[" "] * columns for _ in range(rows)]
        self._row = self._column = 0

    def press(self, keys):
        os.write(self.master, keys.encode())

    @property
    def lines(self):
        return ["".join(line).rstrip() for line in self._lines]

    def wait_for(self, holds, what):
        """Waits until holds(lines) is true. Otherwise the test fails, and prints the screen."""
        end = time.monotonic() + DEADLINE
        while not holds(self.lines):
            if time.monotonic() > end:
                raise AssertionError(f"{what} never came:\n" + "\n".join(self.lines))
            self._read(0.2)

    def wait_for_text(self, text):
        self.wait_for(lambda lines: any(text in line for line in lines), repr(text))

    def wait_for_output(self, text):
        """Waits until this text was written anywhere."""
        self.wait_for(lambda _: text in self.raw, repr(text))

    def wait_for_end(self):
        """Waits for the end, reads all output, and returns the exit status."""
        end = time.monotonic() + DEADLINE
        while self.process.poll() is None:
            if time.monotonic() > end:
                raise AssertionError("it never ended:\n" + "\n".join(self.lines))
            self._read(0.1)
        while self._read(0.1):
            pass
        return self.process.returncode

    def _read(self, seconds):
        if not select.select([self.master], [], [], seconds)[0]:
            return False
        try:
            piece = os.read(self.master, 1 << 16)
        except OSError:
            return False
        self.raw += piece
        self._draw(piece)
        return bool(piece)

    def _draw(self, piece):
        text, self._rest = self._rest + piece, b""
        place = 0
        while place < len(text):
            if text[place] == 0x1B:
                found = _SEQUENCE.match(text, place)
                if found is None:  # The rest of the character follows.
                    self._rest = text[place:]
                    return
                self._sequence(found[1] or b"", found[2] or b"")
                place = found.end()
            else:
                end = text.find(b"\x1b", place)
                end = len(text) if end < 0 else end
                try:
                    letters = text[place:end].decode()
                except UnicodeDecodeError:
                    self._rest = text[place:]
                    return
                self._print(letters)
                place = end

    def _sequence(self, parameters, letter):
        if letter == b"H":
            row, _, column = parameters.partition(b";")
            self._row, self._column = int(row or 1) - 1, int(column or 1) - 1
        elif letter == b"J":
            self._lines = [[" "] * self.columns for _ in range(self.rows)]

    def _print(self, letters):
        for letter in letters:
            if letter == "\r":
                self._column = 0
            elif letter == "\n":
                self._row = min(self._row + 1, self.rows - 1)
            elif letter >= " ":
                if self._row < self.rows and self._column < self.columns:
                    self._lines[self._row][self._column] = letter
                self._column += 1
