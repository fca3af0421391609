"""The kubeconfig is found in an archive that its sender never closes (cni-switch.md, 15.7)."""

import gzip
import io
import tarfile

import pytest

from gitops_ctl.talos.kubeconfig import MOST_BYTES, kubeconfig_in
from tools.peers.talos.service import unclosed_archive


@pytest.mark.parametrize("size", [1, 511, 512, 513, 1024, 5000])
def test_it_is_read_whatever_its_size(size):
    assert kubeconfig_in(unclosed_archive(b"k" * size)) == b"k" * size


def test_a_closed_archive_is_read_too():
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        member = tarfile.TarInfo("kubeconfig")
        member.size = 3
        tar.addfile(member, io.BytesIO(b"abc"))
    assert kubeconfig_in(packed.getvalue()) == b"abc"


def test_a_list_of_the_members_would_fail():
    unpacked = gzip.decompress(unclosed_archive(b"k" * 100))
    with tarfile.open(fileobj=io.BytesIO(unpacked)) as tar, pytest.raises(tarfile.ReadError):
        tar.getmembers()


BROKEN = {
    "nothing": (b"", "no archive"),
    "not compressed": (b"not gzip", "no archive"),
    "no archive inside": (gzip.compress(b"not tar"), "no archive"),
    "cut in the kubeconfig": (gzip.compress(gzip.decompress(unclosed_archive(b"k" * 900))[:900]), "no"),
    "endless": (gzip.compress(b"\0" * (4 * MOST_BYTES)), "no complete kubeconfig"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_what_is_none_is_refused(what):
    archive, message = BROKEN[what]
    with pytest.raises(ValueError, match=message):
        kubeconfig_in(archive)


def test_another_file_is_refused():
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        member = tarfile.TarInfo("../kubeconfig")
        member.size = 3
        tar.addfile(member, io.BytesIO(b"abc"))
    with pytest.raises(ValueError, match="no complete kubeconfig"):
        kubeconfig_in(packed.getvalue())
