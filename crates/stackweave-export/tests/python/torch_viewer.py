"""Shows a snapshot by torch.cuda._memory_viz in all of its views, and prints their text."""

import contextlib
import io
import json
import pickle
import sys

from torch.cuda import _memory_viz as viz


def main():
    with open(sys.argv[1], "rb") as file:
        data = pickle.load(file)
    lines = dict.fromkeys(("memory", "segments", "compare"), "")

    def keep(name):
        def format_flamegraph(text):
            lines[name] = text
            return ""

        return format_flamegraph

    viz.memory(data, keep("memory"))
    viz.segments(data, keep("segments"))
    with contextlib.redirect_stdout(io.StringIO()) as compared:
        viz.compare(data["segments"][1:], data["segments"], keep("compare"))
    pages = [viz.trace_plot(data), viz.trace_plot(data, plot_segments=True), viz.segment_plot(data)]
    result = {"stats": viz.segsum(data), "trace": viz.trace(data), "compared": compared.getvalue(), **lines}
    result["pages"] = [len(page) for page in pages]
    result["pages"].append(len(viz.trace_plot(data, filter_freed=True)))
    print(json.dumps(result))


main()
