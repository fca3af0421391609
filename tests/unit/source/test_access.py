"""What a source reads from its Secrets, and that a bad one is one clear error without a byte of it (gitops.md, section 23.7)."""

from base64 import b64encode

import pytest

from gitops_ctl.api.gitops import parse_git_source
from gitops_ctl.core.errors import BlockedError, NotFound
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.forge.access import read_credentials
from gitops_ctl.git.transport import Credentials

SOURCE = parse_git_source(
    {
        "apiVersion": "gitops-ctl.dev/v1alpha1",
        "kind": "GitSource",
        "metadata": {"name": "network", "namespace": "tenant"},
        "spec": {
            "url": "https://git.example.net/network.git",
            "ref": {"branch": "main"},
            "credentialsSecretRef": {"name": "network-git"},
        },
    }
)


class Secrets:
    """Answers for the one Secret that the source names."""

    def __init__(self, **data: bytes) -> None:
        self.data = {key: b64encode(value).decode() for key, value in data.items()}

    async def get(self, path: str) -> JsonObject:
        assert path == "/api/v1/namespaces/tenant/secrets/network-git"
        if not self.data:
            raise NotFound("no such Secret")
        return {"data": dict(self.data)}


@pytest.mark.parametrize(
    ("data", "found"),
    [
        ({"bearerToken": b"t\n"}, Credentials(bearer_token="t")),
        ({"username": b"u", "password": b"p\n"}, Credentials(username="u", password="p")),
        ({"identity": b"key\n", "password": b"p"}, Credentials(ssh_private_key="key\n", passphrase="p")),
    ],
    ids=["bearer", "basic", "ssh"],
)
async def test_each_kind_of_credential_is_read(data: dict[str, bytes], found: Credentials) -> None:
    assert await read_credentials(Secrets(**data), source=SOURCE) == found


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({}, "does not exist"),
        ({"username": b"u"}, "none of: username and password"),
        ({"bearerToken": b"secret\xff"}, "the key bearerToken is no UTF-8 text"),
    ],
    ids=["no Secret", "half of a pair", "no text"],
)
async def test_a_bad_secret_is_a_named_wait_that_shows_nothing_of_it(data: dict[str, bytes], said: str) -> None:
    with pytest.raises(BlockedError, match=said) as caught:
        await read_credentials(Secrets(**data), source=SOURCE)
    assert caught.value.subject == "Secret/tenant/network-git"
    assert caught.value.__cause__ is None or "secret" not in str(caught.value.__cause__)
