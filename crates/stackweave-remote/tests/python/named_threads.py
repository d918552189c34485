"""Starts threads with names of many kinds, prints the name of each as JSON, by its ident, and waits."""

import _thread
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

NEVER = threading.Lock()
NEVER.acquire()
EXPECTED = {}
READY = threading.Semaphore(0)
MANY = 200


def wait(action=None):
    if action is not None:
        action()
    READY.release()
    NEVER.acquire()


class Slotted(threading.Thread):
    __slots__ = ["first", "second"]


class Large(threading.Thread):
    def __init__(self, **arguments):
        for number in range(100):
            setattr(self, f"attribute_{number}", number)
        super().__init__(**arguments)


class Failing(Exception, threading.Thread):
    """The base class in C has a field for the dictionary, so that it is not at its usual offset."""

    def __init__(self, **arguments):
        threading.Thread.__init__(self, **arguments)


def start(make, name, change=None):
    thread = make(target=wait, name=name, daemon=True)
    if change is not None:
        change(thread)
    thread.start()
    READY.acquire()
    EXPECTED[thread.ident] = thread.name
    return thread


def start_unnamed(action=None):
    """Starts a thread that `threading` does not know, unless `action` uses it there."""
    ident = _thread.start_new_thread(wait, (action,))
    READY.acquire()
    EXPECTED.setdefault(ident, None)


def expect_current_name():
    EXPECTED[threading.get_ident()] = threading.current_thread().name


def replace_dictionary(thread):
    thread.__dict__ = dict(vars(thread))


def grow_dictionary(thread):
    vars(thread).update((f"more_{number}", number) for number in range(100))


def delete_attributes(thread):
    thread.first = thread.second = 1
    del thread.first


def end_some():
    """Leaves deleted entries in the dictionaries."""
    ended = [threading.Thread(target=time.sleep, args=[0.01]) for _ in range(20)]
    for thread in ended:
        thread.start()
    for thread in ended:
        thread.join()


def shown(name):
    return name and "".join("\ufffd" if 0xD800 <= ord(letter) < 0xE000 else letter for letter in name)


def main():
    end_some()
    for name in ["worker", "élan", "名前", "𝒳", "lost \udcff", "two\nlines", "a" * 300]:
        start(threading.Thread, name)
    start(threading.Thread, None)
    for make in [Slotted, Large, Failing]:
        start(make, make.__name__)
    for change in [vars, replace_dictionary, grow_dictionary, delete_attributes]:
        start(threading.Thread, change.__name__, change)
    end_some()
    start_unnamed()
    start_unnamed(expect_current_name)
    renamed = start(threading.Thread, "before")
    renamed.name = EXPECTED[renamed.ident] = "after"
    pool = ThreadPoolExecutor(2, thread_name_prefix="pool")
    for _ in range(2):
        pool.submit(wait, expect_current_name)
        READY.acquire()
    threading.stack_size(64 << 10)
    for number in range(MANY):
        start(threading.Thread, f"many-{number}")
    threading.main_thread().name = EXPECTED[threading.get_ident()] = "Straße"
    print(json.dumps({ident: shown(name) for ident, name in EXPECTED.items()}), flush=True)
    NEVER.acquire()


main()
