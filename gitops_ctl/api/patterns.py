"""Patterns of texts, in the syntax that RE2, Rust and ECMA read alike, and what they mean in words."""

from collections.abc import Mapping
from typing import Final

from gitops_ctl.core.duration import DURATION_PATTERN

_LABEL: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
# A segment is neither empty nor `.` nor `..`, and holds no control character.
_SEGMENT: Final = r"(\.?[^./\x00-\x1f\x7f]|\.\.[^/\x00-\x1f\x7f])[^/\x00-\x1f\x7f]*"
_DAY: Final = r"[12][0-9]{3}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_TIME: Final = r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?"
_OFFSET: Final = r"(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
_MOMENT: Final = f"{_DAY}T{_TIME}{_OFFSET}"

_LABEL_TEXT: Final = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"

LABEL_KEY: Final = rf"^({_LABEL}(\.{_LABEL})*/)?{_LABEL_TEXT}$"
LABEL_VALUE: Final = rf"^({_LABEL_TEXT})?$"
LABEL_PREFIX: Final = rf"^({_LABEL}(\.{_LABEL})*/)?$"
NOT_BLANK: Final = r"[^\x09-\x0d ]"
ONE_LINE: Final = r"^[^\x00-\x1f\x7f]*[^\x00-\x20\x7f][^\x00-\x1f\x7f]*$"
NO_SPACES: Final = r"^[^\x00-\x20\x7f]+$"
# The grammar of Go; without a minus, since no duration of ours may be negative.
_MICRO: Final = "\u00b5s|\u03bcs"  # micro sign, Greek mu
_PARTS: Final = rf"(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|{_MICRO}|ms|s|m|h))"
GO_DURATION: Final = rf"^\+?(0|{_PARTS}+)$"
LABEL: Final = f"^{_LABEL}$"
OPTIONAL_LABEL: Final = f"^({_LABEL})?$"
NAME: Final = rf"^{_LABEL}(\.{_LABEL})*$"
OPTIONAL_NAME: Final = rf"^({_LABEL}(\.{_LABEL})*)?$"
DATA_KEY: Final = r"^[-._a-zA-Z0-9]+$"
KIND: Final = r"^[A-Z][A-Za-z0-9]*$"
"""Kinds, condition types and reasons."""
KIND_AND_GROUP: Final = rf"^[A-Z][A-Za-z0-9]*(\.{_LABEL})*$"
# Numbers up to 65535.
_PORT: Final = r"([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"
_HOST: Final = r"[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?(\.[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?)*"
_IPV6: Final = r"[0-9A-Fa-f]*:[0-9A-Fa-f]*:[0-9A-Fa-f:.]*"
HOST_AND_PORT: Final = rf"^({_HOST}(:{_PORT})?|\[{_IPV6}\](:{_PORT})?|{_IPV6})$"
IMAGE_TEMPLATE: Final = r"^[a-z0-9]([-A-Za-z0-9._:/@]|\{version\})*$"
_BOUND: Final = r"(\^|~|=|!=|<=?|>=?)? ?v?[0-9]+(\.([0-9]+|[xX*])){0,2}(-[0-9A-Za-z.-]+)?"
VERSION_RANGE: Final = rf"^(\*|{_BOUND}((,| ) ?{_BOUND})*( ?\|\| ?{_BOUND}((,| ) ?{_BOUND})*)*)$"
OBJECT_ID: Final = r"^([0-9a-f]{40}|[0-9a-f]{64})$"
STEP: Final = r"^(enabled|replaced)/[1-9][0-9]?-[a-z]([-a-z]*[a-z])?$"
REQUEST_ID: Final = rf"^(enabled|replaced)/[1-9][0-9]?-[a-z]([-a-z]*[a-z])?/{_LABEL}(\.{_LABEL})*#[1-9][0-9]*$"
WAIT: Final = r"^[a-z]([-a-z0-9/]*[a-z0-9])?$"
POINTER: Final = r"^(/([^~/\x00-\x1f\x7f]|~[01])*)*$"
PURPOSE: Final = r"^[a-z0-9]([-a-z0-9./]*[a-z0-9])?$"
API_VERSION: Final = rf"^({_LABEL}(\.{_LABEL})*/)?v[0-9][a-z0-9]*$"
COMMIT: Final = r"^[0-9a-f]{40}$"
DIGEST: Final = r"^sha256:[0-9a-f]{64}$"
OPTIONAL_DIGEST: Final = r"^(sha256:[0-9a-f]{32,64})?$"
UID: Final = r"^[-0-9a-zA-Z]+$"
OPTIONAL_UID: Final = r"^[-0-9a-zA-Z]*$"
MOMENT: Final = f"^{_MOMENT}$"
COMMIT_OR_MOMENT: Final = f"^([0-9a-f]{{40}}|{_MOMENT})$"
FILE_PATH: Final = rf"^{_SEGMENT}(/{_SEGMENT})*$"
FOLDER_PATH: Final = rf"^({_SEGMENT}(/{_SEGMENT})*)?$"
GLOB: Final = r"^[^/!\x00-\x1f\x7f][^\x00-\x1f\x7f]*$"
PRINTABLE: Final = r"^[!-~]+$"
HTTPS: Final = r"^https://[!-~]+$"
EMAIL: Final = r"^[^@\s<>]+@[^@\s<>]+$"
FORGE_ACCOUNT: Final = r"^[^\s#]+(#[0-9]+)?$"
PUBLIC_KEY: Final = r"^[a-z0-9][a-z0-9@.-]* [A-Za-z0-9+/]+={0,2}$"
CERTIFICATE: Final = r"^\s*-----BEGIN PGP PUBLIC KEY BLOCK-----"
PRINCIPAL: Final = r"^[^*?!,\x00-\x20\x7f]+$"
OPENPGP_FINGERPRINT: Final = r"^[0-9A-Fa-f]{40}$"
ANY_FINGERPRINT: Final = r"^(SHA256:[A-Za-z0-9+/]{43}|[0-9A-Fa-f]{40})$"
# No empty or dotted segment, none of the characters that Git refuses or expands.
_REF_CHARS: Final = r"[^\x00-\x20\x7f~^:?*\[\]\\/.{}]"
_REF_SEGMENT: Final = rf"{_REF_CHARS}(\.?{_REF_CHARS})*"
REF: Final = rf"^{_REF_SEGMENT}(/{_REF_SEGMENT})*$"
_HEX8: Final = "[0-9a-f]{8}"
_HEX4: Final = "[0-9a-f]{4}"
SHA256_HEX: Final = r"^[0-9a-f]{64}$"
HEX_32: Final = r"^[0-9a-f]{32}$"
UUID: Final = f"^{_HEX8}(-{_HEX4}){{3}}-{_HEX4}{_HEX8}$"
UUID_4: Final = f"^{_HEX8}-{_HEX4}-4[0-9a-f]{{3}}-[89ab][0-9a-f]{{3}}-{_HEX4}{_HEX8}$"
SOFTWARE_VERSION: Final = r"^[0-9]+(\.[0-9]+)+[a-z]?$"
IMAGE_FAMILY: Final = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
IMAGE_URL: Final = r"^(https|sftp)://[^/?#@]+/[^?#]+$"
ANY_IMAGE_URL: Final = r"^(https?|tftp|ftp|scp|sftp)://[^/?#@]+([/?#][^@]*)?$"
DEVICE_FILE: Final = r"^(flash|bootflash|harddisk):.+$"
RESERVATION: Final = r"^[A-Za-z0-9][A-Za-z0-9._:-]*$"
NONEMPTY_LABEL_VALUE: Final = r"^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"
# Without counted repetitions: a server tries it on thousands of keys in one object, and these make it slow.
QUALIFIED_KEY: Final = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"
CANONICAL_IDENTITY: Final = r"^[a-z0-9]([-a-z0-9._:/]*[a-z0-9])?$"

