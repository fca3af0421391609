"""The verifiers that exist, one per signature format."""

from collections.abc import Mapping
from types import MappingProxyType

from gitops_ctl.trust.openpgp import OpenPgpVerifier
from gitops_ctl.trust.signature import SignatureFormat, Verifier
from gitops_ctl.trust.sshsig import SshVerifier

VERIFIERS: Mapping[SignatureFormat, Verifier] = MappingProxyType(
    {SignatureFormat.OPENPGP: OpenPgpVerifier(), SignatureFormat.SSH: SshVerifier()}
)
