"""Cases for the hooks of Python's allocators: python allocator_cases.py LIBRARY. Prints how many cases there were."""

import ctypes
import gc
import random
import sys
import threading
import tracemalloc

import support

support.load(sys.argv[1])
held = support.held
api = ctypes.pythonapi
ALLOCATED, FREED, UNKNOWN, REPLACED, KEPT, FAILED, COUNTED = range(7)
NO_ROOM = 1 << 46
for prefix in "PyMem", "PyObject":
    getattr(api, prefix + "_Malloc").argtypes = [ctypes.c_size_t]
    getattr(api, prefix + "_Calloc").argtypes = [ctypes.c_size_t] * 2
    getattr(api, prefix + "_Realloc").argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    getattr(api, prefix + "_Free").argtypes = [ctypes.c_void_p]
    getattr(api, prefix + "_Free").restype = None
    for name in "Malloc", "Calloc", "Realloc":
        getattr(api, f"{prefix}_{name}").restype = ctypes.c_void_p
held.allocators_block.argtypes = [ctypes.c_uint64]


def start(counts_only=False):
    fault = held.allocators_start(counts_only)
    assert fault is None, fault


def block(address):
    text = held.allocators_block(address)
    return text and text.decode()


def count(which):
    return held.allocators_count(which)


HEADER = 16


def size_of(thing):
    """Returns the size in the record of an object's block, whether that begins before the object's header or at it."""
    before = block(id(thing) - HEADER) if gc.is_tracked(thing) else block(id(thing))
    return before and int(before.split()[2])


def many_objects():
    """Creates more objects than fit into the existing arenas."""
    return [bytes(200) for _ in range(8_000)]


def each_function_is_recorded():
    for prefix, domain in ("PyMem", "Mem"), ("PyObject", "Object"):
        malloc, calloc, realloc, free = (getattr(api, f"{prefix}_{n}") for n in "Malloc Calloc Realloc Free".split())
        for size in 0, 35, 511, 515, 100_000:
            held.allocators_clear()
            start()
            one, two, three = malloc(size), calloc(3, size), realloc(None, size)
            assert block(one) == f"{domain} Malloc {size}", block(one)
            assert block(two) == f"{domain} Calloc {3 * size}", block(two)
            assert block(three) == f"{domain} Realloc {size}", block(three)
            moved = realloc(one, 2 * size + 10)
            assert block(moved) == f"{domain} Realloc {2 * size + 10}", block(moved)
            assert moved == one or block(one) != f"{domain} Malloc {size}"
            for address in moved, two, three:
                was = block(address)
                free(address)
                assert block(address) != was, was
            free(None)
            held.allocators_stop()


def failed_allocations_are_recorded():
    held.allocators_clear()
    start()
    address = api.PyMem_Malloc(40)
    failed = count(FAILED)
    assert api.PyObject_Malloc(NO_ROOM) is None and count(FAILED) == failed + 1
    assert api.PyMem_Realloc(address, NO_ROOM) is None and count(FAILED) == failed + 2
    assert count(KEPT) == 1 and block(address) == "Mem Malloc 40", block(address)
    try:
        bytes(NO_ROOM)
    except MemoryError:
        pass
    assert count(FAILED) == failed + 3
    api.PyMem_Free(address)
    assert block(address) != "Mem Malloc 40"
    held.allocators_stop()


def blocks_from_before_are_unknown():
    held.allocators_clear()
    address = api.PyMem_Malloc(50)
    other = api.PyMem_Malloc(50)
    start()
    assert block(address) is None
    before = count(UNKNOWN)
    api.PyMem_Free(address)
    later = count(UNKNOWN)
    held.allocators_stop()
    assert later >= before + 1, (before, later)
    freed = count(FREED)
    api.PyMem_Free(other)
    assert count(FREED) == freed, "nothing is recorded after the end"


class Plain:
    __slots__ = ("one", "two")