MEANING: Final[Mapping[str, str]] = {
    LABEL_KEY: "must be a label key such as topology.example.net/rack",
    LABEL_VALUE: "must be a label value, or empty",
    LABEL_PREFIX: "must be a DNS subdomain and one slash at its end",
    NOT_BLANK: "must not be blank",
    ONE_LINE: "must be one line that is not blank",
    NO_SPACES: "must hold neither spaces nor control characters",
    GO_DURATION: "must be a duration such as 30s, 10m or 1h30m",
    LABEL: "must be lower-case letters, digits and dashes",
    OPTIONAL_LABEL: "must be lower-case letters, digits and dashes",
    NAME: "must be lower-case letters, digits, dashes and dots",
    OPTIONAL_NAME: "must be lower-case letters, digits, dashes and dots",
    DATA_KEY: "must be letters, digits, dashes, dots and underscores",
    KIND: "must be one CamelCase word",
    KIND_AND_GROUP: "must be <Kind>.<group>, or <Kind> of the core group",
    HOST_AND_PORT: "must be an IP address or a host name, with an optional port",
    IMAGE_TEMPLATE: "must be an image reference; {version} stands for the version of Kubernetes",
    VERSION_RANGE: "must be a range of versions such as >=1.19.0 <1.19.5 || 1.20.x",
    OBJECT_ID: "must be 40 or 64 lower-case hex digits, the whole id of a Git object",
    STEP: "must be <mode>/<number>-<name>",
    REQUEST_ID: "must be <step>/<machine or cluster>#<number>",
    POINTER: "must be a JSON pointer such as /spec/values/kubeProxyReplacement, or empty for the whole document",
    PURPOSE: "must be lower-case letters, digits, dashes, dots and slashes",
    API_VERSION: "must be <group>/<version>, or <version> of the core group",
    WAIT: "must be lower-case letters, digits, dashes and slashes",
    COMMIT: "must be 40 lower-case hex digits, the whole id of a Git object",
    DIGEST: "must be sha256: and 64 lower-case hex digits",
    OPTIONAL_DIGEST: "must be empty, or sha256: and hex digits",
    UID: "must be a UID",
    OPTIONAL_UID: "must be a UID or empty",
    MOMENT: "must be an RFC 3339 time such as 2026-11-30T08:00:00Z",
    COMMIT_OR_MOMENT: "must be a whole commit id, or an RFC 3339 time such as 2026-11-30T08:00:00Z",
    FILE_PATH: "must be a path relative to the root of the repository, without . and .. and without a leading or closing /",
    FOLDER_PATH: "must be a path relative to the root of the repository, without . and .. and without a leading or closing /",
    GLOB: "must be relative to the root of the repository, and not negated",
    PRINTABLE: "must be printable ASCII without spaces",
    HTTPS: "must start with https:// and hold no spaces",
    EMAIL: "must be an e-mail address",
    FORGE_ACCOUNT: "must be <login> or <login>#<number>",
    PUBLIC_KEY: "must be <type> <base64>, without options before it and without a comment after it",
    CERTIFICATE: "must be an armored OpenPGP certificate",
    PRINCIPAL: "must be one exact name, no pattern and no list",
    OPENPGP_FINGERPRINT: "must be the 40 hex digits of a primary key",
    ANY_FINGERPRINT: "must be SHA256: and 43 base64 characters, or 40 hex digits",
    REF: "must be the name of one branch or tag, without globs, .. or control characters",
    SHA256_HEX: "must be the 64 lower-case hex digits of a SHA-256",
    HEX_32: "must be 32 lower-case hex digits",
    UUID: "must be a UUID in lower case",
    UUID_4: "must be a random UUID (version 4) in lower case",
    SOFTWARE_VERSION: "must be a version such as 17.18.03 or 17.15.01a",
    IMAGE_FAMILY: "must be letters, digits, dots, dashes and underscores, with a letter or digit first",
    IMAGE_URL: "must be https:// or sftp:// with a host and a path, without user information, query and fragment",
    ANY_IMAGE_URL: "must be an http, https, tftp, ftp, scp or sftp URL with a host and without user information",
    DEVICE_FILE: "must be a path on flash:, bootflash: or harddisk:",
    RESERVATION: "must be letters, digits, dots, dashes, colons and underscores",
    NONEMPTY_LABEL_VALUE: "must be a label value",
    QUALIFIED_KEY: "must be a label key such as topology.kubernetes.io/zone",
    CANONICAL_IDENTITY: "must be a physical identity in lower case",
    DURATION_PATTERN: "must be a duration such as 90s, 1m30s or 24h",
}
"""What a refusal says instead of the pattern."""
