"""Runs every case of calls, with each mechanism of this version: python run_call_cases.py LIBRARY"""

import inspect
import sys

import support


def main(library):
    support.load(library)
    import call_cases
    import call_neighbours

    count = 0
    for module in call_cases, call_neighbours:
        for name, case in list(vars(module).items()):
            if not name.startswith("case_"):
                continue
            parameters = inspect.signature(case).parameters
            for mechanism in call_cases.MECHANISMS if parameters else [None]:
                try:
                    case(mechanism) if parameters else case()
                except BaseException:
                    support.held.calls_stop()
                    print("case", name, call_cases.NAMES.get(mechanism), file=sys.stderr)
                    raise
                count += 1
    print("cases", count, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
