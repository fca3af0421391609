"""A cluster that only answers lists and reads: enough for commands that look at many kinds and change nothing."""

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

PATHS: Mapping[str, str] = {
    "nodes": "/api/v1/nodes",
    "sources": "/apis/worker.gpustack.ai/v1alpha1/topologysources",
    "features": "/apis/nfd.k8s-sigs.io/v1alpha1/namespaces/gpustack-system/nodefeatures",
    "flavors": "/apis/kueue.x-k8s.io/v1beta2/resourceflavors",
    "topologies": "/apis/kueue.x-k8s.io/v1beta2/topologies",
    "queues": "/apis/kueue.x-k8s.io/v1beta2/clusterqueues",
    "local_queues": "/apis/kueue.x-k8s.io/v1beta2/localqueues",
    "workloads": "/apis/kueue.x-k8s.io/v1beta2/workloads",
}


@contextmanager
def listed_cluster(folder: Path, objects: Mapping[str, Sequence[Any]], *, reads: Mapping[str, Any]) -> Iterator[Path]:
    """Serve `objects` (by the names of `PATHS`; a kind that is left out is not installed); gives a kubeconfig.

    Args:
        reads: single objects by their path.
    """
    lists = {PATHS[name]: items for name, items in objects.items()}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = urlsplit(self.path).path
            if path in lists:
                self._send(200, {"kind": "List", "metadata": {"resourceVersion": "1"}, "items": list(lists[path])})
            elif path in reads:
                self._send(200, reads[path])
            elif path.startswith("/api/v1/"):
                status = {"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404, "details": {}}
                self._send(404, status)
            else:
                self._send(404, "404 page not found\n")

        def log_message(self, *_values: object) -> None:
            return

        def _send(self, code: int, body: object) -> None:
            data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
            self.send_response(code)
            self.send_header("content-type", "text/plain" if isinstance(body, str) else "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield _kubeconfig(folder, f"http://127.0.0.1:{server.server_port}")
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _kubeconfig(folder: Path, url: str) -> Path:
    tree = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "c",
    }
    path = folder / "kubeconfig.json"
    path.write_text(json.dumps(tree))
    return path
