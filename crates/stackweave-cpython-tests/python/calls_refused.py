"""Prints why calls can't be traced here: python calls_refused.py LIBRARY"""

import sys

import support

support.load(sys.argv[1])
print(support.held.calls_start(0, False).decode())
