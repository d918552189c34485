"""Aggregates all allocations of memray's file, as its command `stats` does: python read_allocated.py FOLDER EVENTS"""

import sys

from reading import report_read


def main():
    folder, events = sys.argv[1], int(sys.argv[2])

    def reader():
        from memray._memray import compute_statistics

        def read():
            stats = compute_statistics(f"{folder}/allocations.bin", report_progress=False, num_largest=5)
            # It counts only allocations; the number of frees is the same.
            return 2 * stats.total_num_allocations

        return read

    report_read("recording/read-allocations", events, "events, allocated", "memray", reader)


if __name__ == "__main__":
    main()
