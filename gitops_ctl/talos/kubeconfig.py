"""The kubeconfig in the archive that a control plane sends (cni-switch.md, section 15.7).

The server never closes the archive inside the compressed stream, so its padding and end marks are missing: only the first member is
read, and never the list of members.
"""

import io
import tarfile
import zlib
from typing import Final

MOST_BYTES: Final = 2**20
"""Of the compressed archive, and of the kubeconfig in it."""

_GZIP: Final = 31


def kubeconfig_in(archive: bytes) -> bytes:
    """The kubeconfig.

    Raises:
        ValueError: there is none in it; the text holds nothing of what is in it.
    """
    try:
        unpacked = zlib.decompressobj(_GZIP).decompress(archive, MOST_BYTES)
        with tarfile.open(fileobj=io.BytesIO(unpacked), mode="r:") as tar:
            member = tar.next()
            stream = None if member is None or member.name != "kubeconfig" else tar.extractfile(member)
            found = b"" if stream is None else stream.read(MOST_BYTES)
            complete = member is not None and len(found) == member.size
    except (tarfile.TarError, zlib.error, EOFError):
        raise ValueError("the answer is no archive") from None
    if not found or not complete:
        raise ValueError("the archive holds no complete kubeconfig")
    return found
