"""The last line names Python programs that a recorded one starts and that are not recorded."""

from tests.command_support import OUTPUT, CommandCase
from tests.support import PYTHON, run_on_oldest_and_newest

setUpModule = run_on_oldest_and_newest

SPAWN = """
import multiprocessing
def work(): pass
if __name__ == "__main__":
    process = multiprocessing.get_context({!r}).Process(target=work)
    process.start()
    process.join()
"""
CODE = f"""
import os, subprocess
python = {PYTHON!r}
subprocess.run([python, "-c", ""], check=True)
subprocess.run(f"{{python}} -c ''", shell=True, check=True)
os.system(f"{{python}} -c ''")
os.waitpid(os.posix_spawn(python, [python, "-c", ""], os.environ), 0)
subprocess.run(["true"], check=True)
subprocess.run("true", shell=True, check=True)
os.system("true")
"""
HINT = "started and not recorded: --subprocesses records such processes, too\n"


class Unrecorded(CommandCase):
    name = "trace"

    def hints(self, *arguments):
        lines = self.messages(*OUTPUT, *arguments).splitlines(True)
        return [line for line in lines if "not recorded" in line]

    def test_python_programs_are_counted(self):
        self.write("starts.py", CODE)
        self.assertEqual(self.hints("starts.py"), [f"stackweave: 4 Python programs were {HINT}"])
        one = f"import subprocess; subprocess.run([{PYTHON!r}, '-c', ''])"
        self.assertEqual(self.hints("-c", one), [f"stackweave: 1 Python program was {HINT}"])

    def test_under_every_command(self):
        self.write("starts.py", CODE)
        for name in ("memory", "record", "dynamo"):
            with self.subTest(command=name):
                self.name = name
                self.assertEqual(self.hints("starts.py"), [f"stackweave: 4 Python programs were {HINT}"])

    def test_processes_of_multiprocessing(self):
        for method in ("spawn", "forkserver"):
            with self.subTest(method=method):
                self.write("spawns.py", SPAWN.format(method))
                self.assertEqual(self.hints("spawns.py"), [f"stackweave: processes of multiprocessing were {HINT}"])

    def test_nothing_is_said_if_all_is_recorded(self):
        self.write("spawns.py", SPAWN.format("fork"))
        self.assertEqual(self.hints("spawns.py"), [])
        self.write("starts.py", CODE)
        self.assertEqual(self.hints("--subprocesses", "starts.py"), [])
        self.assertEqual(self.hints("-c", "import subprocess; subprocess.run(['true'])"), [])
