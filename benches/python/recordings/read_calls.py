"""Reads viztracer's file of calls, as the tools of its viewer do: python read_calls.py FOLDER CALLS TIMES

The file is loaded and sorted, but not aggregated, because viztracer aggregates in the browser.
"""

import sys

from reading import report_read


def main():
    folder, calls, times = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])

    def reader():
        from viztracer.report_builder import ReportBuilder

        def read():
            builder = ReportBuilder([f"{folder}/calls.json"], verbose=0)
            builder.load_jsons()
            builder.combine_json()
            return len(builder.combined_json["traceEvents"])

        return read

    report_read("recording/read-calls", calls, "calls", "viztracer", reader, times=times)


if __name__ == "__main__":
    main()
