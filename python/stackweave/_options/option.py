"""What is declared of an option."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from .kinds import Flag
from .special_kinds import Part

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .kinds import Kind


class Option(NamedTuple):
    """An option of a recorder."""

    #: The keyword. The command writes it with dashes.
    name: str
    kind: Kind
    default: object
    #: The help of the command, for the reference too, which adds `more`.
    help: str
    more: str = ""
    #: Whether the native module reads it.
    is_native: bool = True
    #: Whether commands have it.
    in_commands: bool = True

    @property
    def flag(self) -> str:
        """How a command writes it: --max-depth, --no-gc."""
        dashed = self.name.replace("_", "-")
        is_negated = isinstance(self.kind, (Flag, Part)) and self.default is True
        return f"--no-{dashed}" if is_negated else f"--{dashed}"

    @property
    def default_text(self) -> str:
        """The default as a command would write it; empty where the option is off by default."""
        if isinstance(self.kind, (Flag, Part)) or not self.default:
            return ""
        return ",".join(self.default) if isinstance(self.default, tuple) else str(self.default)

    @property
    def help_text(self) -> str:
        """The help, with the default."""
        return f"{self.help} ({self.default_text})" if self.default_text else self.help

    def checked(self, value: object) -> Any:
        """Returns the value in the form of the recorders, or raises TypeError or ValueError."""
        return None if value is None and self.default is None else self.kind.checked(self.name, value)


class Group(NamedTuple):
    """Options that help texts show together."""

    title: str
    options: tuple[Option, ...]


def checked(options: tuple[Option, ...], given: Mapping[str, object]) -> dict[str, Any]:
    """Returns the values of the options in the form of the recorders. Other entries of `given` are ignored."""
    return {option.name: option.checked(given[option.name]) for option in options}


def for_native(options: tuple[Option, ...], values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the checked values of the options that the native module reads."""
    return {option.name: values[option.name] for option in options if option.is_native}


def by_parts(given: dict[str, Any]) -> dict[str, Any]:
    """Returns the options of `record`, where the options of calls and of memory are dicts of their own.

    Raises ValueError if options are given of a part that is left out.
    """
    from .table import OF_CALLS, OF_MEMORY, PARTS

    if all(given.get(part.name) is False for part in PARTS.options):
        raise ValueError(f"{' and '.join(part.flag for part in PARTS.options)} leave nothing to record")
    arranged = dict(given)
    for part, options in zip(PARTS.options, (OF_CALLS, OF_MEMORY), strict=True):
        chosen = {option.name: arranged.pop(option.name) for option in options if option.name in given}
        if given.get(part.name) is not False:
            arranged[part.name] = chosen or True
        elif chosen:
            flags = " and ".join(option.flag for option in options if option.name in chosen)
            raise ValueError(f"{part.flag} leaves out {part.name}, which {flags} apply to")
    return arranged
