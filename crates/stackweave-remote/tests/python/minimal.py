"""Waits, in as few ways as an old interpreter knows."""

import sys
import time

print("true")
sys.stdout.flush()
time.sleep(1000)
