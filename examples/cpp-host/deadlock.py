"""One thread takes the GIL and then the device lock; another takes the device lock, and then captures or drops a stack:
python deadlock.py LIBSTACKWEAVE LIBHOST {stackweave|gil} {python|native} {capture|drop}

With a recorder that takes the GIL, this never ends.
"""

import ctypes
import sys
import threading
import time

import library

RECORDERS = {"stackweave": 1, "gil": 2}


def main():
    _, stackweave, host, recorder, thread, action = sys.argv
    without_gil, with_gil = (library.load_host(host, loader) for loader in (ctypes.CDLL, ctypes.PyDLL))
    if recorder == "stackweave":
        library.Stackweave(stackweave).enable_python()
    assert without_gil.host_set_recorder(RECORDERS[recorder])
    only_drops = int(action == "drop")
    if thread == "python":
        threading.Thread(target=without_gil.host_lock_then_capture, args=(only_drops,)).start()
    else:
        without_gil.host_lock_then_capture_in_thread(only_drops)
    print("meeting", flush=True)
    with_gil.host_gil_then_lock()
    while not without_gil.host_is_done():
        time.sleep(0.001)
    print("done", flush=True)


if __name__ == "__main__":
    main()
