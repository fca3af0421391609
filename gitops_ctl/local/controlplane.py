"""A real Kubernetes control plane made of processes on the loopback address.

etcd accepts only clients with a certificate of its own authority, the API server refuses anonymous requests, and everything
dies with this process.  Ready means that `/readyz` answers 200 and, with the controller-manager, that the namespace `default` has
its service account: before that a namespace that was just created cannot run or terminate anything.
"""

import asyncio
import ssl
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import yaml

from gitops_ctl.core.clock import Clock, SystemClock
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import TerminalError
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.local.binaries import Binaries
from gitops_ctl.local.certificates import Authority, service_account_key, write_kubeconfig, write_private
from gitops_ctl.local.kwok import Kwok, kwok_argv, node_named
from gitops_ctl.local.ports import LOOPBACK, pick_ports
from gitops_ctl.local.state import SystemFolder
from gitops_ctl.local.supervise import Exit, Family, ProcessSpec

_START_ATTEMPTS = 5
_PROBE_INTERVAL_S = 0.1
_PORT_TAKEN = "address already in use"

_FEWER_COLLECTIONS = {"GOGC": "400", "GOMEMLIMIT": "1500MiB"}
"""Its heap is small beside the memory of a machine: a sixth less CPU for some hundred MiB, and never past the limit by choice."""


@dataclass(frozen=True, slots=True)
class Options:
    """How to run it.

    Attributes:
        audit: write each request to `logs/audit.log`, metadata only.
        durable: let etcd wait for the disk; without it a power failure may lose data, a kill does not.
        controllers: run controller-manager and scheduler; without them nothing is collected and no Pod is placed.
        nodes: how many Nodes kwok plays; needs `kwok`.
        node_names: names of the first of them; the others are called `node-0` and so on.
        service_range: addresses of Services.
        event_ttl: how long Events are kept.
        start_timeout_s: how long the whole start may take.
    """

    audit: bool = False
    durable: bool = True
    controllers: bool = True
    nodes: int = 0
    node_names: tuple[str, ...] = ()
    service_range: str = "10.0.0.0/24"
    event_ttl: str = "1h"
    start_timeout_s: float = 90.0


