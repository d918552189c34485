"""The live view works on a real terminal: trace --live, memory --live, record --live, and stackweave live."""

import os
import re
import signal
import subprocess
import termios

import stackweave
from tests.recordings import RecordingCase
from tests.support import PYTHON, run_on_newest
from tests.terminal_support import DEADLINE, Terminal

setUpModule = run_on_newest

#: Runs until a file called stop exists. Its exit status reports the result.
PROGRAM = """\
import os, sys, time

def worker_ant(number):
    return [number] * 10

def busy_bee():
    for number in range(1000):
        worker_ant(number)

kept = []

def hoard():
    kept.append(bytearray(100_000))

print("hello from the program", flush=True)
print("and its errors", file=sys.stderr)
end = time.monotonic() + 80
while not os.path.exists("stop") and time.monotonic() < end:
    busy_bee()
    if len(kept) < 50:
        hoard()
print("the last word")
sys.exit(7)
"""
#: Has recursion, generators, exceptions, threads, blocks that another thread frees, and blocks that grow.
MANY_THINGS = """\
import queue, sys, threading

def fib(number):
    return number if number < 2 else fib(number - 1) + fib(number - 2)

def numbers():
    for number in range(200):
        yield number

def fails(number):
    if number % 2:
        raise ValueError(number)

def catches():
    for number in range(200):
        try:
            fails(number)
        except ValueError:
            pass

blocks = queue.Queue()

def takes():
    for number in range(100):
        blocks.put(bytearray(10_000 + number))
        grown = []
        for each in range(200):
            grown.append(each)

def gives_back():
    for _ in range(50):
        blocks.get()

def work():
    fib(15)
    sum(numbers())
    catches()

threads = [threading.Thread(target=each) for each in (work, work, takes, gives_back)]
for each in threads:
    each.start()
work()
for each in threads:
    each.join()
"""
#: The child makes calls, too.
FORKS = """\
import os, time

def child_of_it():
    return 1

number = os.fork()
end = time.monotonic() + 80
while not os.path.exists("stop") and time.monotonic() < end:
    child_of_it()
if number == 0:
    os._exit(0)
os.waitpid(number, 0)
"""
LEFT = b"\x1b[?1049l"
OVER = "recording ended: q quits"


class LiveCase(RecordingCase):
    def setUp(self):
        super().setUp()
        self.write("prog.py", PROGRAM)

    def command(self, name, *arguments):
        return [PYTHON, "-m", "stackweave", name, *arguments]

    def live(self, name, *arguments, program="prog.py", **options):
        command = self.command(name, "--live", "-o", "out.swv", *arguments, program)
        return Terminal(command, self.folder, **options)

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w") as file:
            file.write(text)

    def stop(self):
        open(os.path.join(self.folder, "stop"), "w").close()

    def assert_left(self, terminal, status):
        """Asserts that the command ended with this status, restored the terminal, and left a readable recording."""
        self.assertEqual(terminal.wait_for_end(), status)
        self.assertEqual(termios.tcgetattr(terminal.slave), terminal.modes)
        self.assertEqual(terminal.raw.count(LEFT), terminal.raw.count(b"\x1b[?1049h"))
        self.assertEqual(terminal.raw.rpartition(b"\x1b[?25")[2][:1], b"h", "the cursor is shown")

    def printed(self, terminal):
        """Returns the text on the terminal after the view."""
        return terminal.raw.rpartition(LEFT)[2].replace(b"\x1b[?25h", b"").decode()


