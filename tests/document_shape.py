"""Compares the output on a page with the real one: the same words in the same order, with any figures."""

import re

#: A line of a page that matches any number of lines.
GAP = re.compile(r"\s*(\.\.\.|…)\s*")
UNITS = r"(?:[KMGT]i?B|bytes|B|ns|us|µs|ms|s|min|h)"
STEPS = [
    (re.compile(r"\x1b\[[0-9;]*m"), ""),
    # Reduces paths to their last part.
    (re.compile(r"(?:file://)?(?:~|…|\.\.?)?/?(?:[\w.+@-]+/)+(?=[\w.+@<-])"), ""),
    (re.compile(r"0x[0-9a-f]+"), "#"),
    (re.compile(rf"(?<![\w.])[-+]?\d+(?:,\d{{3}})*(?:\.\d+)? ?{UNITS}(?![\w])"), "#"),
    (re.compile(r"[-+]?\d+(?:,\d{3})*(?:\.\d+)*(?:e[-+]?\d+)?%?"), "#"),
    (re.compile(r"[█▉▊▋▌▍▎▏▇▆▅▄▃▂▁▐░▒▓]+"), "▇"),
    (re.compile(r"[-=─━]{3,}"), "---"),
    (re.compile(r"\s+"), " "),
]


def shape(line):
    """Returns the line without figures, folders and the width of columns."""
    for pattern, replacement in STEPS:
        line = pattern.sub(replacement, line)
    return line.strip()


def difference(expected, printed, any_order=False, exact=False):
    """Returns a sentence about output that a page shows and that was not printed; None if there is none."""
    shape_of = str.strip if exact else shape
    expected_lines = [line for line in expected.splitlines() if line.strip()]
    printed_shapes = [shape_of(line) for line in printed.splitlines() if line.strip()]
    if any_order:
        return in_any_order(expected_lines, printed_shapes, shape_of)
    place, gap = 0, False
    for line in expected_lines:
        if GAP.fullmatch(line):
            gap = True
            continue
        found = next((at for at in range(place, len(printed_shapes)) if fits(line, printed_shapes[at], shape_of)), None)
        if found is None or (found != place and not gap):
            there = printed_shapes[place] if place < len(printed_shapes) else "the end"
            return f"the page shows  {shape_of(line)!r}\nwhere there was  {there!r}"
        place, gap = found + 1, False
    if place < len(printed_shapes) and not gap:
        return f"the page ends where there was  {printed_shapes[place]!r}"
    return None


def in_any_order(expected_lines, printed_shapes, shape_of):
    """Returns the lines sorted, with the parts between commas sorted too: their order depends on measurements."""
    rest = [sorted_parts(each) for each in printed_shapes]
    gap = False
    for line in expected_lines:
        if GAP.fullmatch(line):
            gap = True
            continue
        found = next((each for each in rest if each == sorted_parts(shape_of(line))), None)
        if found is None:
            return f"the page shows  {shape_of(line)!r}\nwhich was not printed"
        rest.remove(found)
    return None if gap or not rest else f"the page lacks  {rest[0]!r}"


def sorted_parts(line):
    return sorted(re.split(r"[,:] ", line))


def fits(line, printed, shape_of):
    """Returns whether a line matches. A line that ends with `…` or ` ...` matches the start of a printed line."""
    begin = re.fullmatch(r"(.*?)(?:…| \.\.\.)\s*", line)
    if begin:
        return printed.startswith(shape_of(begin.group(1)))
    return shape_of(line) == printed
