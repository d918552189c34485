"""viztracer's file of calls, read as its viewer's tools do: python read_calls.py FOLDER CALLS TIMES

It is loaded and brought into order, and not aggregated: viztracer leaves that to the browser.
"""

import sys

from reading import tell_read


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

    tell_read("recording/read-calls", calls, "calls", "viztracer", reader, times=times)


if __name__ == "__main__":
    main()
