"""Names that some file systems take for each other: case, marks that nobody sees, and marks at the end do not count there.

Git keeps `Racks/a.yaml` beside `racks/a.yaml`; a checkout that ignores case has one folder for both.
"""

import re
from functools import lru_cache
from typing import Final
from unicodedata import normalize

_IGNORED: Final = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]")
"""Characters that HFS+ leaves out of names, and others that nobody sees."""
_SHOWN: Final = re.compile(r"\\u[0-9a-f]{4}")
"""The same, as names from Git are shown: no name of a file there has a backslash."""


@lru_cache(maxsize=65536)
def folded(name: str) -> str:
    """One segment of a path, as such a file system compares it."""
    bare = _SHOWN.sub("", name) if "\\" in name else name
    visible = bare if bare.isascii() else normalize("NFKC", _IGNORED.sub("", bare))
    return visible.casefold().rstrip(" .")
