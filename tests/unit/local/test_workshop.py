"""The checkout of a demo and the people who commit in it."""

from pathlib import Path

from gitops_ctl.local.gitserver import Login
from gitops_ctl.local.workshop import Workshop


def test_what_a_killed_demo_left_behind_is_not_in_the_way(tmp_path: Path) -> None:
    keys = []
    for _ in range(2):
        workshop = Workshop(tmp_path, tmp_path / "ca.crt", Login("owner", "secret"))
        workshop.start("https://git.example.net/network")
        (workshop.checkout / "device.yaml").write_text("kind: CiscoDevice\n")
        assert workshop.commit("A device", author="network-author")
        keys.append(workshop.person("network-author").public_key)
    assert workshop.git("rev-list", "--count", "HEAD").strip() == "1"
    assert keys[0] != keys[1]
