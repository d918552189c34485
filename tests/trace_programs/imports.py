"""Imports of the standard library, which load the modules again each time."""

import importlib
import sys

NAMES = ("colorsys", "difflib", "statistics", "csv", "calendar", "this_module_is_nowhere")


def fresh(name):
    kept = sys.modules.pop(name, None)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        return None
    finally:
        if kept is not None:
            sys.modules[name] = kept


def main():
    modules = [fresh(name) for name in NAMES]
    assert modules[-1] is None
    colors, differences, statistics, csv, calendar = modules[:-1]
    assert colors.rgb_to_hsv(1.0, 0.0, 0.0) == (0.0, 1.0, 1.0)
    assert differences.get_close_matches("appel", ["ape", "apple"])[0] == "apple"
    assert statistics.median([3, 1, 2]) == 2
    assert list(csv.DictReader(["a,b", "1,2"])) == [{"a": "1", "b": "2"}]
    assert calendar.isleap(2000)