class ControlPlane:
    """etcd, kube-apiserver, kube-controller-manager and kube-scheduler in one folder.

    Attributes:
        folder: where data, certificates, kubeconfigs and logs are.
        url: address of the API server; set by `start`.
    """

    def __init__(
        self,
        binaries: Binaries,
        directory: Path,
        *,
        options: Options | None = None,
        kwok: Kwok | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.folder = SystemFolder(directory)
        self.url = ""
        self._binaries = binaries
        self._options = options or Options()
        self._kwok = kwok
        self._clock = clock or SystemClock()
        self._family = Family()

    @property
    def pids(self) -> Mapping[str, int]:
        """Component name to process id."""
        return self._family.pids

    async def start(self) -> Path:
        """Start everything, wait until it is ready, and return the kubeconfig of its administrator.

        Raises:
            TerminalError: a component ended or did not become ready in time (LOCAL_SYSTEM); nothing is left running.
        """
        self.folder.create()
        try:
            async with asyncio.timeout(self._options.start_timeout_s):
                await self._start_store_and_server()
                if self._options.controllers:
                    await self._start_controllers()
                if self._kwok is not None and self._options.nodes:
                    await self._start_nodes(self._kwok)
        except TimeoutError:
            await self.stop()
            raise _failure(
                f"the control plane was not ready within {self._options.start_timeout_s:g} s", self.folder.logs
            ) from None
        except BaseException:
            await self.stop()
            raise
        return self.folder.admin_kubeconfig

    async def first_exit(self) -> Exit:
        """Wait until a component ends; the others still run."""
        return await self._family.first_exit()

    async def stop(self) -> None:
        """End all components, the API server before its store."""
        await self._family.stop()

    def kubeconfig_for(self, name: str, *, user: str, groups: tuple[str, ...] = ()) -> Path:
        """A kubeconfig with a client certificate for another identity, for example that of a service account."""
        return issue_kubeconfig(self.folder, name, server=self.url, user=user, groups=groups, clock=self._clock)

    async def _start_store_and_server(self) -> None:
        ports = self.folder.ports()
        for _ in range(_START_ATTEMPTS):
            ports = pick_ports(3, preferred=ports)
            self.url = f"https://{LOOPBACK}:{ports[2]}"
            admin = self.kubeconfig_for("admin", user="gitops-ctl:admin", groups=("system:masters",))
            await self._family.spawn(self._etcd(ports))
            await self._family.spawn(self._apiserver(ports))
            ended = await self._unless_exit("/readyz", admin)
            if ended is None:
                self.folder.remember_ports(ports)
                return
            await self._family.stop()
            if _PORT_TAKEN not in ended.tail:
                raise _failure(f"{ended.name} {ended.cause}: {ended.tail}", ended.log)
            ports = ()
        raise _failure("no start found its ports free", self.folder.logs)

    async def _start_controllers(self) -> None:
        await self._family.spawn(self._controller_manager())
        await self._family.spawn(self._scheduler())
        path = "/api/v1/namespaces/default/serviceaccounts/default"
        ended = await self._unless_exit(path, self.folder.admin_kubeconfig)
        if ended is not None:
            raise _failure(f"{ended.name} {ended.cause}: {ended.tail}", ended.log)

    async def _start_nodes(self, kwok: Kwok) -> None:
        # Everything: it plays the kubelets of all nodes, and it is no part of what is under test here.
        kubeconfig = self.kubeconfig_for("kwok", user="gitops-ctl:kwok", groups=("system:masters",))
        argv = kwok_argv(kwok, kubeconfig=kubeconfig, config=self.folder.path / "kwok-stages.yaml")
        await self._family.spawn(ProcessSpec("kwok", argv, self.folder.logs / "kwok.log"))
        names = (*self._options.node_names, *(f"node-{number}" for number in range(self._options.nodes)))
        for name in names[: self._options.nodes]:
            await self._create("/api/v1/nodes", node_named(name))

    async def _create(self, path: str, tree: JsonObject) -> None:
        """Create an object as the administrator; one that is there already is kept."""
        import aiohttp  # noqa: PLC0415 - not needed to ask for the help text

        context = client_context(self.folder, self.folder.admin_kubeconfig)
        async with aiohttp.ClientSession() as session, session.post(self.url + path, json=tree, ssl=context) as reply:
            if reply.status not in {201, 409}:
                raise _failure(f"POST {path}: {reply.status} {await reply.text()}", self.folder.logs)

    async def _unless_exit(self, path: str, kubeconfig: Path) -> Exit | None:
        """None as soon as `path` answers 200, else the component that ended first."""
        probe = asyncio.create_task(self._answers(path, client_context(self.folder, kubeconfig)))
        exit_ = asyncio.create_task(self._family.first_exit())
        try:
            await asyncio.wait([probe, exit_], return_when=asyncio.FIRST_COMPLETED)
            return exit_.result() if exit_.done() else None
        finally:
            probe.cancel()
            exit_.cancel()
            await asyncio.gather(probe, exit_, return_exceptions=True)

    async def _answers(self, path: str, context: ssl.SSLContext) -> None:
        import aiohttp  # noqa: PLC0415 - not needed to ask for the help text

        async with aiohttp.ClientSession() as session:
            while True:
                with suppress(aiohttp.ClientError, OSError):
                    async with session.get(self.url + path, ssl=context) as reply:
                        if reply.status == 200:
                            return
                await self._clock.sleep(_PROBE_INTERVAL_S)

    def _etcd(self, ports: tuple[int, ...]) -> ProcessSpec:
        authority = Authority(self.folder.certs, "etcd-ca", clock=self._clock)
        certificate, key = authority.server("etcd")
        client, peer = (f"https://{LOOPBACK}:{port}" for port in ports[:2])
        flags = {
            "name": "local",
            "data-dir": self.folder.etcd,
            "listen-client-urls": client,
            "advertise-client-urls": client,
            "listen-peer-urls": peer,
            "initial-advertise-peer-urls": peer,
            "initial-cluster": f"local={peer}",
            "cert-file": certificate,
            "key-file": key,
            "trusted-ca-file": authority.certificate_path,
            "client-cert-auth": "true",
            "peer-cert-file": certificate,
            "peer-key-file": key,
            "peer-trusted-ca-file": authority.certificate_path,
            "peer-client-cert-auth": "true",
            "quota-backend-bytes": 8 * 1024**3,
            "auto-compaction-retention": "10m",
            "log-level": "warn",
        }
        if not self._options.durable:
            flags["unsafe-no-fsync"] = "true"
        self.folder.etcd.mkdir(exist_ok=True, mode=0o700)
        return self._spec("etcd", self._binaries.etcd, flags)

    def _apiserver(self, ports: tuple[int, ...]) -> ProcessSpec:
        authority = Authority(self.folder.certs, "ca", clock=self._clock)
        certificate, key = authority.server("kube-apiserver")
        etcd_authority = Authority(self.folder.certs, "etcd-ca", clock=self._clock)
        etcd_certificate, etcd_key = etcd_authority.client("etcd-client", user="kube-apiserver")
        signing_key, public_key = service_account_key(self.folder.certs)
        flags = {
            "etcd-servers": f"https://{LOOPBACK}:{ports[0]}",
            "etcd-cafile": etcd_authority.certificate_path,
            "etcd-certfile": etcd_certificate,
            "etcd-keyfile": etcd_key,
            "bind-address": LOOPBACK,
            "secure-port": ports[2],
            "cert-dir": self.folder.certs,
            "client-ca-file": authority.certificate_path,
            "tls-cert-file": certificate,
            "tls-private-key-file": key,
            # Not the address: tokens stay valid when the next start finds another port.
            "service-account-issuer": "https://kubernetes.default.svc",
            "service-account-key-file": public_key,
            "service-account-signing-key-file": signing_key,
            "authorization-mode": "Node,RBAC",
            "enable-admission-plugins": "NodeRestriction",
            "anonymous-auth": "false",
            "profiling": "false",
            "allow-privileged": "true",
            "service-cluster-ip-range": self._options.service_range,
            "endpoint-reconciler-type": "none",
            "event-ttl": self._options.event_ttl,
        }
        spec = self._spec("kube-apiserver", self._binaries.kube_apiserver, flags | self._audit_flags())
        return replace(spec, environment=_FEWER_COLLECTIONS)

    def _audit_flags(self) -> dict[str, object]:
        if not self._options.audit:
            return {}
        policy = self.folder.path / "audit-policy.yaml"
        rules = {
            "apiVersion": "audit.k8s.io/v1",
            "kind": "Policy",
            "omitStages": ["RequestReceived"],
            "rules": [{"level": "Metadata"}],
        }
        write_private(policy, yaml.safe_dump(rules).encode())
        self.folder.logs.mkdir(exist_ok=True)
        return {"audit-policy-file": policy, "audit-log-path": self.folder.logs / "audit.log"}

    def _controller_manager(self) -> ProcessSpec:
        signing_key, _ = service_account_key(self.folder.certs)
        user = "system:kube-controller-manager"
        flags = {
            "kubeconfig": self.kubeconfig_for("kube-controller-manager", user=user),
            "use-service-account-credentials": "true",
            "service-account-private-key-file": signing_key,
            "root-ca-file": self.folder.certs / "ca.crt",
            "controllers": "*,bootstrapsigner,tokencleaner",
            "leader-elect": "false",
            # No port of its own: that it works is seen by what it does.
            "secure-port": 0,
        }
        return self._spec("kube-controller-manager", self._binaries.kube_controller_manager, flags)

    def _scheduler(self) -> ProcessSpec:
        user = "system:kube-scheduler"
        flags = {
            "kubeconfig": self.kubeconfig_for("kube-scheduler", user=user),
            "leader-elect": "false",
            "secure-port": 0,
        }
        return self._spec("kube-scheduler", self._binaries.kube_scheduler, flags)

    def _spec(self, name: str, program: Path, flags: Mapping[str, object]) -> ProcessSpec:
        argv = (str(program), *(f"--{flag}={value}" for flag, value in flags.items()))
        return ProcessSpec(name, argv, self.folder.logs / f"{name}.log")


def issue_kubeconfig(
    folder: SystemFolder, name: str, *, server: str, user: str, groups: tuple[str, ...] = (), clock: Clock
) -> Path:
    """Write `NAME.kubeconfig` with a client certificate for `user` in `groups`; also for a system that another process runs."""
    authority = Authority(folder.certs, "ca", clock=clock)
    certificate, key = authority.client(name, user=user, groups=groups)
    path = folder.path / f"{name}.kubeconfig"
    write_kubeconfig(path, server=server, authority=authority.certificate_path, certificate=certificate, key=key)
    return path


def client_context(folder: SystemFolder, kubeconfig: Path) -> ssl.SSLContext:
    """The TLS context of an identity whose kubeconfig was issued in this folder."""
    context = ssl.create_default_context(cafile=str(folder.certs / "ca.crt"))
    pair = folder.certs / f"{kubeconfig.stem}.crt", folder.certs / f"{kubeconfig.stem}.key"
    context.load_cert_chain(*pair)
    return context


def _failure(message: str, log: Path) -> TerminalError:
    return TerminalError(message, code=ErrorCode.LOCAL_SYSTEM, subject=str(log))
