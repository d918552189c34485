"""A daemon thread walks without the GIL while the interpreter shuts down: python daemon_at_shutdown.py LIBRARY."""

import ctypes
import sys
import threading
import time

import support

support.load(sys.argv[1])
ctypes.pythonapi.Py_AtExit(support.held.report_at_exit)
threading.Thread(target=support.released.walk_through_shutdown, daemon=True).start()
time.sleep(0.05)
