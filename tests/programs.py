"""Small programs that end in different ways, and inspect their environment."""

import re

SURROUNDINGS = r"""import os, sys
print(sys.argv, sys.path[0], __name__, __file__ if "__file__" in globals() else None)
print({name: value for name, value in globals().items() if name not in ("__builtins__", "__loader__", "sys", "os")})
print(type(__builtins__), type(__loader__), getattr(__loader__, "name", None), getattr(__loader__, "path", None))
print(sys.flags, sys.modules["__main__"].__dict__ is globals(), sys.warnoptions, sys.excepthook is sys.__excepthook__)
print(os.getcwd(), sys.stdin.isatty(), sys.getrecursionlimit(), sys.gettrace(), os.environ.get("STACKWEAVE_RECORDING"))
import signal, threading
print(signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM), threading.current_thread())
"""


def _split(text):
    """Returns the programs by name. A line with a name precedes each program."""
    parts = re.split(r"(?m)^### (\w+)\n", text)
    return dict(zip(parts[1::2], parts[2::2]))


SCRIPTS = {"surroundings": SURROUNDINGS} | _split(
    r"""
### interpreter_settings
import locale, os, signal, sys, threading, warnings
print([str(signal.getsignal(number)) for number in range(1, 32)])
print(signal.pthread_sigmask(signal.SIG_BLOCK, []), locale.setlocale(locale.LC_ALL), warnings.filters)
print(sys.stdout.encoding, sys.stdout.errors, sys.path_hooks[0], sys.displayhook, sys.unraisablehook)
print([thread.name for thread in threading.enumerate()], threading.excepthook, os.umask(0o22), sys.dont_write_bytecode)
print(sorted(set(os.environ)), [number for number in range(3, 20) if os.path.exists(f"/proc/self/fd/{number}")][:1])

### pickled_by_copyreg
import copyreg, enum, pickle, re, collections, typing
class Point:
    def __init__(self, x): self.x = x
copyreg.pickle(Point, lambda point: (Point, (point.x,)))
print(pickle.loads(pickle.dumps(Point(3))).x, pickle.loads(pickle.dumps(re.compile("a"))), isinstance(re.I, enum.Flag))
print(issubclass(collections.OrderedDict, typing.Mapping), len(copyreg.dispatch_table))

### module_docstring
'''What it does.'''
print(__doc__)

### future_annotations
from __future__ import annotations
x: int = 3
print(__annotations__, compile('1', '', 'eval'))

### inner_failure
def f(n):
    return f(n - 1) if n else 1 / 0
f(3)

### caused_failure
try:
    {}['a']
except KeyError as error:
    raise ValueError('b') from error

### syntax_error
print('never')
def f(:
    pass

### tabs_and_spaces
if True:
	x = 1
        y = 2

### own_excepthook
import sys
sys.excepthook = lambda *args: print('hook', args[0], args[2].tb_next)
1 / 0

### failing_excepthook
import sys
def hook(*args): raise KeyError('hook')
sys.excepthook = hook
1 / 0

### deep_recursion
def f(): f()
try:
    f()
except RecursionError as error:
    print(error)

### unprintable
class E(Exception):
    def __str__(self): raise KeyError
raise E

### exit_nothing
import sys; sys.exit()

### exit_three
import sys; sys.exit(3)

### exit_true
import sys; sys.exit(True)

### exit_negative
import sys; sys.exit(-1)

### exit_large
import sys; sys.exit(256 + 7)

### exit_words
import sys; print('out'); sys.exit('in words')

### exit_object
import sys; sys.exit([1, 2])

### exit_subclass
class Exit(SystemExit): pass
raise Exit(9)

### exit_at_once
import os, sys; print('lost?', flush=True); os._exit(7)

### exit_in_thread
import sys, threading
t = threading.Thread(target=sys.exit, args=(4,)); t.start(); t.join(); print('on')

### exit_after_the_end
import atexit, sys
atexit.register(print, 'end')
sys.exit(6)

### interrupted
def f(): raise KeyboardInterrupt('now')
f()

### interrupted_by_signal
import os, signal, time
os.kill(os.getpid(), signal.SIGINT)
time.sleep(30)

### interrupted_and_handled
import os, signal, time
try:
    os.kill(os.getpid(), signal.SIGINT); time.sleep(30)
except KeyboardInterrupt:
    print('handled')

### interrupted_by_a_derived_class
class Interrupted(KeyboardInterrupt): pass
raise Interrupted('now')

### traced_to_the_end
import sys
def shown(frame, event, argument):
    name = frame.f_code.co_filename
    if 'to_the_end' in name or 'stackweave' in name: print(event, frame.f_code.co_name)
    return shown
def f(): 1 / 0
sys.settrace(shown)
try: import nothing_of_that_name
except ImportError: pass
f()

### profiled_to_the_end
import sys
def shown(frame, event, argument):
    name = frame.f_code.co_filename
    # Where calls are recorded by a profile function, CPython reports the end of sys.setprofile to the new one.
    if event != 'c_return' and ('to_the_end' in name or 'stackweave' in name): print(event, frame.f_code.co_name)
class Late:
    def __del__(self): pass
late = Late()
def f(): pass
sys.setprofile(shown)
f()

### interrupted_with_atexit
import atexit
atexit.register(print, 'at exit')
raise KeyboardInterrupt

### terminated
import os, signal, time
print('x', flush=True)
os.kill(os.getpid(), signal.SIGTERM)
time.sleep(30)

### own_signal
import os, signal
signal.signal(signal.SIGTERM, lambda *a: print('term', a[0]))
os.kill(os.getpid(), signal.SIGTERM)
print('on')

### order_at_exit
import atexit
for n in range(3): atexit.register(print, n)
print('end')

### failure_at_exit
import atexit
@atexit.register
def f(): 1 / 0
atexit.register(print, 'first')

### names_at_exit
import atexit
@atexit.register
def f(): print('__file__' in globals(), __name__)

### thread_outlives
import threading, time
def f():
    time.sleep(0.1); print('thread')
threading.Thread(target=f).start()
print('main')

### daemon_thread
import threading, time
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
print('x')

### failing_thread
import threading
def f(): 1 / 0
t = threading.Thread(target=f, name='T'); t.start(); t.join()

### deleted_late
class D:
    def __del__(self): print('deleted', __name__)
d = D()

### failing_del
class D:
    def __del__(self): 1 / 0
d = D()
del d
print('on')

### standard_input
import sys
print(sys.stdin.read().upper(), input.__name__)

### closed_output
import sys
print('x')
sys.stdout.close()

### closed_error
import os, sys
os.close(2)
print('x')

### replaced_error
import io, sys
sys.stderr = io.StringIO()
print('x', file=sys.stderr)

### changes_folder
import os
os.chdir('/')
print(os.getcwd())

### changes_output_encoding
import sys
sys.stdout.reconfigure(encoding='latin-1')
print('\xe9')

### warned
import warnings
warnings.warn('careful', stacklevel=1)
warnings.warn('old', DeprecationWarning)

### logged
import logging
logging.warning('careful')
logging.getLogger('a.b').error('%s', 1)
logging.info('no')

### logged_without_handlers
import logging
logging.getLogger('a').warning('last resort')

### pickled
import pickle
class A:
    def __eq__(self, other): return type(self) is type(other)
print(pickle.loads(pickle.dumps(A())) == A(), pickle.dumps(A, 0))

### has_own_modules
import neighbour
print(neighbour.__name__, neighbour.VALUE)

### shadows_ours
import argparse
print(argparse.VALUE)

### traced_itself
import sys
seen = []
sys.settrace(lambda frame, *a: seen.append(frame.f_code.co_name))
def f(): pass
f()
sys.settrace(None)
print(seen)

### profiled_itself
import cProfile, sys
p = cProfile.Profile()
def f(): pass
p.runcall(f)
print(len(p.getstats()) > 0)

### generators
def g():
    try:
        x = yield 1
        print(x)
        yield 2
    finally:
        print('closed')
i = g(); next(i); i.send('sent'); i.close()
print(sum(x for x in range(9)))

### asyncio_tasks
import asyncio
async def f(n):
    await asyncio.sleep(0)
    return n
async def main(): print(await asyncio.gather(*map(f, range(5))))
asyncio.run(main())

### asyncio_failure
import asyncio
async def main(): 1 / 0
asyncio.run(main())

### forked
import os
if os.fork() == 0:
    print('child', flush=True)
    os._exit(3)
print(os.wait()[1])

### forked_to_the_end
import os, sys
pid = os.fork()
if pid: os.waitpid(pid, 0)
print('child' if not pid else 'parent')
sys.exit(2 if pid else 4)

### pool_of_forks
import multiprocessing
def f(n): return n * n
if __name__ == '__main__':
    with multiprocessing.get_context('fork').Pool(2) as pool: print(pool.map(f, range(5)))

### pool_of_spawned
import multiprocessing
class A:
    n = 7
def f(a): return a.n, __name__
if __name__ == '__main__':
    with multiprocessing.get_context('spawn').Pool(1) as pool: print(pool.map(f, [A()]))

### spawned_fails
import multiprocessing
def f(): raise SystemExit(5)
if __name__ == '__main__':
    p = multiprocessing.get_context('spawn').Process(target=f); p.start(); p.join(); print(p.exitcode)

### becomes_another
import os, sys
os.execv(sys.executable, [sys.executable, '-c', 'print(5)'])

### starts_another
import subprocess, sys
print(subprocess.run([sys.executable, '-c', 'exit(3)']).returncode)

### runs_others
import runpy
print(runpy.run_path(__file__, run_name='other')['__name__']) if __name__ == '__main__' else 0

### looks_at_modules
import sys
print(sys.modules['__main__'].__file__ == __file__, 'json.tool' in sys.modules)

### collects
import gc
class A: pass
for n in range(1000):
    a = A(); a.a = a
print(gc.collect() > 0, gc.isenabled())

### main_guard
if __name__ == '__main__':
    print('main')
import __main__
print(__main__.__dict__ is globals())
"""
)

#: Scripts that are not text in UTF-8.
BYTES = {
    "latin": b"# coding: latin-1\nprint('\xe9')\n",
    "marked": b"\xef\xbb\xbfprint('\xc3\xa9')\n",
    "windows_lines": b"print('a')\r\nif 1:\r\n    1 / 0\r\n",
    "not_utf8": b"print('\xe9')\n",
    "null": b"print('a')\0\n",
    "unknown_coding": b"# coding: nothing\nprint('a')\n",
    "empty": b"",
    "no_line_end": b"print('a')\nif 1:\n  print('b')",
}


CODE = {"surroundings": SURROUNDINGS, "indented": "    print('a')\n    print('b')"} | _split(
    r"""
### failure
def f():
    1 / 0
f()

### syntax
a b

### exit
import sys; sys.exit(4)

### interrupted
raise KeyboardInterrupt

### pickled
import pickle
class A: pass
print(pickle.loads(pickle.dumps(A())).__class__ is A)
"""
)
