"""`pprof_reader.py FILE` reads a pprof profile with the protobuf library, checks it, and prints it as JSON."""

import gzip
import json
import sys
from pathlib import Path

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, unknown_fields

# Message: field number, name, type, as profile.proto has them. A star: repeated.
MESSAGES = {
    "Profile": [
        (1, "sample_type", "*ValueType"),
        (2, "sample", "*Sample"),
        (3, "mapping", "*Mapping"),
        (4, "location", "*Location"),
        (5, "function", "*Function"),
        (6, "string_table", "*string"),
        (7, "drop_frames", "int64"),
        (8, "keep_frames", "int64"),
        (9, "time_nanos", "int64"),
        (10, "duration_nanos", "int64"),
        (11, "period_type", "ValueType"),
        (12, "period", "int64"),
        (13, "comment", "*int64"),
        (14, "default_sample_type", "int64"),
    ],
    "ValueType": [(1, "type", "int64"), (2, "unit", "int64")],
    "Sample": [(1, "location_id", "*uint64"), (2, "value", "*int64"), (3, "label", "*Label")],
    "Label": [(1, "key", "int64"), (2, "str", "int64"), (3, "num", "int64"), (4, "num_unit", "int64")],
    "Mapping": [
        (1, "id", "uint64"),
        (2, "memory_start", "uint64"),
        (3, "memory_limit", "uint64"),
        (4, "file_offset", "uint64"),
        (5, "filename", "int64"),
        (6, "build_id", "int64"),
        (7, "has_functions", "bool"),
        (8, "has_filenames", "bool"),
        (9, "has_line_numbers", "bool"),
        (10, "has_inline_frames", "bool"),
    ],
    "Location": [
        (1, "id", "uint64"),
        (2, "mapping_id", "uint64"),
        (3, "address", "uint64"),
        (4, "line", "*Line"),
        (5, "is_folded", "bool"),
    ],
    "Line": [(1, "function_id", "uint64"), (2, "line", "int64"), (3, "column", "int64")],
    "Function": [
        (1, "id", "uint64"),
        (2, "name", "int64"),
        (3, "system_name", "int64"),
        (4, "filename", "int64"),
        (5, "start_line", "int64"),
    ],
}
PACKAGE = "perftools.profiles"


def profile_class():
    file = descriptor_pb2.FileDescriptorProto(name="profile.proto", package=PACKAGE, syntax="proto3")
    for message, fields in MESSAGES.items():
        described = file.message_type.add(name=message)
        for number, name, of in fields:
            field = described.field.add(name=name, number=number)
            field.label = field.LABEL_REPEATED if of.startswith("*") else field.LABEL_OPTIONAL
            of = of.removeprefix("*")
            if of in MESSAGES:
                field.type, field.type_name = field.TYPE_MESSAGE, f".{PACKAGE}.{of}"
            else:
                field.type = getattr(field, f"TYPE_{of.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.Profile"))


def by_id(things):
    found = {thing.id: thing for thing in things}
    assert len(found) == len(things) and 0 not in found, "ids are not unique, or 0"
    return found


def read(path):
    profile = profile_class().FromString(gzip.decompress(Path(path).read_bytes()))
    assert len(unknown_fields.UnknownFieldSet(profile)) == 0
    text = profile.string_table
    assert text[0] == "" and len(set(text)) == len(text)
    mappings, locations, functions = by_id(profile.mapping), by_id(profile.location), by_id(profile.function)

    def label(label):
        return [text[label.key], text[label.str] if label.str else label.num]

    def line(line):
        function = functions[line.function_id]
        return [
            text[function.name],
            text[function.filename],
            line.line,
            text[function.system_name],
            function.start_line,
        ]

    def location(location):
        if location.mapping_id:
            mapping = mappings[location.mapping_id]
            assert mapping.memory_start <= location.address < mapping.memory_limit
        return {
            "mapping": location.mapping_id,
            "address": location.address,
            "lines": [line(one) for one in location.line],
        }

    def sample(sample):
        assert len(sample.value) == len(profile.sample_type)
        return {
            "stack": [location(locations[number]) for number in sample.location_id],
            "values": list(sample.value),
            "labels": dict(label(one) for one in sample.label),
        }

    return {
        "types": [[text[one.type], text[one.unit]] for one in profile.sample_type],
        "default": text[profile.default_sample_type],
        "period": [text[profile.period_type.type], profile.period],
        "time": profile.time_nanos,
        "duration": profile.duration_nanos,
        "comments": [text[one] for one in profile.comment],
        "samples": [sample(one) for one in profile.sample],
        "mappings": [
            [
                *(one.id, one.memory_start, one.memory_limit, text[one.filename], text[one.build_id]),
                *(one.has_functions, one.has_filenames, one.has_line_numbers, one.has_inline_frames),
            ]
            for one in profile.mapping
        ],
    }


if __name__ == "__main__":
    print(json.dumps(read(sys.argv[1])))