def objects_are_recorded():
    held.allocators_clear()
    gc.collect()
    start()
    things = [bytes(size) for size in (1, 100, 479, 480, 2000)]
    plain = Plain()
    plain.one, plain.two = str(7) * 700, ctypes.create_string_buffer(3000)
    things += [plain.one, [None] * 2, {"a": 1, plain: 2}]
    for thing in things[:6]:
        assert size_of(thing) == sys.getsizeof(thing), (size_of(thing), sys.getsizeof(thing))
    assert size_of(plain) == sys.getsizeof(plain)
    buffer = block(ctypes.addressof(plain.two))
    assert buffer and buffer.startswith("Mem ") and buffer.endswith(" 3000"), buffer
    held.allocators_stop()


def calls_of_the_allocator_itself_are_in_the_event():
    held.other_allocator(0, True)
    calls, in_events = held.other_calls(0), held.other_calls(1)
    start()
    address = api.PyObject_Malloc(4000)
    held.allocators_stop()
    recorded_calls, recorded_in_events = held.other_calls(0) - calls, held.other_calls(1) - in_events
    address2 = api.PyObject_Malloc(4000)
    after = held.other_calls(1) - in_events
    held.other_allocator(0, False)
    api.PyObject_Free(address)
    api.PyObject_Free(address2)
    assert after == recorded_in_events and (recorded_in_events >= 1 or not USES_ARENAS), (
        recorded_calls,
        recorded_in_events,
        after,
    )
    arenas, in_events = held.other_calls(2), held.other_calls(3)
    start()
    things = many_objects()
    held.allocators_stop()
    arenas, in_events = held.other_calls(2) - arenas, held.other_calls(3) - in_events
    assert arenas == in_events and (arenas > 0 or not USES_ARENAS), (arenas, in_events)
    del things


def no_live_address_is_allocated_again():
    held.allocators_clear()
    generator = random.Random(SEED)
    start()
    keep = []
    for _ in range(12_000):
        choice = generator.random()
        if choice < 0.5 or not keep:
            size = generator.choice((8, 24, 64, 500, 513, 5000))
            keep.append(
                generator.choice((bytes, bytearray, lambda n: [None] * n, lambda n: {i: i for i in range(n % 50)}))(
                    size
                )
            )
        elif choice < 0.6:
            thing = generator.choice(keep)
            if isinstance(thing, (bytearray, list)):
                thing *= 2
                del thing[5000:]
        else:
            keep[generator.randrange(len(keep))] = keep[-1]
            keep.pop()
    assert count(REPLACED) == 0, count(REPLACED)
    for thing in keep:
        if isinstance(thing, bytes) and len(thing) > 8:
            assert size_of(thing) == sys.getsizeof(thing)
    held.allocators_stop()


def allocations_of_threads_are_recorded():
    held.allocators_clear()
    start()
    handed = []
    lock = threading.Lock()

    def work(number):
        generator = random.Random(SEED + number)
        for _ in range(1000):
            thing = bytearray(generator.randrange(3000)), [number] * generator.randrange(100)
            with lock:
                handed.append(thing)
                if len(handed) > 50:
                    handed.pop(generator.randrange(len(handed)))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert count(REPLACED) == 0, count(REPLACED)
    assert held.allocators_stop() == 0, "memory for frames is mapped in each thread, and no code has removed the hooks"


def there_is_one_observer_at_a_time():
    start()
    assert held.allocators_start(False) == b"Python's allocators are recorded already"
    held.allocators_stop()
    assert b"not running Python here" in support.released.allocators_start(False)


def another_observer_is_called():
    start()
    held.other_allocator(1, True)
    held.other_allocator(2, True)
    held.allocators_stop()
    start(counts_only=True)
    allocated, counted = count(ALLOCATED), count(COUNTED)
    things = [bytes(100) for _ in range(100)]
    assert count(COUNTED) >= counted + 100 and count(ALLOCATED) == allocated, (count(COUNTED), count(ALLOCATED))
    held.allocators_stop()
    held.other_allocator(2, False)
    held.other_allocator(1, False)
    counted = count(COUNTED)
    start()
    things = [bytes(100) for _ in range(100)]
    assert count(ALLOCATED) >= allocated + 100 and count(COUNTED) == counted
    held.allocators_stop()
    del things


