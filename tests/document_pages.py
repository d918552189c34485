"""Reads pages: the steps to run, and the expected output. README.md in this folder has the rules."""

import os
import re
from dataclasses import dataclass, field

from tests.support import ROOT

PYTHON_BLOCKS = {"python", "py"}
SHELL_BLOCKS = {"sh", "bash", "shell", "console"}
NATIVE_BLOCKS = {"c", "cpp"}
FENCE = re.compile(r"^(?P<indent> *)```(?P<language>[\w+-]*)[^\n]*\n(?P<body>.*?)^ *```$", re.DOTALL | re.MULTILINE)
COMMENT = re.compile(r"^<!--[ \n](?P<text>.*?)-->$", re.DOTALL | re.MULTILINE)
MARK = re.compile(
    r"(?P<name>not run|not checked|needs|status|file|python|sh|cpp|c|any order|exact|slow)"
    r"(?:: *(?P<value>[^\n]*?))? *(?:\n|$)"
)
#: The start of a line of a shell block that the tests run.
RUN = re.compile(r"(?:\w+=\S+ )*(?:stackweave|python|pytest)\b")
HEADING = re.compile(r"^#+ +(.*?) *#*$", re.MULTILINE)
LINK = re.compile(r"(?<!\!)\[[^\]]*\]\(([^)\s]+)\)")
IMAGE = re.compile(r"!\[[^\]]*\]\(([^)\s]+)\)|(?:src|srcset)=\"([^\"]+)\"")


class PageError(AssertionError):
    """The error for a page that breaks the rules, with its location."""


@dataclass
class Step:
    """A step of a page: a block of Python, the commands of a block, or a file to write."""

    kind: str
    line: int
    body: str
    name: str = ""
    expected: "str | None" = None
    needs: "list[str]" = field(default_factory=list)
    status: int = 0
    any_order: bool = False
    exact: bool = False
    is_hidden: bool = False
    is_checked: bool = True

    def commands(self):
        """Returns the commands of a shell block, each with the output that the page shows for it, or none."""
        if not re.search(r"^\$ ", self.body, re.MULTILINE):
            lines = re.sub(r"\\\n", "", self.body).splitlines()
            return [(line, None) for line in lines if line.strip() and (self.is_hidden or RUN.match(line))]
        pieces = re.split(r"^\$ ", self.body, flags=re.MULTILINE)[1:]
        pairs = [piece.replace("\\\n", "").partition("\n")[::2] for piece in pieces]
        return [(command, shown if shown.strip() else None) for command, shown in pairs if RUN.match(command)]


