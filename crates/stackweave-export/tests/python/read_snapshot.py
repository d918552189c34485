"""Reads a memory snapshot as PyTorch's viewer does, and prints it as JSON. Fails where the viewer would.

The viewer begins with the segments, which are what is there at the end, and undoes the events one after another: at
each moment every block must lie in a segment.
"""

import itertools
import json
import pickle
import sys


ACTIVE = ("active_allocated", "active_pending_free")


def check_segments(segments):
    for segment in segments:
        at = segment["address"]
        for block in segment["blocks"]:
            assert block["address"] == at, (segment, block)
            assert block["requested_size"] <= block["size"]
            at += block["size"]
        assert at == segment["address"] + segment["total_size"], segment
        active = [block for block in segment["blocks"] if block["state"] in ACTIVE]
        allocated = [block for block in active if block["state"] == "active_allocated"]
        assert sum(block["size"] for block in allocated) == segment["allocated_size"]
        assert sum(block["size"] for block in active) == segment["active_size"]
        assert sum(block["requested_size"] for block in active) == segment["requested_size"]


def cut(rooms, address, size):
    """Removes a part of an expandable segment."""
    start = max(room for room in rooms if room <= address)
    end = start + rooms.pop(start)
    assert address + size <= end
    if address > start:
        rooms[start] = address - start
    if address + size < end:
        rooms[address + size] = end - address - size


def grow(rooms, address, size):
    """Adds a part, and merges it with adjacent segments."""
    size += rooms.pop(address + size, 0)
    before = next((room for room in rooms if room + rooms[room] == address), None)
    if before is None:
        rooms[address] = size
    else:
        rooms[before] += size


def check_undone(segments, events):
    rooms = {segment["address"]: segment["total_size"] for segment in segments}
    active = (block for segment in segments for block in segment["blocks"] if block["state"] in ACTIVE)
    blocks = {block["address"]: block["requested_size"] for block in active}

    def check_places():
        ordered = sorted(rooms.items())
        assert all(a + size <= b for (a, size), (b, _) in itertools.pairwise(ordered)), ordered
        for address in blocks:
            assert any(a <= address < a + size for a, size in ordered), hex(address)

    check_places()
    for number, event in enumerate(reversed(events)):
        action, size = event["action"], event["size"]
        if action == "alloc":
            assert blocks.pop(event["addr"]) <= size
        elif action == "free_completed":
            assert event["addr"] not in blocks
            blocks[event["addr"]] = size
        elif action == "free_requested":
            assert blocks[event["addr"]] == size, event
        elif action == "segment_alloc":
            assert rooms.pop(event["addr"]) == size
        elif action == "segment_free":
            assert event["addr"] not in rooms
            rooms[event["addr"]] = size
        elif action == "segment_map":
            cut(rooms, event["addr"], size)
        elif action == "segment_unmap":
            grow(rooms, event["addr"], size)
        else:
            assert action in ("oom", "snapshot", "annotate"), action
        if len(events) < 5000 or number % 1000 == 0:
            check_places()


def sharing(snapshot):
    """Returns the numbers of lists of frames and of frames, as objects and as values."""
    lists = [event["frames"] for events in snapshot["device_traces"] for event in events if "frames" in event]
    frames = [frame for stack in lists for frame in stack]
    values = {json.dumps(frame) for frame in frames}
    stacks = {json.dumps(stack) for stack in lists}
    return [len({id(stack) for stack in lists}), len(stacks), len({id(frame) for frame in frames}), len(values)]


def main():
    with open(sys.argv[1], "rb") as file:
        snapshot = pickle.load(file)
    check_segments(snapshot["segments"])
    for device, events in enumerate(snapshot["device_traces"]):
        check_undone([segment for segment in snapshot["segments"] if segment["device"] == device], events)
    if len(sys.argv) > 2:
        counts = [len(events) for events in snapshot["device_traces"]]
        print(json.dumps({"events": counts, "sharing": sharing(snapshot)}))
    else:
        print(json.dumps({"snapshot": snapshot, "sharing": sharing(snapshot)}))


main()
