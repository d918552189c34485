"""Log records as instants of a recording. Imported when logs are recorded."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .recorder import Recorder

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
LONGEST = 2000


def chosen(value: object) -> tuple[str | None, int] | None:
    """Returns the logger (None: all loggers) and the lowest level of the option."""
    if value is None or value is False:
        return None
    if value is True:
        return None, 0
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str):
        return value[0] or None, _level(value[1])
    if isinstance(value, int) or (isinstance(value, str) and value in LEVELS):
        return None, _level(value)
    if isinstance(value, str):
        return value or None, 0
    raise TypeError(
        f'logs must be True, the name of a logger, a level such as "INFO", or a name and a level, but is {value!r}'
    )


def _level(value: object) -> int:
    level = logging.getLevelName(value) if isinstance(value, str) else value
    if isinstance(level, bool) or not isinstance(level, int):
        raise ValueError(f'logs must have a level such as "INFO" or 20, but has {value!r}')
    return level


class LogRecords:
    """Records each log record when it is made. No handler is added that the program could notice."""

    def __init__(self, logger: str | None, level: int) -> None:
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
        return self._logger is None or name == self._logger or name.startswith(self._logger + ".")

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
