"""Wrong arguments cause clear messages."""

import unittest

import stackweave
from tests.support import run_on_oldest_and_newest

setUpModule = run_on_oldest_and_newest

FUNCTIONS = (stackweave.capture, stackweave.current_stack_id)


class Arguments(unittest.TestCase):
    def assert_refused(self, error, message, *arguments, **keywords):
        for function in FUNCTIONS:
            with self.assertRaisesRegex(error, message):
                function(*arguments, **keywords)

    def test_arguments_are_keywords(self):
        self.assert_refused(TypeError, "takes keyword arguments only; 1 positional", True)
        self.assert_refused(TypeError, "takes keyword arguments only; 2 positional", 1, 2, skip=1)
        self.assert_refused(TypeError, "unexpected keyword argument 'cpp'", cpp=True)

    def test_parts_are_bools(self):
        for part in ("python", "native", "script"):
            for value in (1, None, "yes", []):
                self.assert_refused(TypeError, f"{part} must be a bool, not {type(value).__name__}", **{part: value})

    def test_counts_are_ints(self):
        for name in ("skip", "limit"):
            for value in (1.0, "1", True, []):
                self.assert_refused(TypeError, f"{name} must be an int, not {type(value).__name__}", **{name: value})
            for value in (-1, -(10**30)):
                self.assert_refused(ValueError, f"{name} must not be negative, but is {value}", **{name: value})
        self.assert_refused(TypeError, "skip must be an int, not NoneType", skip=None)

    def test_objects_with_index_count_as_ints(self):
        class Two:
            def __index__(self):
                return 2

        class Raises:
            def __index__(self):
                raise LookupError

        self.assertEqual(len(stackweave.capture(limit=Two(), native=False)), 2)
        self.assert_refused(LookupError, "", skip=Raises())

    def test_names_need_not_be_interned(self):
        keywords = {"".join(["na", "tive"]): False, "".join(["li", "mit"]): 1}
        self.assertEqual([frame.kind for frame in stackweave.capture(**keywords).frames], ["python"])

    def test_stack_ids_are_known_ints(self):
        for value in ("1", None, 1.0, True):
            with self.assertRaisesRegex(TypeError, "stack_id must be an int"):
                stackweave.traceback_of(value)
        for value in (0, -1, 2**32 - 1, 2**80):
            with self.assertRaisesRegex(ValueError, f"no stack of this process has the number {value}"):
                stackweave.traceback_of(value)

    def test_the_package_has_a_root_of_its_exceptions(self):
        self.assertTrue(issubclass(stackweave.StackweaveError, Exception))
        for name in ("StartError", "StateError", "RecordingError", "ExportError"):
            kind = getattr(stackweave, name)
            self.assertEqual(kind.__bases__, (stackweave.StackweaveError,))
            self.assertEqual((kind.__module__, kind.__qualname__), ("stackweave", name))
