"""Waits; the script also runs in old interpreters."""

import sys
import time

print("true")
sys.stdout.flush()
time.sleep(1000)
