"""The first trust policy of a repository, from public keys; `gitops-ctl trust init` writes it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pygit2
import yaml

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import Refused
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.trust.openpgp import CertificateRefused, fingerprint_in
from gitops_ctl.trust.sshkey import SshFormatError, SshUnsupported, parse_key_line

_HEAD = """\
# Who may change what in this repository.  A commit is judged by the policy of its parent.
# Give each person only the roles that they need, and let a second person hold policy-admin before you raise thresholds.
"""


@dataclass(frozen=True, slots=True)
class NamedKey:
    """A person, and where the public key is: a file, or the key itself."""

    name: str
    source: str
    email: str = ""


def key_from_git(config: pygit2.Config) -> NamedKey:
    """The person and signing key that git is set up with.

    Raises:
        Refused: git has no SSH signing key; an OpenPGP certificate must be exported by the user.
    """
    key = _setting(config, "user.signingkey").removeprefix("key::")
    if _setting(config, "gpg.format") != "ssh" or not key:
        raise Refused(
            "git is not set up to sign with an SSH key",
            code=ErrorCode.USAGE,
            hint="`git config gpg.format ssh` and `git config user.signingKey FILE.pub`, or give --key NAME=FILE; "
            "for OpenPGP export the certificate with `gpg --armor --export KEY > FILE`",
        )
    name = re.sub(r"[^a-z0-9]+", "-", _setting(config, "user.name").lower()).strip("-")[:63] or "first-person"
    return NamedKey(name, key, _setting(config, "user.email"))


def _setting(config: pygit2.Config, name: str) -> str:
    try:
        return config[name] or ""
    except KeyError:
        return ""


def read_key(source: str) -> JsonObject:
    """The entry of `keys[]` for a public key.

    Raises:
        Refused: it is neither an SSH public key nor an armored OpenPGP certificate.
    """
    text = source if source.startswith(("ssh-", "ecdsa-", "sk-")) else _file(source)
    try:
        if text.lstrip().startswith("-----BEGIN PGP PUBLIC KEY BLOCK-----"):
            return {"openpgp": {"fingerprint": fingerprint_in(text).upper(), "certificate": text.strip() + "\n"}}
        key = parse_key_line(" ".join(text.split()[:2]))
    except (CertificateRefused, SshFormatError, SshUnsupported) as error:
        raise Refused(f"the public key cannot be used: {error}", code=ErrorCode.USAGE, subject=source[:200]) from error
    return {"ssh": f"{key.type} {text.split()[1]}"}


def first_policy(people: Sequence[tuple[NamedKey, JsonObject]], *, policy_path: str) -> str:
    """The text of the policy.  Keys of one name belong to one person."""
    listed: dict[str, dict[str, object]] = {}
    for person, key in people:
        entry = listed.setdefault(person.name, {"name": person.name})
        if person.email:
            entry["emails"] = [person.email]
        keys = entry.setdefault("keys", [])
        assert isinstance(keys, list)
        keys.append(key)
    names = list(listed)
    tree: Mapping[str, object] = {
        "apiVersion": "gitops-ctl.dev/v1alpha1",
        "kind": "TrustPolicy",
        "people": list(listed.values()),
        "roles": dict.fromkeys(("policy-admin", "approver", "author", "merger"), names),
        "rules": [
            {"paths": [policy_path], "verbs": ["trust"], "roles": ["policy-admin"]},
            {"paths": [".gitops-ctl/consents/**"], "verbs": ["consent", "edit"], "roles": ["policy-admin", "approver"]},
            {"paths": ["**"], "verbs": ["consent"], "roles": ["approver"]},
            {"paths": ["**"], "verbs": ["edit", "delete"], "roles": ["author"]},
            {"verbs": ["merge"], "roles": ["merger"]},
        ],
    }
    return _HEAD + yaml.dump(tree, Dumper=_Plain, sort_keys=False, allow_unicode=True, width=4096)


class _Plain(yaml.SafeDumper):
    """Writes equal lists in full: a policy with anchors is harder to read."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _file(source: str) -> str:
    path = Path(source).expanduser()
    if not path.is_file() and Path(f"{path}.pub").is_file():
        path = Path(f"{path}.pub")
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"the public key {path} cannot be read", code=ErrorCode.USAGE) from error
    if "PRIVATE KEY" in text:
        return _file(f"{path}.pub")
    return text
