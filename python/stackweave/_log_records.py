"""Log records as instants of a recording. Imported when they are asked for."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._recording import Recording

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
LONGEST = 2000


def chosen(value: object) -> tuple[str | None, int] | None:
    """Whose records are wanted (None: everybody's), and from which level on."""
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
    """Sees each record when it is made, and changes nothing: no handler is added that others could notice."""

    def __init__(self, logger: str | None, level: int) -> None:
        self._logger = logger
        self._level = level

    def start(self, recording: Recording) -> None:
        self._recording = recording
        self._previous = logging.getLogRecordFactory()
        self._factory = self._make
        logging.setLogRecordFactory(self._factory)

    def stop(self) -> None:
        """If somebody else makes records by now, ours stay in their chain, and are silent: the recording is over."""
        self._level = 1 << 62
        if logging.getLogRecordFactory() is self._factory:
            logging.setLogRecordFactory(self._previous)

    def _make(self, *args: Any, **kwargs: Any) -> Any:
        record = self._previous(*args, **kwargs)
        try:
            if record.levelno is not None and record.levelno >= self._level and self._is_wanted(record.name):
                self._tell(record)
        except Exception:
            pass
        return record

    def _is_wanted(self, name: object) -> bool:
        if not isinstance(name, str):
            return False
        return self._logger is None or name == self._logger or name.startswith(self._logger + ".")

    def _tell(self, record: logging.LogRecord) -> None:
        # As LogRecord.getMessage() does it, without a call that a trace would show.
        message = str(record.msg)
        if record.args:
            message %= record.args
        if len(message) > LONGEST:
            message = message[:LONGEST] + "..."
        self._recording.instant(
            f"log {record.levelname}", stack=False, level=record.levelname, logger=record.name, message=message
        )
