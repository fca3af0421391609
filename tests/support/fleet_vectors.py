"""The published hash vectors of rollouts: exact inputs, and the objects that they come from."""

import json
from pathlib import Path

VECTORS = Path(__file__).parents[1] / "vectors" / "rollouts"


def vector(name):
    """One file, members in their order."""
    return json.loads((VECTORS / f"{name}.json").read_text())


def published_hash(name):
    """The hash with its prefix, which some object of the vector's source carries."""
    return f"sha256:{vector(name)['sha256']}"


def policy_text():
    """The text of `policy.json` as it was published."""
    return vector("policy-semantic-hash")["derived_from"]["data"]["policy.json"]
