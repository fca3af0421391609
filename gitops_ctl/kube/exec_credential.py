"""Credentials from an exec plug-in of a kubeconfig (client.authentication.k8s.io).

We run the program ourselves: the client library waits without a limit and blocks when the plug-in fills its error stream.
Only the command line tool may get here; the manager refuses such kubeconfigs.
"""

import asyncio
import contextlib
import json
import os
import signal
from typing import Final

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.conditions import cut
from gitops_ctl.core.errors import BlockedError, Refused
from gitops_ctl.core.jsonvalue import EMPTY, JsonObject, list_at, object_at, objects_at, text_at
from gitops_ctl.core.redact import redact_text

EXEC_LIMIT_S: Final = 30.0
OUTPUT_LIMIT_BYTES: Final = 1024 * 1024


async def run_exec_plugin(spec: JsonObject, *, limit_s: float = EXEC_LIMIT_S) -> JsonObject:
    """The `status` of the ExecCredential that the plug-in prints: `token`, or certificate and key, and when it expires.

    The program runs in a process group of its own, which is killed when the limit is over.

    Raises:
        BlockedError: the program is missing, failed, took longer than `limit_s`, or printed no credential.
        Refused: the section names no command.
    """
    command = [text_at(spec, "command"), *(str(argument) for argument in list_at(spec, "args"))]
    if not command[0]:
        raise Refused("the exec section names no command", code=ErrorCode.CLUSTER_UNREACHABLE)
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            env=_environment(spec),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise _failed(f"{command[0]} cannot be started: {error.strerror}") from error
    try:
        async with asyncio.timeout(limit_s):
            out, err = await process.communicate()
    except TimeoutError as error:
        raise _failed(f"{command[0]} gave no credential within {limit_s:g} s") from error
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
    if process.returncode != 0:
        text = cut(redact_text(err.decode(errors="replace").strip()), limit=300)
        raise _failed(f"{command[0]} ended with {process.returncode}: {text}")
    return _status_of(out, command=command[0], api_version=text_at(spec, "apiVersion"))


def _environment(spec: JsonObject) -> dict[str, str]:
    request = {
        "apiVersion": text_at(spec, "apiVersion"),
        "kind": "ExecCredential",
        "spec": {"interactive": False},
    }
    own = {text_at(item, "name"): text_at(item, "value") for item in objects_at(spec, "env") if text_at(item, "name")}
    return {**os.environ, **own, "KUBERNETES_EXEC_INFO": json.dumps(request)}


def _status_of(out: bytes, *, command: str, api_version: str) -> JsonObject:
    try:
        tree = json.loads(out) if len(out) <= OUTPUT_LIMIT_BYTES else EMPTY
    except ValueError:
        tree = EMPTY
    if not isinstance(tree, dict) or tree.get("kind") != "ExecCredential" or tree.get("apiVersion") != api_version:
        raise _failed(f"{command} printed no ExecCredential of {api_version}")
    status = object_at(tree, "status")
    pair = text_at(status, "clientCertificateData") and text_at(status, "clientKeyData")
    if not text_at(status, "token") and not pair:
        raise _failed(f"{command} printed neither a token nor a certificate with its key")
    return status


def _failed(message: str) -> BlockedError:
    return BlockedError(
        message, code=ErrorCode.CLUSTER_UNREACHABLE, hint="run the plug-in by hand, or use another context"
    )
