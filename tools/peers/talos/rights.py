"""Who may call what, and where a call may go."""

import grpc

from tools.peers.talos.front import Front

ADMIN, OPERATOR, READER = "os:admin", "os:operator", "os:reader"
_READ = {ADMIN, OPERATOR, READER}
ROLES = {
    "ApplyConfiguration": {ADMIN},
    "Kubeconfig": {ADMIN},
    "Rollback": {ADMIN},
    "Version": _READ,
    "Hostname": _READ,
    "ServiceList": _READ,
    "SystemStat": _READ,
    "Get": _READ,
    "List": _READ,
    "Watch": _READ,
}
SENSITIVE = {"MachineConfigs.config.talos.dev"}


async def authorise(front: Front, method: str, context: grpc.aio.ServicerContext) -> set[str]:
    """Roles of the caller; the call ends here when they are not enough, or when it wants to go on to another machine."""
    metadata = context.invocation_metadata() or ()
    nodes = [value for key, value in metadata if key == "node"]
    if len(nodes) > 1:
        await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "node metadata must be single-valued")
    if nodes or any(key == "nodes" for key, _ in metadata):
        await context.abort(grpc.StatusCode.PERMISSION_DENIED, "no request forwarding")
    roles = set(front.roles(context.peer()))
    if not roles & ROLES.get(method, {ADMIN}):
        await context.abort(grpc.StatusCode.PERMISSION_DENIED, "not authorized")
    return roles
