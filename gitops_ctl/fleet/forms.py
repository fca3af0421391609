"""Forms of names that policy, ledger and labels share: those of Kubernetes, nothing of our own."""

import re
from typing import Final

# `fullmatch` and explicit classes: `$` would take a newline at the end, `\w` letters of every script.
_LABEL: Final = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_DNS_LABEL: Final = re.compile(_LABEL)
_SUBDOMAIN: Final = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_NAME: Final = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")
_HASH: Final = re.compile(r"sha256:[0-9a-f]{64}")
_LOCK_ID: Final = re.compile(r"[0-9a-f]{32}")
_PRINTABLE: Final = re.compile(r"[!-~]+")
_UUID4: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


def is_dns_label(text: str) -> bool:
    """Whether `text` is a DNS-1123 label of at most 63 characters."""
    return len(text) <= 63 and _DNS_LABEL.fullmatch(text) is not None


def is_subdomain(text: str) -> bool:
    """Whether `text` is a DNS-1123 subdomain of at most 253 characters."""
    return len(text) <= 253 and _SUBDOMAIN.fullmatch(text) is not None


def is_qualified_name(text: str) -> bool:
    """Whether `text` may be a label key: an optional subdomain and `/`, then at most 63 characters."""
    prefix, slash, name = text.rpartition("/")
    return (not slash or is_subdomain(prefix)) and len(name) <= 63 and _NAME.fullmatch(name) is not None


def is_label_value(text: str) -> bool:
    """Whether `text` may be a label value; the empty text may."""
    return not text or (len(text) <= 63 and _NAME.fullmatch(text) is not None)


def is_hash(text: str) -> bool:
    """Whether `text` is `sha256:` and 64 lower-case hex characters."""
    return _HASH.fullmatch(text) is not None


def is_lock_id(text: str) -> bool:
    """Whether `text` is 32 lower-case hex characters."""
    return _LOCK_ID.fullmatch(text) is not None


def is_printable(text: str) -> bool:
    """Whether `text` is non-empty printable ASCII without a space."""
    return _PRINTABLE.fullmatch(text) is not None


def is_uuid4(text: str) -> bool:
    """Whether `text` is a random UUID in lower case."""
    return _UUID4.fullmatch(text) is not None
