"""The stackweave command: python -m stackweave, or stackweave where the package is installed."""

import signal
import sys

from ._native import run_command


def main() -> int:
    # The command is one call into native code, which Python's own handler would not interrupt.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.stdout.flush()
    return run_command(["stackweave", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
