#!/usr/bin/env python3
"""Reads a recording and prints it as lines of JSON. Written from docs/reference/format-recording.md alone; standard library only.

    reader.py RECORDING             prints the content of the blocks
    reader.py --meaning RECORDING   prints the meaning of each event by its role

Strict: damage ends it with a message. The lines of each section are its small blocks in their order, then its threads, then its
events with their stacks and frames.
"""

import json
import struct
import sys
import zlib

SYNC = b"\xf5SWV\r\n\x1a\n"
HEADER = struct.Struct("<8sBBBBIIIII")
EVENTS_HEAD = struct.Struct("<IIQQ")
START, DEFINITIONS, EVENTS, CLOCK, LOST, END = 1, 2, 3, 4, 5, 6
MASK = (1 << 64) - 1
STACK, FRAME, UNSIGNED, SIGNED, FLOAT, ADDRESS, TICKS = range(1, 8)
BEGIN, END_OF_SPAN, INSTANT, COUNTER, SAMPLE, ALLOCATE, FREE, RESUME, OPEN, NAME = range(1, 11)
MAP, UNMAP, KEEP, TAG, USAGE, COMPLETE, STATE = range(11, 18)
MEMORY = {ALLOCATE: "allocate", MAP: "allocate", FREE: "free", UNMAP: "free", COMPLETE: "complete"}
#: The kinds by which the allocator of a host says what it does, with their roles.
HOST_ACTIONS = {
    "host-allocate": ALLOCATE,
    "host-present": ALLOCATE,
    "host-free": FREE,
    "host-free-requested": FREE,
    "host-free-completed": COMPLETE,
    "segment": MAP,
    "segment-present": MAP,
    "segment-map": MAP,
    "segment-free": UNMAP,
    "segment-unmap": UNMAP,
}
#: The instants with a subject, and the fields that describe it.
SUBJECTS = {
    "unmatched-pop": (),
    "demoted": (),
    "trace-note": ("count",),
    "host-snapshot": ("device", "size"),
    "host-out-of-memory": ("device", "size", "stream", "pool", "free"),
    "host-annotate": ("device", "address"),
}
STATE_ROW = ("device", "address", "size", "requested", "stack", "stream", "pool", "flags")
FIGURES = (
    "allocations",
    "bytes",
    "live_blocks",
    "live_bytes",
    "peak_blocks",
    "peak_bytes",
    "temporary",
    "temporary_bytes",
)
TOTALS = ("peak_ago", "frees", "unknown_frees", "replaced")


class Cursor:
    def __init__(self, data):
        self.data, self.at = data, 0

    def left(self):
        return len(self.data) - self.at

    def byte(self):
        self.at += 1
        return self.data[self.at - 1]

    def take(self, length):
        if length > self.left():
            raise ValueError("a block ends early")
        self.at += length
        return self.data[self.at - length : self.at]

    def varint(self):
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def signed(self):
        return unzigzag(self.varint())

    def bytes(self):
        return self.take(self.varint())

    def text(self):
        return self.bytes().decode("utf-8", "replace")


def unzigzag(value):
    return (value >> 1) ^ -(value & 1)


def decompress_lz4(data, length):
    out = bytearray()
    at = 0
    while True:
        token = data[at]
        at += 1
        literals = token >> 4
        while literals >= 15 and data[at] == 255:
            literals, at = literals + 255, at + 1
        if token >> 4 == 15:
            literals, at = literals + data[at], at + 1
        out += data[at : at + literals]
        at += literals
        if at >= len(data):
            break
        back = data[at] | data[at + 1] << 8
        at += 2
        copied = (token & 15) + 4
        while copied >= 19 and data[at] == 255:
            copied, at = copied + 255, at + 1
        if token & 15 == 15:
            copied, at = copied + data[at], at + 1
        for _ in range(copied):
            out.append(out[-back])
    if len(out) != length:
        raise ValueError("a block does not decompress")
    return bytes(out)


