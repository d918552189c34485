"""Aggregates and names the blocks that are live at the end of memray's file: python read_live.py FOLDER EVENTS"""

import sys

from reading import report_read


def main():
    folder, events = sys.argv[1], int(sys.argv[2])

    def reader():
        import memray

        def read():
            file = memray.FileReader(f"{folder}/allocations.bin")
            for record in file.get_leaked_allocation_records(merge_threads=True):
                record.stack_trace()
            return file.metadata.total_allocations

        return read

    report_read("recording/read-allocations", events, "events, live at the end", "memray", reader)


if __name__ == "__main__":
    main()
