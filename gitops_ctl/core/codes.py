"""Every error that a user can see, registered once.

`GC` and four digits: 1xxx documents and history (cured in Git), 2xxx cluster, 3xxx Git transport and forge, 4xxx device,
9xxx ours.  Slugs are for pages and metric labels.  Reasons are stored literally, because the contracts name them
(gitops.md 4.5, 5.2, 22.2); nothing is derived from a slug.  Each code has a page under `docs/errors/`.  A code is entered
together with the code that raises it, and a number is never used again.
"""

import enum
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Entry:
    """One explanation and one fix.  `reason` may stand on a condition, an event and a metric."""

    number: int
    slug: str
    reason: str
    fix: str


class ErrorCode(enum.Enum):
    """The registry.  Two codes never share a number or a slug; several may share a reason of a contract."""

    # 10xx: documents
    YAML_SYNTAX = Entry(1001, "yaml-syntax", "DocumentInvalid", "correct the YAML at this place")
    KEY_NOT_A_STRING = Entry(1002, "key-not-a-string", "DocumentInvalid", "quote the key")
    DUPLICATE_KEY = Entry(1003, "duplicate-key", "DocumentInvalid", "remove one of the two lines")
    TAG_REFUSED = Entry(1004, "tag-refused", "DocumentInvalid", "write the value without a tag")
    NUMBER_NOT_JSON = Entry(
        1005, "number-not-json", "DocumentInvalid", "quote the value, or write a number that JSON can carry"
    )
    NOT_A_STRING = Entry(1006, "not-a-string", "DocumentInvalid", "quote the value")
    DOCUMENT_TOO_LARGE = Entry(1007, "document-too-large", "DocumentInvalid", "split the document")
    EXPANSION_LIMIT = Entry(
        1008, "expansion-limit", "DocumentInvalid", "write the document without nested aliases or Lists"
    )
    NOT_AN_OBJECT = Entry(
        1009,
        "not-an-object",
        "DocumentInvalid",
        "give the document apiVersion, kind and metadata.name, or list its file in .gitops-ctlignore",
    )
    NOT_RESOLVED = Entry(
        1010, "not-resolved", "DocumentInvalid", "render it before the commit, or list its file in .gitops-ctlignore"
    )
    ENCRYPTED = Entry(
        1011, "encrypted", "DocumentInvalid", "refer to a Secret by name; encrypted files are not supported yet"
    )
    GENERATE_NAME = Entry(1012, "generate-name", "DocumentInvalid", "give the object a fixed metadata.name")
    DUPLICATE_IDENTITY = Entry(1013, "duplicate-identity", "DocumentInvalid", "keep one of the two declarations")
    STATUS_IGNORED = Entry(1014, "status-ignored", "DocumentInvalid", "remove the status block: it is never applied")
    SCHEMA = Entry(1015, "schema", "DocumentInvalid", "change the value to what the schema allows")
    KIND_UNKNOWN = Entry(
        1016,
        "kind-unknown",
        "DocumentInvalid",
        "put the CustomResourceDefinition into the repository, or correct apiVersion and kind",
    )
    RULE = Entry(1017, "rule", "DocumentInvalid", "change the document as the rule says")
    REFERENCE = Entry(
        1018, "reference", "DocumentInvalid", "add the object that is referred to, or correct the reference"
    )
    MERGE_KEY_REPEATED = Entry(1019, "merge-key-repeated", "DocumentInvalid", "give each list entry its own key")
    RESERVED_METADATA = Entry(
        1020, "reserved-metadata", "DocumentInvalid", "remove the label or annotation: the controller writes it"
    )
    ANNOTATION_INVALID = Entry(1021, "annotation-invalid", "DocumentInvalid", "correct the value of the annotation")
    SCHEMA_REFUSED = Entry(
        1022, "schema-refused", "DocumentInvalid", "use only local references and linear-time patterns in the schema"
    )
    PATH_REFUSED = Entry(
        1023, "path-refused", "DocumentInvalid", "replace the symlink, submodule or LFS pointer by the file itself"
    )
    PLAIN_SECRET = Entry(
        1024, "plain-secret", "DocumentInvalid", "keep secret values out of Git and refer to the Secret by name"
    )
    DEPENDENCY_CYCLE = Entry(1025, "dependency-cycle", "DocumentInvalid", "remove one of the dependencies of the cycle")
    OWN_SOURCE = Entry(
        1026,
        "own-source",
        "DocumentInvalid",
        "remove it: a GitSource is created by bootstrap, not from its own repository",
    )
    MISPLACED = Entry(1027, "misplaced", "DocumentInvalid", "move the document to the folder that its kind needs")
    CHECK_ENDED = Entry(1028, "check-ended", "CheckEnded", "make the change of the pull request smaller")
    PHYSICAL_IDENTITY_INVALID = Entry(
        1029,
        "physical-identity-invalid",
        "PhysicalIdentityInvalid",
        "write the serial number of the chassis: letters, digits and . _ : / - inside",
    )
    FLEET_POLICY_INVALID = Entry(
        1030, "fleet-policy-invalid", "FleetPolicyInvalid", "correct policy.json of the policy ConfigMap at this place"
    )

    # 11xx: history and authority
    UNSIGNED = Entry(1101, "unsigned", "Unsigned", "sign the commit and push again")
    BAD_SIGNATURE = Entry(1102, "bad-signature", "BadSignature", "sign the commit again")
    UNKNOWN_SIGNER = Entry(1103, "unknown-signer", "UnknownSigner", "sign with a key that the trust policy lists")
    REVOKED_SIGNER = Entry(1104, "revoked-signer", "RevokedSigner", "sign with a key that is not revoked")
    COMMITTER_MISMATCH = Entry(
        1105, "committer-mismatch", "CommitterMismatch", "commit with one of the e-mail addresses of the policy"
    )
    PATH_NOT_AUTHORISED = Entry(
        1106, "path-not-authorised", "PathNotAuthorised", "let an entitled person sign, or change the policy first"
    )
    NEEDS_FORGE_REVIEWS = Entry(
        1107,
        "needs-forge-reviews",
        "NeedsForgeReviews",
        "approve the pull request at its head, or merge on a workstation",
    )
    MALFORMED_OBJECT = Entry(
        1108, "malformed-object", "MalformedObject", "make the commit again with an ordinary Git client"
    )
    UNSUPPORTED_FORMAT = Entry(1109, "unsupported-format", "UnsupportedFormat", "sign with SSH or OpenPGP")
    OBJECT_TOO_LARGE = Entry(1110, "object-too-large", "ObjectTooLarge", "make the object smaller")
    POLICY_INVALID = Entry(1111, "policy-invalid", "PolicyInvalid", "correct the trust policy")
    SIGNATURE_IN_FUTURE = Entry(
        1112, "signature-in-future", "SignatureInFuture", "correct the signer's clock; it is tried again by itself"
    )
    HISTORY_REWRITTEN = Entry(1113, "history-rewritten", "HistoryRewritten", "bring the branch back, or pin a new root")
    VERIFICATION_IN_PROGRESS = Entry(1114, "verification-in-progress", "VerificationInProgress", "wait")
    HISTORY_UNAVAILABLE = Entry(
        1115,
        "history-unavailable",
        "HistoryUnavailable",
        "let the server give the history between the last accepted commit and the tip",
    )

    # 20xx: the API server
    UNAVAILABLE = Entry(2001, "unavailable", "Unavailable", "wait; it is tried again by itself")
    REPLY_LOST = Entry(2002, "reply-lost", "Unavailable", "wait; it is tried again by itself")
    RATE_LIMITED = Entry(2003, "rate-limited", "Unavailable", "wait; it is tried again by itself")
    BLOCKED = Entry(2004, "blocked", "Blocked", "see the message")
    FORBIDDEN = Entry(
        2005, "forbidden", "Forbidden", "grant the named right; `gitops-ctl rights SYNC -n NAMESPACE` prints all"
    )
    NOT_FOUND = Entry(2006, "not-found", "NotFound", "create the object that the message names")
    CONFLICT = Entry(2007, "conflict", "Conflict", "wait; it is planned again by itself")
    REFUSED = Entry(2008, "refused", "ApplyRefused", "change the document as the server says")
    KIND_NOT_SERVED = Entry(2009, "kind-not-served", "DependencyNotReady", "install the CustomResourceDefinition")
    UNAUTHENTICATED = Entry(2010, "unauthenticated", "Forbidden", "renew the credentials")
    LEADERSHIP_LOST = Entry(2011, "leadership-lost", "LeadershipLost", "nothing: another replica goes on")
    CLUSTER_UNREACHABLE = Entry(
        2012, "cluster-unreachable", "ClusterUnreachable", "make the API server reachable, or correct the kubeconfig"
    )
    CRD_OUTDATED = Entry(2013, "crd-outdated", "CrdOutdated", "apply the CustomResourceDefinitions of this release")
    GONE = Entry(2014, "version-expired", "Unavailable", "nothing: the list is read again")

    # 21xx: sync
    OWNED_ELSEWHERE = Entry(2101, "owned-elsewhere", "OwnedElsewhere", "remove the object from the other Sync first")
    FIELD_CONFLICT = Entry(
        2102,
        "field-conflict",
        "FieldConflict",
        "remove the field from Git, let the other manager release it, or annotate the object with gitops-ctl.dev/apply: Override",
    )
    RECREATE_REQUIRED = Entry(
        2103,
        "recreate-required",
        "RecreateRequired",
        "commit the annotation gitops-ctl.dev/recreate with the UID of the live object",
    )
    APPLY_REFUSED = Entry(2104, "apply-refused", "ApplyRefused", "change the document as the server says")
    DEPENDENCY_NOT_READY = Entry(2105, "dependency-not-ready", "DependencyNotReady", "wait; it goes on by itself")
    PRUNE_BLOCKED = Entry(
        2106,
        "prune-blocked",
        "PruneBlocked",
        "commit gitops-ctl.dev/allow-prune with the digest of the set, or bring the documents back",
    )
    PRUNE_FAILED = Entry(2107, "prune-failed", "PruneFailed", "see the message; the delete is tried again")
    HEALTH_CHECK_FAILED = Entry(
        2108, "health-check-failed", "HealthCheckFailed", "look at the objects that the message names"
    )
    SOURCE_NOT_FOUND = Entry(2109, "source-not-found", "SourceNotFound", "create the GitSource in the same namespace")
    SOURCE_NOT_TRUSTED = Entry(2110, "source-not-trusted", "SourceNotTrusted", "give the GitSource a trust root")
    SOURCE_NOT_ACCEPTED = Entry(
        2111, "source-not-accepted", "SourceNotAccepted", "see the GitSource for what was refused"
    )
    FIGHTING = Entry(2112, "fighting", "Fighting", "let only one of the two write the field")
    SUSPENDED = Entry(2113, "suspended", "Suspended", "resume it")
    OBJECTS_HELD = Entry(2114, "objects-held", "ObjectsHeld", "see status.held, or explain one of the objects")
    HIDDEN_IN_GIT = Entry(2115, "hidden-in-git", "HiddenInGit", "take the file out of .gitops-ctlignore, or delete it")
    CONSENT_MISSING = Entry(
        2116,
        "consent-missing",
        "ConsentMissing",
        "commit the annotation that the message names, by a person with consent",
    )
    SWITCH_IN_PROGRESS = Entry(
        2117, "switch-in-progress", "SwitchInProgress", "wait for the running switch, or name its mode again"
    )
    IDENTITY_MISMATCH = Entry(
        2118, "identity-mismatch", "IdentityMismatch", "write the name that the message says, or leave it out"
    )
    HISTORIC_ROLLOUT = Entry(
        2119, "historic-rollout", "HistoricRollout", "remove the blocks that the message names, and request it anew"
    )
    KUEUE_VERSION_UNSUPPORTED = Entry(
        2120,
        "kueue-version-unsupported",
        "KueueVersionUnsupported",
        "install Kueue 0.17 or newer, which serves v1beta2",
    )
    LEDGER_INVALID = Entry(
        2121,
        "ledger-invalid",
        "LedgerInvalid",
        "restore ledger.json as the manager wrote it; nothing is admitted until then",
    )
    REFERENCE_LEADS = Entry(
        2130,
        "reference-leads",
        "ReferenceManagerActive",
        "stop the other manager; this one goes on by itself once that Lease is over",
    )
    OBJECT_OCCUPIED = Entry(
        2131,
        "object-occupied",
        "ObjectOccupied",
        "rename or remove the object that the message names; it is not taken over",
    )
    ADMISSION_UNPROVEN = Entry(
        2132,
        "admission-unproven",
        "AdmissionUnproven",
        "install the policies and roles of this release, with managedTopology and admission enabled; it is tried again by itself",
    )

    # 214x: the reservation ledger
    LEDGER_IDENTITY = Entry(
        2140,
        "ledger-identity",
        "LedgerIdentityInvalid",
        "bring back the ledger that the policy is bound to; do not empty or replace it",
    )

    # 215x: documents of software rollouts
    WORKLOAD_POLICY_UNSUPPORTED = Entry(
        2150, "workload-policy-unsupported", "WorkloadPolicyUnsupported", "use workloads.policy: BlockIfRunning"
    )
    SOURCE_KIND_UNSUPPORTED = Entry(
        2151, "source-kind-unsupported", "SourceKindUnsupported", "serve the image over https or sftp and give its url"
    )
    DEVICE_LOCKED = Entry(2152, "device-locked", "DeviceLocked", "wait for the campaign, or cancel it")
    CONTROL_REVISION = Entry(2153, "control-revision", "ControlRevisionStale", "write the revision that is named")
    APPROVAL_MISMATCH = Entry(2154, "approval-mismatch", "ApprovalHashMismatch", "approve status.frozenPlan.hash")
    ROLLOUT_STATE = Entry(2155, "rollout-state", "WrongRolloutState", "see the message for what has to happen first")

    # 30xx: Git transport
    URL_REFUSED = Entry(3001, "url-refused", "UrlRefused", "use https://host/path or ssh://user@host/path")
    AUTHENTICATION_FAILED = Entry(
        3002, "authentication-failed", "AuthenticationFailed", "correct the credentials Secret"
    )
    HOST_KEY_REFUSED = Entry(
        3003, "host-key-refused", "HostKeyRefused", "put the server's host key into the known_hosts ConfigMap"
    )
    CERTIFICATE_REFUSED = Entry(
        3004,
        "certificate-refused",
        "CertificateRefused",
        "put the server's CA into the ConfigMap, or renew the certificate",
    )
    FETCH_TIMEOUT = Entry(3005, "fetch-timeout", "FetchTimeout", "raise spec.timeout, or look at the server")
    FETCH_TOO_LARGE = Entry(
        3006, "fetch-too-large", "FetchTooLarge", "raise spec.limits, or make the repository smaller"
    )
    FETCH_FAILED = Entry(3007, "fetch-failed", "FetchFailed", "see the message; it is tried again")
    REF_NOT_FOUND = Entry(3008, "ref-not-found", "RefNotFound", "push the branch or tag, or correct spec.ref")
    CREDENTIALS_MISSING = Entry(
        3009, "credentials-missing", "CredentialsMissing", "create the Secret that the message names"
    )
    REPOSITORY_DAMAGED = Entry(
        3011, "repository-damaged", "RepositoryDamaged", "nothing: the local copy is fetched anew"
    )
    TREE_LIMIT = Entry(3012, "tree-limit", "FetchTooLarge", "raise spec.limits, or make the tree smaller")

    # 302x: the API of a forge
    TOKEN_REJECTED = Entry(3020, "token-rejected", "TokenRejected", "put a valid token into the Secret of the forge")
    FORBIDDEN_OR_MISSING = Entry(
        3021, "forbidden-or-missing", "ForbiddenOrMissing", "give the token the right that the message names"
    )
    REPOSITORY_UNAVAILABLE = Entry(
        3022, "repository-unavailable", "RepositoryUnavailable", "correct spec.forge.project, or unarchive the project"
    )
    REDIRECT_REFUSED = Entry(
        3023, "redirect-refused", "RedirectRefused", "give the address that the message names, if you trust it"
    )
    ANSWER_REFUSED = Entry(
        3024, "answer-refused", "AnswerRefused", "correct spec.forge.baseURL, or look at what stands before the forge"
    )
    FORGE_UNAVAILABLE = Entry(3025, "forge-unavailable", "ForgeUnavailable", "wait; it is tried again by itself")
    FORGE_RATE_LIMITED = Entry(3026, "forge-rate-limited", "ForgeRateLimited", "wait; it goes on by itself")
    FORGE_REFUSED = Entry(3027, "forge-refused", "ForgeRefused", "change what the message names")
    PULL_REQUEST_EXISTS = Entry(
        3028, "pull-request-exists", "PullRequestExists", "let the token read all pull requests of the project"
    )
    NO_DIFFERENCE = Entry(3029, "no-difference", "NoDifference", "nothing: the base branch has the change already")
    HEAD_MISSING = Entry(3030, "head-missing", "HeadMissing", "nothing: the branch is pushed again")
    BASE_MISSING = Entry(3031, "base-missing", "BaseMissing", "correct spec.ref.branch of the GitSource")
    NOT_OFFERED = Entry(3032, "not-offered", "NotOffered", "do it by hand, as the message says")

    # 304x: proposals
    PUSH_REFUSED = Entry(
        3040,
        "push-refused",
        "PushRefused",
        "let the account push branches that start with gitops-ctl/, as the message says",
    )
    LEASE_LOST = Entry(3041, "lease-lost", "LeaseLost", "nothing: the branch is looked at again")
    REFSPEC_REFUSED = Entry(
        3042, "refspec-refused", "RefspecRefused", "name one commit and one branch that is not the base branch"
    )
    SIGNING_KEY_INVALID = Entry(
        3043, "signing-key-invalid", "SigningKeyInvalid", "store one SSH or OpenPGP private key in the Secret"
    )
    PUSH_FAILED = Entry(3044, "push-failed", "PushFailed", "see the message; it is tried again")
    PROPOSER_MISSING = Entry(
        3045, "proposer-missing", "ProposerMissing", "give the GitSource spec.proposer, and spec.ref.branch"
    )
    CHANGE_INVALID = Entry(3046, "change-invalid", "ChangeInvalid", "correct the change of the Proposal")

    # 305x: text in Git that a proposal or a command edits
    SPLICE_REFUSED = Entry(3050, "splice-refused", "SpliceRefused", "make the change that the message names by hand")
    VALUES_REFUSED = Entry(3051, "values-refused", "ValuesRefused", "set the values that the message names by hand")

    # 40xx: machines
    MACHINE_UNREACHABLE = Entry(
        4001, "machine-unreachable", "MachineUnreachable", "make its address reachable from the worker, or correct it"
    )
    MACHINE_CERTIFICATE_REFUSED = Entry(
        4002,
        "machine-certificate-refused",
        "MachineCertificateRefused",
        "put a talosconfig of this cluster, with a valid client certificate, into the Secret",
    )
    MACHINE_NOT_AUTHORISED = Entry(
        4003, "machine-not-authorised", "MachineNotAuthorised", "use a talosconfig with the role os:admin"
    )
    WRONG_MACHINE = Entry(
        4004, "wrong-machine", "WrongMachine", "correct spec.address, spec.nodeName or spec.role of the TalosMachine"
    )
    MACHINE_ANSWER_UNUSABLE = Entry(
        4005, "machine-answer-unusable", "MachineAnswerUnusable", "look at what answers at the address of the machine"
    )
    MACHINE_CONFIG_REFUSED = Entry(
        4006, "machine-config-refused", "MachineConfigRefused", "correct the configuration as the machine says"
    )
    MACHINE_CONFIG_UNREADABLE = Entry(
        4007, "machine-config-unreadable", "MachineConfigUnreadable", "change the configuration as the message says"
    )
    MACHINE_REPLY_LOST = Entry(
        4008, "machine-reply-lost", "MachineReplyLost", "nothing: the configuration is read back"
    )
    TALOSCONFIG_INVALID = Entry(
        4009, "talosconfig-invalid", "TalosconfigInvalid", "write the file anew, with `talosctl config new`"
    )
    PROXY_IMAGE_UNKNOWN = Entry(
        4010, "proxy-image-unknown", "ProxyImageUnknown", "set spec.cni.proxyImage of the TalosCluster"
    )
    CREDENTIAL_NOT_MOUNTED = Entry(
        4011, "credential-not-mounted", "CredentialNotMounted", "mount the Secret into the cluster worker, read-only"
    )

    # 410x: NETCONF of network devices
    NETCONF_UNAVAILABLE = Entry(
        4101, "netconf-unavailable", "NetconfUnavailable", "make the NETCONF port reachable, or correct its address"
    )
    HOST_KEYS_INVALID = Entry(
        4102, "host-keys-invalid", "HostKeysInvalid", "put the host key into known_hosts of the credential Secret"
    )
    DEVICE_HOST_KEY_REFUSED = Entry(
        4103, "device-host-key-refused", "DeviceHostKeyRefused", "find out why the key is another one"
    )
    DEVICE_CREDENTIAL_REFUSED = Entry(
        4104, "device-credential-refused", "DeviceCredentialRefused", "correct the credential Secret"
    )
    NETCONF_REPLY_LOST = Entry(4105, "netconf-reply-lost", "NetconfReplyLost", "nothing: the device is looked at again")
    NETCONF_REFUSED = Entry(4106, "netconf-refused", "NetconfRefused", "do what the device says")
    NETCONF_ANSWER_UNUSABLE = Entry(
        4107, "netconf-answer-unusable", "NetconfAnswerUnusable", "look at what answers at the address of the device"
    )
    DEVICE_CREDENTIAL_INVALID = Entry(
        4108, "device-credential-invalid", "DeviceCredentialInvalid", "correct the credential Secret"
    )
    DEVICE_CHASSIS_DIFFERS = Entry(
        4109,
        "device-chassis-differs",
        "PhysicalIdentityMismatch",
        "correct spec.address, or declare the new chassis as a new CiscoDevice",
    )

    # 411x: the claim journal of the device worker
    JOURNAL_UNAVAILABLE = Entry(
        4110, "journal-unavailable", "JournalUnavailable", "free the disk under --journal-dir, or make it writable"
    )
    CLAIM_HISTORY_LOST = Entry(
        4111, "claim-history-lost", "ClaimHistoryLost", "bring the journal back, or attest the open upgrade"
    )

    # 412x: gNOI of network devices
    GNOI_UNAVAILABLE = Entry(
        4120,
        "gnoi-unavailable",
        "GnoiUnavailable",
        "make the gNOI port of the device reachable from the worker, or correct spec.address and spec.gnoi.port",
    )
    GNOI_TLS_REFUSED = Entry(
        4121,
        "gnoi-tls-refused",
        "GnoiUnavailable",
        "correct the certificates as the message says: those of the device, or those in the Secret of spec.gnoi.tls",
    )
    GNOI_NOT_AUTHORISED = Entry(
        4122,
        "gnoi-not-authorised",
        "GnoiUnavailable",
        "correct username and password in the credential Secret, or allow gNOI for the account",
    )
    GNOI_UNSUPPORTED = Entry(
        4123, "gnoi-unsupported", "GnoiUnavailable", "use a release of the device's software that offers this service"
    )
    GNOI_NOT_PROVISIONED = Entry(
        4124, "gnoi-not-provisioned", "NotProvisioned", "give the device its gNOI certificate by hand"
    )
    GNOI_ANSWER_UNUSABLE = Entry(
        4125, "gnoi-answer-unusable", "GnoiUnavailable", "look at what answers at the address of the device"
    )
    GNOI_MATERIAL_INVALID = Entry(
        4126,
        "gnoi-material-invalid",
        "GnoiMaterialInvalid",
        "put ca.crt, and tls.crt with tls.key or neither of them, as PEM into the Secret of spec.gnoi.tls",
    )

    # 413x: images of network devices, and the spool of the worker
    IMAGE_URL_REFUSED = Entry(
        4130, "image-url-refused", "SourceUnreachable", "write https://HOST/FILE or sftp://HOST/FILE and nothing more"
    )
    IMAGE_ADDRESS_REFUSED = Entry(
        4131,
        "image-address-refused",
        "SourceUnreachable",
        "use a server with public addresses, or start the worker with --image-source-allow and the network of the server",
    )
    IMAGE_SOURCE_UNREACHABLE = Entry(
        4132, "image-source-unreachable", "SourceUnreachable", "make the image server reachable from the worker"
    )
    IMAGE_SOURCE_REFUSED = Entry(
        4133, "image-source-refused", "SourceUnreachable", "correct the URL, the server or the credential"
    )
    IMAGE_CREDENTIAL_INVALID = Entry(
        4134, "image-credential-invalid", "SourceUnreachable", "correct the Secret that urlSecretRef names"
    )
    IMAGE_DIGEST_MISMATCH = Entry(
        4135,
        "image-digest-mismatch",
        "SourceDigestMismatch",
        "correct the digest in the plan, or what the server delivers",
    )
    SPOOL_FULL = Entry(
        4136, "spool-full", "SpoolFull", "raise --spool-limit, or give the directory of --spool-dir more room"
    )
    WORKER_WITHOUT_POD = Entry(
        4140,
        "worker-without-pod",
        "WorkerWithoutPod",
        "start the worker as a Pod, or with a token that is bound to one",
    )

    # 90xx: ours, and the local system
    INTERNAL = Entry(9001, "internal", "InternalError", "report it with the log lines of this reconcile")
    USAGE = Entry(9002, "usage", "Usage", "see --help")
    TOOL_MISSING = Entry(9003, "tool-missing", "ToolMissing", "install it with the command that the message names")
    DISK_SHORT = Entry(9004, "disk-short", "DiskShort", "free disk space")
    MEMORY_SHORT = Entry(9005, "memory-short", "MemoryShort", "free memory")
    LOCAL_SYSTEM = Entry(9006, "local-system", "LocalSystem", "see the log file that the message names")
    LOCAL_BUSY = Entry(9007, "local-busy", "LocalBusy", "wait for the other process")

    @property
    def label(self) -> str:
        """`GC1003`."""
        return f"GC{self.value.number}"

    @property
    def slug(self) -> str:
        return self.value.slug

    @property
    def reason(self) -> str:
        return self.value.reason

    @property
    def fix(self) -> str:
        return self.value.fix
