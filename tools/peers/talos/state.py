"""What a machine keeps when it is killed: who it is, and its saved configuration.

    {"nodename", "type", "version", "persistent" (base64), "boots", "applies": [...]}

The saved configuration is the one that it boots with: a tried one is gone then, a staged one takes effect.
"""

import base64
import hashlib
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class StateFile:
    """The file of one machine; `applies` lists the configurations that were really taken, the oldest first."""

    path: Path
    nodename: str
    machine_type: str
    version: str
    persistent: bytes
    boots: int = 0
    applies: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def load(cls, path: Path) -> "StateFile":
        tree = json.loads(path.read_text())
        return cls(
            path=path,
            nodename=tree["nodename"],
            machine_type=tree["type"],
            version=tree["version"],
            persistent=base64.b64decode(tree["persistent"]),
            boots=tree.get("boots", 0),
            applies=tree.get("applies", []),
        )

    def save(self) -> None:
        """Replace the file in one step."""
        tree = {
            "nodename": self.nodename,
            "type": self.machine_type,
            "version": self.version,
            "persistent": base64.b64encode(self.persistent).decode(),
            "boots": self.boots,
            "applies": self.applies,
        }
        fresh = self.path.with_suffix(f".{os.getpid()}")
        fresh.write_text(json.dumps(tree))
        fresh.replace(self.path)


def sha256(text: bytes) -> str:
    """As the product writes hashes of configurations."""
    return f"sha256:{hashlib.sha256(text).hexdigest()}"
