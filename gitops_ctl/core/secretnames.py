"""Which names say that they hold a secret: members of objects, keys of texts, variables, headers.

A name is read as words, so that `DB_PASSWORD`, `dbPassword` and `db.password` are one.  The last word decides: `tokenRef`,
`secretName` and `passwordFile` say where a secret is, and not what it is.
"""

import re
from typing import Final

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_ALONE: Final = frozenset(
    (
        *("password", "passwords", "passwd", "passphrase", "passphrases", "passcode", "pwd", "psk", "jwt", "bearer"),
        *("token", "tokens", "secret", "secrets", "credential", "credentials", "authorization", "cookie", "community"),
        *("apikey", "privatekey", "secretkey", "accesskey", "authkey"),
    )
)
_BEFORE_KEY: Final = frozenset(
    ("private", "api", "secret", "access", "auth", "shared", "encryption", "account", "master")
)
_QUALIFIERS: Final = frozenset(
    (
        *("value", "values", "data", "text", "string", "base", "b", "pem", "plain", "plaintext", "raw", "hash"),
        *("old", "new", "current", "previous", "primary", "secondary", "encrypted", "v"),
    )
)
_PASSWORD_AT_THE_END: Final = re.compile(r"(?:password|passwd|passphrase)$")


def is_secret_name(name: str) -> bool:
    """Whether a value under this name is a secret by what the name says."""
    words = [word.lower() for word in _WORD.findall(name)]
    while len(words) > 1 and (words[-1] in _QUALIFIERS or words[-1].isdecimal()):
        words.pop()
    if not words:
        return False
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    if last in ("key", "keys"):
        return before in _BEFORE_KEY
    if last == "pass":
        return bool(before)
    return last in _ALONE or bool(_PASSWORD_AT_THE_END.search(last))