class WatchedPrograms(LiveCase):
    def test_a_program_is_watched_to_its_end(self):
        with self.live("trace") as terminal:
            terminal.wait_for_text("busy_bee")
            terminal.wait_for_text("hello from the program")
            terminal.wait_for_text("● recording")
            terminal.press("/ant\r")
            terminal.wait_for(lambda lines: not any("busy_bee" in line for line in lines), "a table without busy_bee")
            terminal.wait_for_text("worker_ant")
            terminal.press("\x1b")
            terminal.wait_for_text("busy_bee")
            terminal.press("t")
            is_first = lambda lines: any("<module>" in line for line in lines[7:8])  # noqa: E731
            terminal.wait_for(is_first, "<module>, which has the greatest total, on top")
            terminal.press("?")
            terminal.wait_for_text("sort by total")
            terminal.press("x")
            self.stop()
            terminal.wait_for_text(OVER)
            terminal.press("q")
            self.assert_left(terminal, 7)
            printed = self.printed(terminal).splitlines()
            for line in ("hello from the program", "and its errors", "the last word"):
                self.assertEqual(printed.count(line), 1, printed)
            self.assertRegex(printed[-1], r"^stackweave: [\d,]+ calls in .*, recorded in out\.swv")
        info = subprocess.run(
            self.command("info", "out.swv"), cwd=self.folder, capture_output=True, text=True, timeout=60
        )
        self.assertEqual((info.returncode, "not closed" in info.stdout + info.stderr), (0, False), info)

    def test_the_program_goes_on_when_the_view_is_left(self):
        with self.live("trace") as terminal:
            terminal.wait_for_text("busy_bee")
            terminal.press("q")
            terminal.wait_for_output(LEFT)
            terminal.wait_for(lambda _: "hello from the program" in self.printed(terminal), "what was printed before")
            self.assertIsNone(terminal.process.poll())
            self.stop()
            self.assert_left(terminal, 7)
            # The two streams are mixed: the end of a line of one may follow text of the other.
            self.assertIn("the last word", self.printed(terminal))
            self.assertIn("recorded in out.swv", self.printed(terminal))

    def test_an_interrupt_is_the_programs(self):
        with self.live("trace") as terminal:
            terminal.wait_for_text("busy_bee")
            terminal.press("\x03")
            terminal.wait_for_text(OVER)
            terminal.press("q")
            self.assert_left(terminal, -signal.SIGINT)
            self.assertIn("KeyboardInterrupt", self.printed(terminal))
        self.assertTrue(stackweave.open(os.path.join(self.folder, "out.swv")).info())

    def test_an_interrupt_after_the_view_is_the_programs_too(self):
        with self.live("trace") as terminal:
            terminal.wait_for_text("busy_bee")
            terminal.press("q")
            terminal.wait_for_output(LEFT)
            terminal.wait_for(lambda _: "hello from the program" in self.printed(terminal), "what was printed before")
            terminal.press("\x03")
            self.assert_left(terminal, -signal.SIGINT)

    def test_signals_end_the_program_and_give_the_terminal_back(self):
        for number in (signal.SIGTERM, signal.SIGHUP):
            with self.subTest(signal=number), self.live("trace", "--overwrite") as terminal:
                terminal.wait_for_text("busy_bee")
                terminal.process.send_signal(number)
                self.assert_left(terminal, -number)

    def test_a_crash_is_passed_on(self):
        self.write("crash.py", "import os\ndef before_the_end(): pass\nbefore_the_end()\nos.kill(os.getpid(), 9)\n")
        with self.live("trace", program="crash.py") as terminal:
            terminal.wait_for_text(OVER)
            terminal.press("q")
            self.assert_left(terminal, -signal.SIGKILL)

    def test_a_process_left_behind_is_not_waited_for(self):
        left = "import time\\nwhile True: print('still here', flush=True); time.sleep(0.02)"
        self.write("leaves.py", f"import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', \"{left}\"])\n")
        with self.live("trace", program="leaves.py") as terminal:
            terminal.wait_for_text(OVER)
            terminal.press("q")
            self.assert_left(terminal, 0)
            self.assertIn("recorded in out.swv", self.printed(terminal))

    def test_memory_is_watched(self):
        with self.live("memory") as terminal:
            terminal.wait_for_text("hoard")
            terminal.wait_for_text("live memory")
            terminal.press("a")
            terminal.wait_for_text("by bytes allocated")
            self.stop()
            terminal.wait_for_text(OVER)
            terminal.press("q")
            self.assert_left(terminal, 7)

    def test_calls_and_memory_are_watched_together(self):
        with self.live("record") as terminal:
            terminal.wait_for_text("busy_bee")
            terminal.wait_for_text("calls per second")
            terminal.press("\t")
            terminal.wait_for_text("live memory")
            terminal.wait_for_text("hoard")
            self.stop()
            terminal.wait_for_text(OVER)
            terminal.press("q")
            self.assert_left(terminal, 7)

    def test_forked_processes_are_taken_in(self):
        self.write("forks.py", FORKS)
        with self.live("trace", program="forks.py") as terminal:
            terminal.wait_for_text("2 processes")
            terminal.wait_for_text("child_of_it")
            self.stop()
            terminal.wait_for_text(OVER)
            terminal.press("q")
            self.assert_left(terminal, 0)

    def test_a_stream_that_goes_elsewhere_goes_there(self):
        path = os.path.join(self.folder, "printed.txt")
        with open(path, "wb") as file, self.live("trace", stdout=file) as terminal:
            terminal.wait_for_text("busy_bee")
            self.stop()
            terminal.wait_for_text(OVER)
            terminal.press("q")
            self.assert_left(terminal, 7)
            self.assertNotIn("the last word", self.printed(terminal))
            self.assertIn("and its errors", self.printed(terminal))
        with open(path) as file:
            self.assertEqual(file.read(), "hello from the program\nthe last word\n")

    def test_without_a_terminal_it_is_refused(self):
        done = subprocess.run(
            self.command("trace", "--live", "prog.py"), cwd=self.folder, capture_output=True, text=True, timeout=60
        )
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertRegex(done.stderr, r"^stackweave trace: --live draws on a terminal, .*: omit it\n$")


