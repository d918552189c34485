"""Checks the structure of a profile for the Firefox Profiler, and prints its contents as JSON."""

import json
import sys
from collections import Counter
from pathlib import Path


def check_table(name, table, indices):
    columns = {key: values for key, values in table.items() if isinstance(values, list)}
    for key, values in columns.items():
        assert len(values) == table["length"], f"{name}.{key} has {len(values)} values, not {table['length']}"
    for key, (limit, may_be_nothing) in indices.items():
        for value in columns[key]:
            is_nothing = value is None or value == -1
            assert (is_nothing and may_be_nothing) or (isinstance(value, int) and 0 <= value < limit), (
                name,
                key,
                value,
            )


def check(profile):
    for thread in profile["threads"]:
        strings, frames = len(thread["stringArray"]), thread["frameTable"]["length"]
        stacks, functions = thread["stackTable"]["length"], thread["funcTable"]["length"]
        resources, libs = thread["resourceTable"]["length"], len(profile["libs"])
        categories = len(profile["meta"]["categories"])
        assert len(set(thread["stringArray"])) == strings
        check_table("stackTable", thread["stackTable"], {"frame": (frames, False), "prefix": (stacks, True)})
        assert all(prefix is None or prefix < index for index, prefix in enumerate(thread["stackTable"]["prefix"]))
        check_table("frameTable", thread["frameTable"], {"func": (functions, False), "category": (categories, False)})
        check_table(
            "funcTable",
            thread["funcTable"],
            {"name": (strings, False), "fileName": (strings, True), "resource": (resources, True)},
        )
        check_table("resourceTable", thread["resourceTable"], {"lib": (libs, False), "name": (strings, False)})
        check_table("samples", thread["samples"], {"stack": (stacks, True)})
        check_table("markers", thread["markers"], {"name": (strings, False), "category": (categories, False)})
        assert all(delta >= 0 for delta in thread["samples"]["timeDeltas"])
        if "nativeAllocations" in thread:
            check_table("nativeAllocations", thread["nativeAllocations"], {"stack": (stacks, True)})
        kinds = {schema["name"] for schema in profile["meta"]["markerSchema"]}
        for data in thread["markers"]["data"]:
            assert data["type"] in kinds and data.get("cause", {"stack": 0})["stack"] < max(stacks, 1), data


def paths(thread):
    found = []
    function, name = thread["frameTable"]["func"], thread["funcTable"]["name"]
    for prefix, frame in zip(thread["stackTable"]["prefix"], thread["stackTable"]["frame"], strict=True):
        above = () if prefix is None else found[prefix]
        found.append((*above, thread["stringArray"][name[function[frame]]]))
    return found


def weigh(costs, thread, table, scale=1):
    known = paths(thread)
    for stack, weight in zip(thread[table]["stack"], thread[table]["weight"], strict=True):
        if stack is not None:
            costs[known[stack]] += round(weight * scale)


def main(path):
    profile = json.loads(Path(path).read_text())
    check(profile)
    self_costs, samples, allocated, freed, calls, markers = Counter(), Counter(), Counter(), 0, Counter(), []
    for thread in profile["threads"]:
        if thread["samples"]["weightType"] == "samples":
            weigh(samples, thread, "samples")
            continue
        weigh(self_costs, thread, "samples", 1_000_000)
        if "nativeAllocations" in thread:
            weigh(allocated, thread, "nativeAllocations")
            freed += sum(weight for weight in thread["nativeAllocations"]["weight"] if weight < 0)
        table = thread["markers"]
        for name, phase, start, end, data in zip(
            table["name"], table["phase"], table["startTime"], table["endTime"], table["data"], strict=True
        ):
            if data["type"] == "span":
                assert phase == 1 and end >= start
                calls[thread["stringArray"][name]] += 1
            else:
                markers.append([thread["name"], round(start * 1e6), thread["stringArray"][name], data])
    total = Counter()
    for stack, weight in self_costs.items():
        for length in range(1, len(stack) + 1):
            total[stack[:length]] += weight
    listed = lambda costs: [[list(stack), cost] for stack, cost in sorted(costs.items())]  # noqa: E731
    json.dump(
        {
            "self": listed(self_costs),
            "total": listed(total),
            "samples": listed(samples),
            "allocated": listed(allocated),
            "freed": freed,
            "calls": calls,
            "markers": markers,
            "meta": profile["meta"],
            "libs": profile["libs"],
            "counters": [
                [counter["name"], counter["pid"], sum(counter["samples"]["count"])] for counter in profile["counters"]
            ],
            "threads": [
                [thread["pid"], thread["tid"], thread["name"], thread["isMainThread"]] for thread in profile["threads"]
            ],
        },
        sys.stdout,
    )


main(sys.argv[1])
