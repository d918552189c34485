"""A trace has log records and the names of asyncio's tasks."""

import asyncio
import io
import logging

import stackweave
from tests.recordings import RecordingCase


class Logs(RecordingCase):
    def setUp(self):
        super().setUp()
        self.factory = logging.getLogRecordFactory()
        self.addCleanup(logging.setLogRecordFactory, self.factory)
        self.handler = logging.StreamHandler(io.StringIO())
        self.logger = logging.getLogger("stackweave.tests.logs")
        self.logger.addHandler(self.handler)
        self.logger.setLevel(logging.DEBUG)
        self.logger.propagate = False
        self.addCleanup(self.logger.removeHandler, self.handler)

    def logged(self, logs, work):
        with stackweave.trace(self.path, overwrite=True, logs=logs) as trace:
            work()
        instants = [
            event for event in trace.recording.events() if event.role == "instant" and event.name.startswith("log ")
        ]
        return [(event.name, event.details["logger"], event.details["message"]) for event in instants]

    def work(self):
        self.logger.warning("careful with %s", "this")
        self.logger.debug("details")
        logging.getLogger("elsewhere").error("broken")

    def test_records_are_instants(self):
        own = self.logger.name
        with self.assertLogs("elsewhere"):
            self.assertEqual(
                self.logged(True, self.work),
                [
                    ("log WARNING", own, "careful with this"),
                    ("log DEBUG", own, "details"),
                    ("log ERROR", "elsewhere", "broken"),
                ],
            )

    def test_loggers_and_levels_can_be_chosen(self):
        own = self.logger.name
        with self.assertLogs("elsewhere"):
            for logs, expected in [
                ("stackweave.tests", ["log WARNING", "log DEBUG"]),
                (own, ["log WARNING", "log DEBUG"]),
                ("stackweave.test", []),
                ((own, "INFO"), ["log WARNING"]),
                ("ERROR", ["log ERROR"]),
                (logging.WARNING, ["log WARNING", "log ERROR"]),
            ]:
                self.assertEqual([name for name, _, _ in self.logged(logs, self.work)], expected, logs)

    def test_handlers_see_what_they_saw_before(self):
        handlers = list(self.logger.handlers), list(logging.root.handlers), logging.lastResort
        seen = []
        with self.assertLogs("elsewhere"):
            self.logged(True, lambda: (self.work(), seen.append(self.handler.stream.getvalue())))
        self.assertEqual(seen, ["careful with this\ndetails\n"])
        self.assertEqual((self.logger.handlers, logging.root.handlers, logging.lastResort), handlers)
        self.assertIs(logging.getLogRecordFactory(), self.factory)

    def test_records_that_can_not_be_formatted_are_the_programs_affair(self):
        class Broken:
            def __str__(self):
                raise KeyError("x")

        def work():
            logging.makeLogRecord({"msg": "made by hand"})
            self.logger.warning(Broken())
            self.logger.warning("and %s")

        self.handler.handleError = lambda record: None
        self.assertEqual([message for _, _, message in self.logged(True, work)], ["and %s"])

    def test_a_factory_that_was_set_meanwhile_stays(self):
        def work():
            ours = logging.getLogRecordFactory()
            logging.setLogRecordFactory(lambda *args, **keywords: ours(*args, **keywords))
            self.logger.info("one")

        self.assertEqual(len(self.logged(True, work)), 1)
        self.assertIsNot(logging.getLogRecordFactory(), self.factory)
        self.logger.info("after the end")


class Tasks(RecordingCase):
    def test_spans_of_a_task_have_its_name(self):
        async def step():
            await asyncio.sleep(0)

        async def both():
            await asyncio.gather(
                asyncio.get_running_loop().create_task(step(), name="first"),
                asyncio.get_running_loop().create_task(step(), name="second"),
            )

        with stackweave.trace(self.path) as trace:
            asyncio.run(both())
        names = {event.name for event in trace.recording.events() if event.role == "name"}
        self.assertLessEqual({"first", "second"}, names)
        with stackweave.trace(self.path, overwrite=True, tasks=False) as trace:
            asyncio.run(both())
        self.assertEqual([event for event in trace.recording.events() if event.role == "name"], [])
