"""The command: `stackweave`, or `python -m stackweave`."""

import sys

from ._native import run_command

#: Commands that run in this interpreter, and their modules.
_IN_PYTHON = {
    "trace": "_commands.trace",
    "memory": "_commands.memory",
    "record": "_commands.record",
    "dynamo": "_commands.dynamo",
    "doctor": "_doctor.command",
}


def main() -> int:
    arguments = sys.argv
    if arguments[1:2] == ["help"] and len(arguments) > 2 and arguments[2] in _IN_PYTHON:
        arguments = [arguments[0], arguments[2], "--help"]
    if len(arguments) > 1 and arguments[1] in _IN_PYTHON:
        return _run_here(arguments)
    import signal

    # The command is one call into native code, which Python's own handler would not interrupt.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    _occupy_closed_streams()
    if sys.stdout is not None:
        sys.stdout.flush()
    return run_command(["stackweave", *sys.argv[1:]])


def _occupy_closed_streams() -> None:
    """Opens the null device in place of closed standard streams, so that no file of the command gets their numbers."""
    import os

    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            # The lowest free number is this one. Writing to it is an error, as to a closed stream.
            os.open(os.devnull, os.O_RDONLY)


def _run_here(arguments: list[str]) -> int:
    if not getattr(sys.flags, "safe_path", sys.flags.isolated):
        # The current folder may have modules with the names of those that are imported below. The program adds its own
        # folder.
        del sys.path[0]
    from ._loaded_modules import import_eagerly

    import_eagerly()
    from importlib import import_module

    command = import_module(f".{_IN_PYTHON[arguments[1]]}", __package__)
    is_module = arguments[0].endswith("__main__.py")
    name = f"{sys.executable.rpartition('/')[2]} -m stackweave" if is_module else "stackweave"
    status: int = command.main(name, arguments[2:])
    return status


if __name__ == "__main__":
    sys.exit(main())
