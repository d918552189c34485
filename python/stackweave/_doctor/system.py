"""Checks the system: permission to read other processes, disk space, a browser for reports."""

from __future__ import annotations

import ctypes
import os
import shutil
from typing import TYPE_CHECKING

from .._native import stats
from .._sizes import size_text
from .findings import Finding, examine, note, ok

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .findings import Section

YAMA = "/proc/sys/kernel/yama/ptrace_scope"
SYS_PTRACE = 19
#: Less free disk space than this is reported.
LITTLE_ROOM = 2 << 30


def section() -> Section:
    return examine("System", (_tracing, _reading_memory, _answers, _thread_memory, _room, _browser))


def _tracing() -> Iterator[Finding]:
    """Checks whether `stackweave stacks PID` may stop a process."""
    scope, is_able = _yama_scope(), _has_capability(SYS_PTRACE)
    values = {"yama": scope, "cap_sys_ptrace": is_able}
    if scope in (None, 0) or (is_able and scope in (1, 2)):
        processes = "any process" if is_able else "your processes"
        yield ok(f"stackweave stacks PID may read {processes}", **values)
        return
    allowed = {1: "children only", 2: "root only"}.get(scope, "no process")
    remedy = "processes that have imported stackweave answer nevertheless"
    if scope != 3:
        remedy += "; for others: sudo stackweave stacks PID"
    if scope == 1:
        remedy += ", or sudo sysctl kernel.yama.ptrace_scope=0"
    yield note(
        f"stackweave stacks PID: the system lets processes be traced by {allowed} (ptrace_scope {scope})",
        remedy,
        **values,
    )


def _yama_scope() -> int | None:
    try:
        with open(YAMA, encoding="ascii") as file:
            return int(file.read())
    except (OSError, ValueError):
        return None


def _has_capability(number: int) -> bool:
    with open("/proc/self/status", encoding="utf-8", errors="replace") as status:
        effective = next((line.split()[1] for line in status if line.startswith("CapEff:")), "0")
    return bool(int(effective, 16) >> number & 1)


def _reading_memory() -> Iterator[Finding]:
    """Checks the system call that reads the memory of a process: a sandbox may forbid it even for this one."""
    source, target = ctypes.create_string_buffer(b"readable", 8), ctypes.create_string_buffer(8)
    piece = ctypes.c_size_t * 2  # an iovec: where, and how much
    local, remote = piece(ctypes.addressof(target), 8), piece(ctypes.addressof(source), 8)
    library = ctypes.CDLL(None, use_errno=True)
    read = library.process_vm_readv(os.getpid(), ctypes.byref(local), 1, ctypes.byref(remote), 1, 0)
    if read != 8:
        error = os.strerror(ctypes.get_errno())
        yield note(
            f"the memory of other processes can't be read: {error}",
            "the sandbox forbids process_vm_readv: docker run --cap-add=SYS_PTRACE allows it",
            process_vm_readv=False,
        )


def _answers() -> Iterator[Finding]:
    answers = stats()["answers"]
    if answers["signal"] is not None:
        yield ok(f"processes that import stackweave answer stackweave stacks, by signal {answers['signal']}", **answers)
    else:
        yield note(f"this process would not answer stackweave stacks: {answers['reason']}", **answers)


def _thread_memory() -> Iterator[Finding]:
    """Checks thread-local storage: the loader has a small reserve for libraries that are loaded after the start."""
    used = stats()["unwind"]["static_tls_bytes"]
    yield ok(f"stackweave takes {used} bytes of static thread-local memory from other libraries", static_tls_bytes=used)


def _room() -> Iterator[Finding]:
    folder = os.getcwd()
    if not os.access(folder, os.W_OK):
        yield note(f"recordings can't be written to this folder, {folder}", "name another with -o FILE", folder=folder)
        return
    free = shutil.disk_usage(folder).free
    values = {"folder": folder, "free_bytes": free}
    if free < LITTLE_ROOM:
        yield note(
            f"only {size_text(free)} are free for recordings in {folder}",
            "name another folder with -o FILE, or keep only the last part with --ring 64MB",
            **values,
        )
    else:
        yield ok(f"{size_text(free)} are free for recordings in {folder}", **values)


def _browser() -> Iterator[Finding]:
    """Checks for a browser as `stackweave report --open` does."""
    has_screen = bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    named = [browser.split()[0] for browser in os.environ.get("BROWSER", "").split(":") if browser.strip()]
    found = next(filter(shutil.which, [*named, *(["xdg-open"] if has_screen else [])]), None)
    if found:
        yield ok(f"stackweave report opens a browser by {os.path.basename(found)}", browser=found)
    else:
        yield note(
            "there is no browser here for stackweave report",
            "copy the report, which is one HTML file, to a machine with a browser; or set BROWSER",
            browser=None,
        )
