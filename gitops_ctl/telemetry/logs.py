"""Structured logs: constant event names with fields, JSON in pods, key-value on a terminal.

Every line passes the redaction of `core.redact` last, so that a credential in a foreign error text never reaches a log
(promise P9, fault H22).
"""

import logging
import sys
from collections.abc import Mapping, MutableMapping
from typing import TextIO, TypeAlias, cast

import structlog

from gitops_ctl.core.redact import REDACTED, redact_object, redact_text

Logger: TypeAlias = structlog.stdlib.BoundLogger
EventDict: TypeAlias = MutableMapping[str, object]

# Places without the values of local variables: a configuration or a key may be among them, cut so that no rule knows it again.
_PLACES = structlog.processors.ExceptionRenderer(structlog.tracebacks.ExceptionDictTransformer(show_locals=False))


def logger(name: str) -> Logger:
    """A logger that carries its module's name on every line; one made before `configure_logs` writes as that says, too."""
    return cast("Logger", structlog.get_logger(logger_name=name))


def configure_logs(*, json_lines: bool, level: str = "info", stream: TextIO | None = None) -> None:
    """Set up the process: called once, by the command that runs.

    Args:
        json_lines: one JSON object a line; otherwise key-value text for a person.
        level: `debug`, `info`, `warning` or `error`.
        stream: where to write, standard error when left out.
    """
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer() if json_lines else structlog.dev.ConsoleRenderer(colors=False)
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            _name_logger,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _PLACES if json_lines else structlog.processors.format_exc_info,
            redact_event,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(stream or sys.stderr),
        cache_logger_on_first_use=False,
    )


def _name_logger(_logger: object, _method: str, event: EventDict) -> EventDict:
    """`logger` is taken as the name of a parameter where loggers are made, so it gets its name here."""
    if "logger_name" in event:
        event["logger"] = event.pop("logger_name")
    return event


def redact_event(_logger: object, _method: str, event: EventDict) -> EventDict:
    """The last processor: no field leaves with a credential in it."""
    return {key: _clean(key, value) for key, value in event.items()}


def _clean(key: str, value: object) -> object:
    if isinstance(value, str):
        return redact_text(value)
    if isinstance(value, bytes):
        return REDACTED
    if isinstance(value, Mapping):
        return redact_object({str(name): _clean(str(name), member) for name, member in value.items()})  # type: ignore[misc]
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_clean(key, member) for member in value]
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return redact_text(str(value))