class SameFigures(LiveCase):
    """The final screen has the same figures as the commands that read the file."""

    #: The columns: value, share, a bar, value, share, calls or blocks, function.
    ROW = re.compile(r"^ *([\d.]+ \w+) +\d+% [ \u2588-\u258f]*([\d.]+ \w+) +\d+% +\S+  (\S+)")

    def watch_to_the_end(self, name, *keys, top=()):
        self.write("many.py", MANY_THINGS)
        with self.live(name, program="many.py", rows=60, columns=160) as terminal:
            terminal.wait_for_text(OVER)
            for key, text in keys:
                terminal.press(key)
                terminal.wait_for_text(text)
            expected = self.own(self.top(*top))
            self.assertIn("takes", {row[2] for row in expected})
            what = f"what stackweave top says, {sorted(expected)},"
            terminal.wait_for(lambda lines: self.own(self.shown(lines)) == expected, what)
            terminal.press("q")
            self.assert_left(terminal, 0)

    def top(self, *options):
        """Returns self, total and name of each function."""
        command = self.command("top", "out.swv", "-n", "1000", *options)
        text = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=True, timeout=60).stdout
        row = re.compile(r"([\d.]+ \w+) +[\d.]+% +([\d.]+ \w+) +[\d.]+% +(.*)")
        rows = filter(None, map(row.search, text.splitlines()))
        # The name is before the location, and the time of each call is before the name.
        return {(found[1], found[2], re.split(r" {2,}", found[3])[-2]) for found in rows}

    def shown(self, lines):
        return {found.groups() for line in lines if (found := self.ROW.match(line))}

    def own(self, rows):
        """Returns those of the program's functions, because functions of libraries may not have names yet."""
        names = {"<module>", *re.findall(r"def (\w+)", MANY_THINGS)}
        return {row for row in rows if row[2] in names}

    def test_calls(self):
        self.watch_to_the_end("trace")

    def test_memory(self):
        self.watch_to_the_end("memory", ("a", "by bytes allocated"), top=("--measure", "bytes"))


class WatchedFiles(LiveCase):
    def start(self):
        """Starts a program that records, without a terminal."""
        program = subprocess.Popen(
            self.command("trace", "-q", "-o", "out.swv", "prog.py"),
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        return program

    def watch(self, **options):
        return Terminal(self.command("live", "out.swv"), self.folder, **options)

    def test_a_file_is_waited_for_and_followed_to_its_end(self):
        with self.watch() as terminal:
            terminal.wait_for_text("waiting for the recording")
            self.start()
            terminal.wait_for_text("worker_ant")
            self.stop()
            terminal.wait_for_text("● ended")
            terminal.press("q")
            self.assert_left(terminal, 0)

    def test_the_end_of_a_killed_program_is_shown(self):
        program = self.start()
        with self.watch() as terminal:
            terminal.wait_for_text("worker_ant")
            program.kill()
            program.wait()
            terminal.wait_for_text("killed")
            terminal.press("q")
            self.assert_left(terminal, 0)

    def test_signals_give_the_terminal_back(self):
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            with self.subTest(signal=number), self.watch() as terminal:
                terminal.wait_for_text("waiting for the recording")
                terminal.process.send_signal(number)
                self.assert_left(terminal, -number)

    def test_a_terminal_that_goes_away_ends_it(self):
        for shell in ("", "trap '' HUP; "):
            command = ["/bin/sh", "-c", shell + 'exec "$@"', "sh", *self.command("live", "out.swv")]
            with self.subTest(shell=shell), Terminal(command, self.folder) as terminal:
                terminal.wait_for_text("waiting for the recording")
                terminal.hang_up()
                # The signal may arrive after the end of the terminal.
                self.assertIn(terminal.process.wait(DEADLINE), (-signal.SIGHUP, 1))

    def test_small_terminals_and_resizing(self):
        self.start()
        with self.watch(rows=10, columns=40) as terminal:
            terminal.wait_for_text("worker_ant")
            terminal.resize(30, 120)
            os.kill(terminal.process.pid, signal.SIGWINCH)
            terminal.wait_for(lambda lines: "q quit" in lines[29], "the keys on the new last line")
            terminal.press("\x03")
            self.assert_left(terminal, 0)

    def test_no_colours_if_none_are_wanted(self):
        self.start()
        with self.watch(environment={"NO_COLOR": "1"}) as terminal:
            terminal.wait_for_text("worker_ant")
            terminal.press("q")
            self.assert_left(terminal, 0)
            self.assertEqual(re.findall(rb"\x1b\[(?:[0-9;]*;)?(?:3[0-7]|38;[0-9;]*|9[0-7])m", terminal.raw), [])

    def test_a_file_that_is_no_recording_is_refused(self):
        self.write("out.swv", "ncalls  tottime\n")
        with self.watch() as terminal:
            self.assert_left(terminal, 1)
            self.assertIn("this is no recording", self.printed(terminal))
