"""The C and C++ examples of the pages compile with our headers. The tests of the crates compile the Rust examples."""

import os
import shutil
import subprocess
import sys
import unittest

from tests.document_pages import all_pages
from tests.support import ROOT, run_on_oldest_and_newest

setUpModule = run_on_oldest_and_newest

INCLUDE = os.path.join(ROOT, "crates", "stackweave-capi", "include")
COMPILERS = {"c": ("gcc", "-std=c11"), "cpp": ("g++", "-std=c++17")}
HEADERS = {
    "c": "#include <stackweave.h>\n#include <stdio.h>\n#include <stdlib.h>\n",
    "cpp": "#include <stackweave.hpp>\n#include <cstdio>\n#include <string>\n#include <vector>\n",
}
HAS_COMPILERS = all(shutil.which(compiler) for compiler, _ in COMPILERS.values())


@unittest.skipUnless(HAS_COMPILERS, "gcc or g++ is not installed")
@unittest.skipUnless(sys.version_info[:2] == (3, 12), "it is the same for each Python, and done for one")
class NativeBlocks(unittest.TestCase):
    def test_blocks_compile_as_a_file_or_inside_a_function(self):
        blocks = [(page.path, *block) for page in all_pages() for block in page.native]
        self.assertGreater(len(blocks), 1)
        for path, language, line, declared, body in blocks:
            with self.subTest(page=f"{path}:{line}"):
                before = HEADERS[language] + declared
                errors = [
                    compiled(language, text)
                    for text in (before + body, f"{before}void page(void);\nvoid page(void) {{\n{body}}}\n")
                ]
                self.assertIn("", errors, "\n".join(errors))

    def test_a_call_that_is_not_there_does_not_compile(self):
        for language, header in HEADERS.items():
            self.assertIn("stackweave_gone", compiled(language, header + "void page(void) { stackweave_gone(); }\n"))


def compiled(language, text):
    """Returns the messages of the compiler."""
    compiler, standard = COMPILERS[language]
    options = [
        "-fsyntax-only",
        "-Wall",
        "-Werror",
        "-Wno-unused",
        "-I",
        INCLUDE,
        "-x",
        "c++" if language == "cpp" else "c",
    ]
    done = subprocess.run([compiler, standard, *options, "-"], input=text, capture_output=True, text=True, timeout=60)
    return done.stderr or ("" if done.returncode == 0 else f"exit status {done.returncode}")
