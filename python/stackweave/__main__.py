"""The stackweave command: python -m stackweave, or stackweave where the package is installed."""

import sys

from ._native import run_command


def main() -> int:
    if sys.argv[1:2] in (["trace"], ["memory"], ["dynamo"]):
        return _record(sys.argv)
    import signal

    # The command is one call into native code, which Python's own handler would not interrupt.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.stdout.flush()
    return run_command(["stackweave", *sys.argv[1:]])


def _record(arguments: list[str]) -> int:
    from ._program import has_first_folder

    if has_first_folder():
        # What follows is to be imported from where it is always, and the program has a folder of its own.
        del sys.path[0]
    if arguments[1] == "trace":
        from ._trace_command import main
    elif arguments[1] == "memory":
        from ._memory_command import main
    else:
        from ._dynamo_command import main

    is_module = arguments[0].endswith("__main__.py")
    return main(f"{sys.executable.rpartition('/')[2]} -m stackweave" if is_module else "stackweave", arguments[2:])


if __name__ == "__main__":
    sys.exit(main())