class Page:
    """A Markdown page of the project."""

    def __init__(self, path, text=None):
        self.path = path
        if text is None:
            with open(os.path.join(ROOT, path), encoding="utf-8") as file:
                text = file.read()
        self.text = text
        self.steps = []
        self.not_run = []
        self.needs = []
        self.is_slow = False
        self.native = []
        self.declared = dict.fromkeys(NATIVE_BLOCKS, "")
        self.read()

    def fail(self, place, message):
        raise PageError(f"{self.path}:{self.line_of(place)}: {message}")

    def line_of(self, place):
        return self.text.count("\n", 0, place) + 1

    def read(self):
        """Reads the blocks. A mark applies to the next block; a text block after a step is the output of the step."""
        items = [(found.start(), found) for found in FENCE.finditer(self.text)]
        fences = [found.span() for _, found in items]
        for found in COMMENT.finditer(self.text):
            if not any(start < found.start() < end for start, end in fences):
                items.append((found.start(), found))
        marks, shown_by, ended = {}, None, 0
        for place, found in sorted(items, key=lambda item: item[0]):
            close = not self.text[ended:place].strip()
            ended = found.end()
            if found.re is COMMENT:
                hidden, marks = self.read_comment(found, marks)
                shown_by = hidden or (shown_by if close else None)
                continue
            if found["language"] == "text" and close and shown_by is not None:
                self.expect(shown_by, found, marks)
                shown_by = None
            else:
                shown_by = self.read_block(found, marks)
            marks = {}
        if "needs" in marks:
            self.fail(ended, "a mark that holds for no block")

    def read_comment(self, found, marks):
        """Reads a comment: a step that readers don't see, or marks for the next block."""
        text = found["text"].strip("\n")
        mark = MARK.match(text)
        if mark is None:
            return None, marks
        name, value, hidden = mark["name"], (mark["value"] or "").strip(), text[mark.end() :]
        if name == "slow":
            self.is_slow = True
            return None, marks
        if name in NATIVE_BLOCKS:
            self.declared[name] += hidden + "\n"
            return None, marks
        if name in ("python", "sh"):
            return self.add(name, found, hidden, {**marks, "hidden": ""}), {}
        if name == "file" and hidden.strip():
            self.steps.append(Step("file", self.line_of(found.start()), hidden.rstrip() + "\n", name=value))
            return None, marks
        if name in ("not run", "not checked", "needs", "status", "file") and not value:
            self.fail(found.start(), f"'{name}' says no reason or name")
        if name == "needs" and not self.steps and not FENCE.search(self.text, 0, found.start()):
            heading = HEADING.search(self.text)
            if heading is None or found.start() < heading.start():
                self.needs = [each.strip() for each in value.split(",")]
                return None, marks
        return None, {**marks, name: value}

    def read_block(self, found, marks):
        """Returns the step of a block. The page may show its output after it."""
        language, body = found["language"], found["body"]
        if found["indent"]:
            body = re.sub(rf"^{found['indent']}", "", body, flags=re.MULTILINE)
        if "file" in marks:
            self.steps.append(Step("file", self.line_of(found.start()), body, name=marks["file"]))
            return None
        if language not in PYTHON_BLOCKS | SHELL_BLOCKS | NATIVE_BLOCKS:
            return None
        if "not run" in marks:
            self.not_run.append((self.line_of(found.start()), marks["not run"]))
            return None
        if language in NATIVE_BLOCKS:
            self.native.append((language, self.line_of(found.start()), self.declared[language], body))
            return None
        return self.add("python" if language in PYTHON_BLOCKS else "sh", found, body, marks)

    def add(self, kind, found, body, marks):
        step = Step(kind, self.line_of(found.start()), body)
        step.needs = [each.strip() for each in marks.get("needs", "").split(",") if each.strip()]
        step.status = int(marks.get("status", 0))
        step.any_order = "any order" in marks
        step.exact = "exact" in marks
        step.is_hidden = "hidden" in marks
        if "not checked" in marks:
            self.not_run.append((step.line, marks["not checked"]))
            step.is_checked = False
        if kind == "python" or step.commands():
            self.steps.append(step)
            return step
        return None

    def expect(self, step, found, marks):
        if "not checked" in marks:
            self.not_run.append((self.line_of(found.start()), marks["not checked"]))
            return
        step.expected = found["body"]
        step.any_order = step.any_order or "any order" in marks
        step.exact = step.exact or "exact" in marks

    def anchors(self):
        """Returns the names that GitHub gives to headings."""
        plain = FENCE.sub("", self.text)
        names = []
        for heading in HEADING.findall(plain):
            heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
            name = re.sub(r"[^\w\- ]", "", heading).replace(" ", "-")
            names.append(f"{name}-{names.count(name)}" if name in names else name)
        return set(names)

    def links(self):
        """Returns the target in the project and the anchor of each link, without links to other sites."""
        for target in LINK.findall(FENCE.sub("", self.text)):
            if not re.match(r"[a-z]+:", target):
                path, _, anchor = target.partition("#")
                yield self.beside(path) if path else self.path, anchor

    def images(self):
        for found in IMAGE.findall(FENCE.sub("", self.text)):
            target = found[0] or found[1]
            if not re.match(r"[a-z]+:", target):
                yield self.beside(target)

    def beside(self, path):
        return os.path.normpath(os.path.join(os.path.dirname(self.path), path))


def all_pages():
    """Returns the README and the pages of docs, except the decisions, which have no examples."""
    paths = ["README.md"]
    for folder, _, names in os.walk(os.path.join(ROOT, "docs")):
        paths += [os.path.relpath(os.path.join(folder, name), ROOT) for name in names if name.endswith(".md")]
    return [Page(path) for path in sorted(paths)]