def tracemalloc_starts_and_stops_in_any_order():
    generator = random.Random(SEED)
    is_on = False
    orders = [["ours", "other", "other", "ours"], ["other", "ours", "other", "ours"]]
    orders += [["ours", "other", "ours", "other"], ["other", "ours", "ours", "other"]]
    orders += [[generator.choice(("ours", "other")) for _ in range(12)] for _ in range(4)]
    reinstalled = 0
    for order in orders:
        for step in order:
            if step == "ours":
                if is_on:
                    reinstalled += held.allocators_stop()
                else:
                    start()
                is_on = not is_on
            elif tracemalloc.is_tracing():
                tracemalloc.stop()
            else:
                tracemalloc.start(1)
            if is_on and USES_ARENAS:
                more = many_objects()  # our hooks are installed again with the next arena
                del more
            held.allocators_clear()
            thing, buffer = bytes(3000), bytearray(300)
            if tracemalloc.is_tracing():
                assert tracemalloc.get_object_traceback(thing), (order, step)
                assert tracemalloc.get_object_traceback(buffer), (order, step)
            if is_on and USES_ARENAS:
                assert size_of(thing) == sys.getsizeof(thing), (order, step)
            if not is_on:
                assert count(ALLOCATED) == count(FREED) == 0, (order, step)
    if is_on:
        reinstalled += held.allocators_stop()
    tracemalloc.stop()
    assert reinstalled or not USES_ARENAS, reinstalled


def another_hook_is_installed_and_removed_in_any_order():
    """Installs another hook before and after ours, for each domain. A removed hook restores what it found."""
    for domain in 1, 2:
        for order in ("ouou", "ouuo", "uouo", "uoou"):
            held.allocators_clear()
            ours = others = False
            for step in order:
                if step == "o":
                    held.allocators_stop() if ours else start()
                    ours = not ours
                else:
                    others = not others
                    held.other_allocator(domain, others)
                calls = held.other_calls(0)
                things = [api.PyMem_Malloc(700), api.PyObject_Malloc(700)]
                if others:
                    assert held.other_calls(0) > calls, (domain, order, step)
                if not others:
                    assert held.other_calls(0) == calls, (domain, order, step)
                if ours and order != "uouo":
                    assert block(things[0]) and block(things[1]), (domain, order, step)
                api.PyMem_Free(things[0])
                api.PyObject_Free(things[1])


def allocations_of_sub_interpreters_are_recorded():
    start()
    support.in_sub_interpreter("things = [bytearray(300) for _ in range(1000)]; import json; json.dumps([1] * 100)")
    held.allocators_stop()


CASES = [
    each_function_is_recorded,
    failed_allocations_are_recorded,
    blocks_from_before_are_unknown,
    objects_are_recorded,
    calls_of_the_allocator_itself_are_in_the_event,
    no_live_address_is_allocated_again,
    allocations_of_threads_are_recorded,
    there_is_one_observer_at_a_time,
    another_observer_is_called,
    tracemalloc_starts_and_stops_in_any_order,
    another_hook_is_installed_and_removed_in_any_order,
    allocations_of_sub_interpreters_are_recorded,
]


def main():
    global SEED, USES_ARENAS
    SEED = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 32)
    print("seed", SEED, flush=True)
    held.other_arenas()
    before = held.other_calls(2)
    things = many_objects()
    USES_ARENAS = held.other_calls(2) > before
    del things
    for case in CASES:
        print(case.__name__, flush=True)
        case()
    print("arenas", USES_ARENAS)
    print("cases", len(CASES))
    start()  # the interpreter shuts down with the hooks installed


SEED, USES_ARENAS = 0, False
main()
