"""Decodes a Perfetto trace with the messages of Perfetto's own package, and prints its contents as JSON."""

import json
import sys
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb
from spans import Thread, Tree

INTERNED = {
    "event_names": "name",
    "event_categories": "name",
    "debug_annotation_names": "name",
    "debug_annotation_string_values": "str",
    "function_names": "str",
    "mapping_paths": "str",
    "build_ids": "str",
    "source_paths": "str",
    "source_locations": None,
    "frames": None,
    "callstacks": None,
    "mappings": None,
}


def unknown_fields(message):
    from google.protobuf.unknown_fields import UnknownFieldSet

    found = len(UnknownFieldSet(message))
    for field, value in message.ListFields():
        if field.message_type:
            values = value if hasattr(value, "append") or hasattr(value, "add") else [value]
            found += sum(unknown_fields(inner) for inner in values)
    return found


class Sequence:
    def __init__(self):
        self.tables = {name: {} for name in INTERNED}
        self.is_clear = False

    def take(self, data):
        for name, key in INTERNED.items():
            for item in getattr(data, name):
                assert item.iid not in self.tables[name], f"{name} {item.iid} is there twice"
                self.tables[name][item.iid] = getattr(item, key) if key else item

    def value(self, annotation):
        kind = annotation.WhichOneof("value")
        if kind is None:
            if annotation.dict_entries:
                return {self.name(entry): self.value(entry) for entry in annotation.dict_entries}
            return [self.value(item) for item in annotation.array_values]
        if kind == "string_value_iid":
            return self.tables["debug_annotation_string_values"][annotation.string_value_iid].decode()
        return getattr(annotation, kind)

    def name(self, annotation):
        return self.tables["debug_annotation_names"][annotation.name_iid] if annotation.name_iid else annotation.name

    def stack(self, iid):
        tables = self.tables
        shown = []
        for number in tables["callstacks"][iid].frame_ids:
            frame = tables["frames"][number]
            mapping = tables["mappings"][frame.mapping_id]
            path = "/".join(tables["mapping_paths"][part].decode(errors="replace") for part in mapping.path_string_ids)
            build_id = tables["build_ids"][mapping.build_id].hex() if mapping.build_id else ""
            source = tables["source_paths"][frame.source_path_iid].decode() if frame.source_path_iid else ""
            shown.append(
                [tables["function_names"][frame.function_name_id].decode(), source, frame.line_number, path, build_id]
            )
        return shown


def main(path):
    trace = pb.Trace.FromString(Path(path).read_bytes())
    if len(trace.packet) < 1000:
        assert unknown_fields(trace) == 0
    sequences, tracks, tree = defaultdict(Sequence), {}, Tree()
    threads = defaultdict(lambda: Thread(tree))
    instants, counters, processes, args, clocks, unfinished = [], [], [], {}, {}, 0
    times = defaultdict(int)
    base = None
    for packet in trace.packet:
        sequence = sequences[packet.trusted_packet_sequence_id]
        if packet.sequence_flags & pb.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED:
            sequence.is_clear = True
        sequence.take(packet.interned_data)
        if packet.HasField("clock_snapshot"):
            clocks = {clock.clock_id: clock.timestamp for clock in packet.clock_snapshot.clocks}
            base = clocks[6]
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            assert track.uuid not in tracks and (not track.parent_uuid or track.parent_uuid in tracks)
            tracks[track.uuid] = track
            if track.HasField("process"):
                processes.append([track.process.pid, track.process.process_name, list(track.process.process_labels)])
        if not packet.HasField("track_event"):
            continue
        assert sequence.is_clear and packet.sequence_flags & pb.TracePacket.SEQ_NEEDS_INCREMENTAL_STATE
        event, time = packet.track_event, packet.timestamp - base
        track = tracks[event.track_uuid]
        assert time >= times[track.uuid], "a track goes back in time"
        times[track.uuid] = time
        name = sequence.tables["event_names"].get(event.name_iid)
        annotations = {sequence.name(annotation): sequence.value(annotation) for annotation in event.debug_annotations}
        if event.type == pb.TrackEvent.TYPE_SLICE_BEGIN:
            assert all(iid in sequence.tables["event_categories"] for iid in event.category_iids)
            threads[track.uuid].begin(name, time)
            location = sequence.tables["source_locations"].get(event.source_location_iid)
            args[name] = [annotations, [location.file_name, location.line_number] if location else None]
        elif event.type == pb.TrackEvent.TYPE_SLICE_END:
            threads[track.uuid].end(time)
            unfinished += bool(annotations.get("unfinished"))
        elif event.type == pb.TrackEvent.TYPE_INSTANT:
            stack = sequence.stack(event.callstack_iid) if event.callstack_iid else []
            instants.append([track.thread.thread_name, time, name, stack, annotations])
        else:
            is_double = event.WhichOneof("counter_value_field") == "double_counter_value"
            value = event.double_counter_value if is_double else event.counter_value
            counters.append([track.name, time, value, track.counter.unit])
    assert not any(thread.open for thread in threads.values())
    json.dump(
        {
            "tree": tree.printed(),
            "instants": instants,
            "counters": counters,
            "processes": processes,
            "args": args,
            "clocks": clocks,
            "unfinished": unfinished,
        },
        sys.stdout,
    )


main(sys.argv[1])
