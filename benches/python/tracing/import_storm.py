"""Imports many modules of the standard library, whose code is loaded and run as at the first import.

Their other imports are loaded before, so that the modules that a tracer imports make no difference.
"""

import importlib
import sys

PACKAGES = ("email", "html", "http", "json", "unittest", "urllib", "xml")
MODULES = (
    "argparse calendar configparser csv difflib dis doctest email.generator email.mime.text email.policy fractions "
    "ftplib gettext html.parser http.client http.cookiejar http.server ipaddress json mimetypes optparse pdb plistlib "
    "pprint smtplib statistics tarfile textwrap timeit unittest.mock urllib.request uuid xml.dom.minidom "
    "xml.etree.ElementTree zipfile"
).split()


def is_listed(name):
    return name in MODULES or name.split(".")[0] in PACKAGES


def run(times):
    for _ in range(times):
        for name in MODULES:
            importlib.import_module(name)


class Fresh:
    """Removes the modules, and restores them at the end."""

    def __enter__(self):
        run(1)
        self.before = {name: module for name, module in sys.modules.items() if is_listed(name)}
        for name in self.before:
            del sys.modules[name]

    def __exit__(self, *error):
        for name in [name for name in sys.modules if is_listed(name)]:
            del sys.modules[name]
        sys.modules.update(self.before)
