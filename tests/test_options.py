"""The table of options: what it declares is what recorders, commands, notebooks and pages have."""

import contextlib
import inspect
import io
import unittest

import stackweave
from stackweave._commands import arguments
from stackweave._commands.dynamo_arguments import SYNTAX as DYNAMO_COMMAND
from stackweave._commands.memory_arguments import SYNTAX as MEMORY_COMMAND
from stackweave._commands.record_arguments import SYNTAX as RECORD_COMMAND
from stackweave._commands.trace_arguments import SYNTAX as TRACE_COMMAND
from stackweave._integrations.notebook.options import WrongOption, parse_cell
from stackweave._options import table
from stackweave.torch import cuda_memory
from stackweave.torch.dynamo import profile
from tests.support import run_on_oldest_and_newest

setUpModule = run_on_oldest_and_newest

#: The recorders, with their options, and their parameters that are no options.
RECORDERS = [
    (stackweave.Recorder, table.WRITE, ["path"]),
    (stackweave.trace, table.TRACE, ["path"]),
    (stackweave.memory, table.MEMORY_RECORDER, ["path"]),
    (stackweave.record, table.RECORD, ["path"]),
    (stackweave.Timing, table.WRITE_PHASES, ["path", "clock"]),
    (profile, table.DYNAMO, ["path", "clock"]),
    (cuda_memory, table.CUDA_MEMORY, ["path"]),
]
COMMANDS = {
    "trace": (TRACE_COMMAND, table.TRACE),
    "memory": (MEMORY_COMMAND, table.MEMORY_RECORDER),
    "record": (RECORD_COMMAND, (*table.RECORD, *table.OF_CALLS, *table.OF_MEMORY)),
    "dynamo": (DYNAMO_COMMAND, (*table.DYNAMO,)),
}
#: A text of a command for each kind of value, and the keyword that it is.
TEXTS = {
    "SIZE": ("64MB", "64MB"),
    "SECONDS": ("1.5", 1.5),
    "TIME": ("10us", "10us"),
    "NUMBER": ("7", 7),
    "PATTERN": ("file:a.py", ["file:a.py"]),
    "FUNCTION": ("pkg.f", ["pkg.f"]),
    "SIGNAL": ("USR1", "USR1"),
    "MOMENTS": ("exit,exception", ["exit", "exception"]),
    "SIZE|SECONDS": ("64MB,30", ("64MB", 30.0)),
    "CALLS,TIME": ("100,10us", (100, "10us")),
    "LOGGER|LEVEL": ("app,info", ("app", "INFO")),
}


def given(option):
    """Returns the words of a command for an option, and the keyword that they are."""
    metavar = option.kind.argument(option.default).get("metavar")
    if metavar is None:
        return [option.flag], not option.default
    words = getattr(option.kind, "words", ())
    text, value = TEXTS.get(metavar) or (words[-1], words[-1])
    return [f"{option.flag}={text}"], value


class Table(unittest.TestCase):
    def test_signatures_have_the_names_and_defaults_of_the_table(self):
        for recorder, options, others in RECORDERS:
            with self.subTest(recorder):
                parameters = inspect.signature(recorder).parameters
                self.assertLessEqual(set(others), set(parameters))
                self.assertEqual(
                    {name: each.default for name, each in parameters.items() if name not in others},
                    {option.name: option.default for option in options},
                )

    def test_checked_values_are_accepted_again(self):
        for _, options, _ in RECORDERS:
            for option in options:
                for value in (option.default, given(option)[1]):
                    with self.subTest(option.name, value=value):
                        checked = option.checked(value)
                        again = option.checked(False if checked is None and option.default is not None else checked)
                        self.assertEqual(again, checked)

    def test_each_command_has_each_option_of_its_recorder(self):
        for name, (syntax, options) in COMMANDS.items():
            parser = arguments.parser_of(syntax, "stackweave")
            for option in options:
                with self.subTest(name, option=option.name):
                    if not option.in_commands:
                        self.assertNotIn(option.flag, parser.format_help())
                        continue
                    words, value = given(option)
                    parsed = arguments.given_options(syntax.options, parser.parse_args(words))
                    self.assertEqual(parsed, {option.name: value})
                    self.assertIn(option.flag, parser.format_help())

    def test_a_wrong_number_is_a_sentence(self):
        wrong = {"NUMBER": "is not a whole number", "SECONDS": "is not a number of seconds"}
        found = set()
        for name, (syntax, options) in COMMANDS.items():
            parser = arguments.parser_of(syntax, "stackweave")
            for option in options:
                metavar = option.kind.argument(option.default).get("metavar")
                if metavar in wrong and option.in_commands:
                    with self.subTest(name, option=option.name):
                        found.add(metavar)
                        sentence = (
                            f"stackweave {name}: {option.flag}: 'x' {wrong[metavar]}; see stackweave {name} --help\n"
                        )
                        self.assertEqual(self.refused(parser, [option.flag, "x"]), sentence)
        self.assertEqual(found, set(wrong))
        with self.assertRaises(WrongOption) as refused:
            parse_cell("trace", "--max-depth x")
        self.assertEqual(str(refused.exception), "%trace: --max-depth: 'x' is not a whole number; see %trace?")

    def refused(self, parser, words):
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors), self.assertRaises(SystemExit) as ended:
            parser.parse_args(words)
        self.assertEqual(ended.exception.code, 2)
        return errors.getvalue()

    def test_each_magic_has_each_option_of_its_recorder(self):
        for name in ("trace", "memory", "record"):
            for option in COMMANDS[name][1]:
                if option.in_commands and option.name != "overwrite":
                    with self.subTest(name, option=option.name):
                        words, value = given(option)
                        request = parse_cell(name, f"{words[0]} main()")
                        parts = (request.recorder, request.recorder.get("calls"), request.recorder.get("memory"))
                        found = [part[option.name] for part in parts if isinstance(part, dict) and option.name in part]
                        self.assertEqual((found, request.rest), ([value], "main()"))

    def test_values_that_may_be_left_out_follow_an_equals_sign(self):
        parser = arguments.parser_of(TRACE_COMMAND, "stackweave")
        for words, options in [
            (["--demote", "--logs"], {"demote": True, "logs": True}),
            (["--logs=20"], {"logs": 20}),
            (["--logs=app.db"], {"logs": "app.db"}),
            (["--logs=app,30"], {"logs": ("app", 30)}),
        ]:
            self.assertEqual(arguments.given_options(TRACE_COMMAND.options, parser.parse_args(words)), options)
        ours, rest = arguments._split(parser, ["--demote", "work.py", "--logs"])
        self.assertEqual((ours, rest), (["--demote"], ["work.py", "--logs"]))
