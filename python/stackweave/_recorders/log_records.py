"""Log records as instants of a recording. Imported when logs are recorded."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .recorder import Recorder

LONGEST = 2000


class LogRecords:
    """Records each log record when it is made. No handler is added that the program could notice."""

    def __init__(self, logger: str, level: int) -> None:
        self._logger = logger
        self._level = level

    def start(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._previous = logging.getLogRecordFactory()
        self._factory = self._make
        logging.setLogRecordFactory(self._factory)

    def stop(self) -> None:
        """Removes the factory. If another one was set since, ours stays in its chain and records nothing."""
        self._level = 1 << 62
        if logging.getLogRecordFactory() is self._factory:
            logging.setLogRecordFactory(self._previous)

    def _make(self, *args: Any, **kwargs: Any) -> Any:
        record = self._previous(*args, **kwargs)
        try:
            if record.levelno is not None and record.levelno >= self._level and self._is_wanted(record.name):
                self._record(record)
        except Exception:
            pass
        return record

    def _is_wanted(self, name: object) -> bool:
        if not isinstance(name, str):
            return False
        return not self._logger or name == self._logger or name.startswith(self._logger + ".")

    def _record(self, record: logging.LogRecord) -> None:
        # Like LogRecord.getMessage(), without a call that a trace would show.
        message = str(record.msg)
        if record.args:
            message %= record.args
        if len(message) > LONGEST:
            message = message[:LONGEST] + "..."
        self._recorder.instant(
            f"log {record.levelname}", stack=False, level=record.levelname, logger=record.name, message=message
        )