def blocks(data):
    at = 0
    while at < len(data):
        header = data[at : at + HEADER.size]
        sync, kind, version, codec, head, stored_len, full_len, section, checksum, own = HEADER.unpack(header)
        if sync != SYNC or zlib.crc32(header[:28]) != own:
            raise ValueError(f"no block at {at}")
        if version != 1:
            raise ValueError("written by a newer version")
        at += HEADER.size
        stored = data[at : at + stored_len]
        at += stored_len
        if len(stored) != stored_len or zlib.crc32(stored) != checksum:
            raise ValueError("a block is damaged")
        if codec == 1:
            stored = stored[:head] + decompress_lz4(stored[head:], full_len - head)
        elif codec != 0:
            raise ValueError("a block has an unknown compression")
        yield kind, section, stored


class Section:
    def __init__(self):
        self.kinds, self.strings, self.modules, self.frames = {}, {}, {}, {}
        self.names, self.stacks, self.threads, self.events = {}, {}, {}, []

    def define(self, payload):
        rest = Cursor(payload)
        while rest.left():
            tag = rest.byte()
            run = Cursor(rest.bytes())
            if tag in (5, 7):
                for _ in range(run.varint()):
                    self.name(run) if tag == 5 else self.thread(run)
            elif tag in (1, 2, 3, 4, 6):
                first, count = run.varint(), run.varint()
                self.address = 0
                read = {1: self.kind, 2: self.string, 3: self.module, 4: self.frame, 6: self.stack}[tag]
                for number in range(first, first + count):
                    read(number, run)

    def kind(self, number, run):
        name, role, count = run.text(), run.byte(), run.varint()
        self.kinds[number] = (name, role, [(run.byte(), run.text()) for _ in range(count)])

    def string(self, number, run):
        self.strings[number] = run.text()

    def module(self, number, run):
        path, build_id = run.text(), run.bytes().hex()
        self.modules[number] = [path, build_id, run.varint(), run.varint(), run.varint()]

    def frame(self, number, run):
        kind = run.byte()
        if kind in (1, 2):
            self.address = (self.address + run.signed()) & MASK
            self.frames[number] = [self.address, int(kind == 2), self.modules.get(run.varint())]
        elif kind in (3, 4):
            self.frames[number] = ["python", run.varint(), run.varint(), int(kind == 4)]
        elif kind == 5:
            self.frames[number] = ["script", run.byte(), run.varint()]
        elif kind == 6:
            self.frames[number] = ["label", run.varint()]
        else:
            raise ValueError("an unknown kind of frame")

    def stack(self, number, run):
        back, frame = run.varint(), run.varint()
        self.stacks[number] = (number - back if back else 0, frame)

    def name(self, run):
        frame = run.varint()
        self.names[frame] = [self.location(run) for _ in range(run.varint())]

    def location(self, run):
        kind = ["", "native", "python", "script", "extra", "span"][run.byte()]
        mask, name, filename = run.byte(), run.varint(), run.varint()
        qualname, *numbers = [run.varint() if mask & 1 << bit else None for bit in range(7)]
        texts = [self.strings.get(number) for number in (name, qualname, filename)]
        return [kind, *texts, *numbers, mask >> 7]

    def thread(self, run):
        number = run.varint()
        self.threads[number] = [run.varint(), run.text()]

    def add_events(self, payload):
        thread, count, first_ticks, _last = EVENTS_HEAD.unpack_from(payload)
        rest = Cursor(payload[EVENTS_HEAD.size :])
        kinds = [(rest.byte(), rest.byte()) for _ in range(rest.byte())]
        width = next(width for width, limit in ((0, 1), (1, 2), (2, 4), (4, 16), (8, 255)) if len(kinds) <= limit)
        packed = rest.take((count * width + 7) // 8)
        bits = int.from_bytes(packed, "little")
        indices = [bits >> width * event & (1 << width) - 1 for event in range(count)]
        steps = column(rest, count)
        columns = []
        for index, (_number, shape) in enumerate(kinds):
            events = indices.count(index)
            fields = [column(rest, events) for _ in range(shape & 0x7F)]
            if shape & 0x80:
                lengths = column(rest, events)
                fields.append([rest.take(length) for length in lengths])
            columns.append(iter(list(zip(*fields)) if fields else [()] * events))
        ticks = first_ticks
        for index, step in zip(indices, steps):
            ticks = (ticks + step) & MASK
            self.events.append((thread, ticks, kinds[index][0], next(columns[index])))

    def lines(self):
        for number, thread in sorted(self.threads.items()):
            yield ["thread", number, *thread]
        for thread, ticks, number, values in self.events:
            name, _role, fields = self.kinds[number]
            resolved = [self.resolved(of, value) for (of, _name), value in zip(fields, values)]
            yield ["event", thread, ticks, name, resolved]

    def meanings(self):
        for _thread, ticks, number, values in self.events:
            yield [ticks, *meaning(*self.kinds[number], values)]

    def resolved(self, of, value):
        if isinstance(value, bytes):
            return value.hex()
        if of == FRAME:
            return self.resolved_frame(value)
        if of == STACK:
            frames = []
            while value in self.stacks:
                value, frame = self.stacks[value]
                frames.append(self.resolved_frame(frame))
            return frames
        if of == SIGNED and value >> 63:
            return value - (1 << 64)
        return value

    def resolved_frame(self, number):
        frame = self.frames.get(number)
        if frame is None or not isinstance(frame[0], str):
            return frame
        return [*frame, self.names.get(number, [])]


def meaning(name, role, fields, values):
    """Returns the meaning of an event. Values are found by their types, and by their names where the page says so."""
    pairs = list(zip(fields, values))

    def first(*types, named=None):
        found = ([value for (of, field), value in pairs if of == wanted and named in (None, field)] for wanted in types)
        return next((values[0] for values in found if values), 0)

    def number(of, **named):
        value = first(of, **named)
        return value if value <= 0x7FFFFFFF else 0

    def named(field):
        if field == "device":
            return signed(first(SIGNED, named=field)) if (SIGNED, field) in fields else -1
        if field == "stack":
            return number(STACK)
        return first({"address": ADDRESS, "peak_ago": TICKS}.get(field, UNSIGNED), named=field)

    frame, stack, address = number(FRAME), number(STACK), first(ADDRESS)
    caller = number(FRAME, named="caller") if [of for of, _ in fields].count(FRAME) > 1 else 0
    if role in (BEGIN, RESUME):
        return ["begin", frame, caller, stack, address, int(role == RESUME)]
    if role == OPEN:
        return ["open", frame, caller, stack, address, first(UNSIGNED)]
    if role == END_OF_SPAN:
        return ["end", {"end-failed": "failed", "end-left-open": "left open"}.get(name, "done")]
    if role == COUNTER:
        types = [of for wanted in (FLOAT, SIGNED, UNSIGNED) for of, _ in fields if of == wanted]
        value = first(*types[:1])
        if types[:1] != [FLOAT]:
            value = value - (1 << 64) if types[:1] == [SIGNED] and value >> 63 else value
            value = struct.unpack("<Q", struct.pack("<d", value))[0]
        return ["counter", frame, value]
    if role == SAMPLE:
        is_weighed = any(of in (SIGNED, UNSIGNED) for of, _ in fields)
        return ["sample", stack, signed(first(SIGNED, UNSIGNED)) if is_weighed else 1]
    if role in MEMORY:
        has_device = (SIGNED, "device") in fields
        device = signed(first(SIGNED, named="device")) if has_device else -1
        region = "block"
        if role in (MAP, UNMAP):
            region = "segment" if has_device else "mapping"
        is_named = role in (FREE, COMPLETE)
        size = first(UNSIGNED, named="size" if is_named else None)
        action = name if HOST_ACTIONS.get(name) == role else None
        return [MEMORY[role], region, device, address, size, stack, named("stream"), named("pool"), action]
    if role == NAME:
        return ["name", frame, address]
    if role == KEEP:
        return ["keep", address]
    if role == TAG:
        return ["tag", frame]
    if role == USAGE:
        figures = [named(field) for field in FIGURES]
        row = {
            "memory-usage": lambda: ["site", number(UNSIGNED, named="thread"), number(FRAME, named="tag")],
            "memory-sizes": lambda: ["sizes", named("most")],
            "memory-total": lambda: ["total", *map(named, TOTALS)],
        }.get(name, lambda: ["other"])()
        return ["usage", frame, stack, named("snapshot"), named("device"), *figures, *row]
    if role == STATE:
        if name in ("segment-state", "block-state"):
            # Of an address, the first of any name.
            return ["state", name, *(address if field == "address" else named(field) for field in STATE_ROW)]
        boundary = {1: ["begins", named("reason")], 2: ["ends"]}.get(named("state"))
        return ["state", *(boundary if boundary and name == "host-state" else ["other"])]
    subject = [name, *map(named, SUBJECTS[name])] if name in SUBJECTS else []
    return ["instant", frame, stack, *subject]


def signed(value):
    return value - (1 << 64) if value >> 63 else value


def column(rest, count):
    coding, body = rest.byte(), Cursor(rest.bytes())
    if coding == 0:
        return [body.varint()] * count
    if coding == 5:
        return list(struct.unpack(f"<{count}Q", body.take(8 * count)))
    shift = body.byte() if coding == 3 else 0
    before, values = 0, []
    for _ in range(count):
        value = body.varint()
        if coding == 2:
            value = unzigzag(value) & MASK
        elif coding == 3:
            before = (before + unzigzag(value)) & MASK
            value = before << shift & MASK
        elif coding == 4:
            before ^= int.from_bytes(value.to_bytes(8, "little"), "big")
            value = before
        elif coding != 1:
            raise ValueError("an unknown coding")
        values.append(value)
    return values


def start_line(payload):
    found = {}
    rest = Cursor(payload)
    while rest.left():
        tag, value = rest.varint(), rest.bytes()
        found.setdefault(tag, []).append(value)

    def number(tag, otherwise=0):
        return Cursor(found[tag][0]).varint() if tag in found else otherwise

    def text(tag, otherwise=""):
        return found[tag][0].decode("utf-8", "replace") if tag in found else otherwise

    arguments = [argument.decode("utf-8", "replace") for argument in found.get(6, [])]
    options = []
    for option in map(Cursor, found.get(16, [])):
        options.append([option.text(), option.text()])
    numbers = [unzigzag(number(9)), number(10), number(11), number(12), number(13), number(14, None), number(15)]
    texts = [text(3), text(4), text(5), arguments, text(7, None), text(8)]
    return ["start", number(1), number(2), *texts, *numbers, options]


def small_line(kind, payload):
    rest = Cursor(payload)
    if kind == CLOCK:
        return ["clock", rest.varint(), rest.varint(), rest.signed(), rest.varint()]
    if kind == LOST:
        return ["lost", *(rest.varint() for _ in range(5))]
    if kind == END:
        return ["end", *(rest.varint() for _ in range(4))]
    return ["unknown", kind]


def meanings(data):
    section = Section()
    for kind, _tag, payload in blocks(data):
        if kind == START:
            yield from section.meanings()
            section = Section()
        elif kind == DEFINITIONS:
            section.define(payload)
        elif kind == EVENTS:
            section.add_events(payload)
    yield from section.meanings()


def lines(data):
    section = Section()
    for kind, _tag, payload in blocks(data):
        if kind == START:
            yield from section.lines()
            section = Section()
            yield start_line(payload)
        elif kind == DEFINITIONS:
            section.define(payload)
        elif kind == EVENTS:
            section.add_events(payload)
        else:
            yield small_line(kind, payload)
    yield from section.lines()


def main():
    with open(sys.argv[-1], "rb") as file:
        data = file.read()
    for line in meanings(data) if "--meaning" in sys.argv else lines(data):
        print(json.dumps(line, separators=(",", ":"), ensure_ascii=False))


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8")
    main()
