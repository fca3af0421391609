"""The arithmetic of the benchmarks: ratios, targets and the table; and that what is measured is what it says."""

import json
import os
from pathlib import Path

import pytest

from gitops_ctl.core.jsonvalue import text_at
from gitops_ctl.documents.loader import load
from tools.bench.documents import application, applications, config_map, config_maps, path_of
from tools.bench.figures import Figure, Report, Target, rows_of, table
from tools.bench.process import Audit, cpu_s, rss_mib


def test_a_rate_is_held_against_its_share_of_the_reference() -> None:
    figure = Figure(
        "apply", "objects/s", (700.0, 650.0, 720.0), (1000.0, 1000.0, 1000.0), target=Target(0.6, True, True)
    )
    assert figure.value == 700.0
    assert figure.ratio == pytest.approx(0.7)
    assert figure.met is True
    assert Figure("apply", "objects/s", (500.0,), (1000.0,), target=Target(0.6, True, True)).met is False


def test_less_is_better_where_the_ratio_is_inverse() -> None:
    figure = Figure("forced pass", "s", (0.1,), (2.0,), inverse=True, target=Target(0.3))
    assert figure.ratio == pytest.approx(20.0)
    assert figure.met is True
    assert Figure("forced pass", "s", (0.4,), target=Target(0.3)).met is False


def test_ratios_are_paired_by_round_so_that_a_slow_minute_counts_on_both_sides() -> None:
    figure = Figure("apply", "objects/s", (100.0, 400.0, 800.0), (200.0, 800.0, 1600.0))
    assert figure.ratio == pytest.approx(0.5)


def test_a_figure_without_reference_or_target_says_neither() -> None:
    (row,) = rows_of([Figure("memory", "MiB", (120.0,))])
    assert row == ("memory", "120 MiB", "", "", "", "")
    assert Figure("memory", "MiB", (120.0,)).met is None


def test_the_table_shows_the_spread_and_what_was_missed() -> None:
    text = table(
        [Figure("apply", "objects/s", (500.0, 550.0), (1000.0, 1000.0), "bare loop", target=Target(0.6, True, True))]
    )
    lines = text.splitlines()
    assert len(lines) == 3
    assert "525 objects/s (500 to 550)" in lines[2]
    assert "1000 objects/s, bare loop" in lines[2]
    assert lines[2].endswith("| NO  |")


def test_the_report_can_be_stored() -> None:
    report = Report([Figure("a", "s", (1.0,), (2.0,), target=Target(5, True, True))], {"requests": {"get x": 1}})
    stored = json.loads(json.dumps(report.to_json(), default=str))
    assert stored["figures"][0]["ratio"] == 0.5
    assert stored["figures"][0]["target"] == ">= 5x"
    assert stored["counts"] == {"requests": {"get x": 1}}


def test_the_documents_are_sound_and_each_has_a_path() -> None:
    for name, text in (*config_maps(2), *applications(2)):
        loaded = load(text.encode(), file=name)
        assert loaded.problems == ()
        for document in loaded.documents:
            path = path_of(document.tree, namespace="bench")
            assert path.endswith(f"/{text_at(document.tree, 'metadata', 'name')}")
    assert len(load(application(1).encode(), file="a.yaml").documents) == 4
    assert config_map(1, value="2") != config_map(1)


def test_the_kernel_tells_cpu_and_memory_of_a_process() -> None:
    assert cpu_s(os.getpid()) > 0
    assert 1 < rss_mib(os.getpid()) <= rss_mib(os.getpid(), peak=True)


def test_only_requests_of_the_asked_agent_since_the_mark_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"

    def line(verb: str, agent: str, subresource: str = "") -> str:
        reference = {"resource": "syncs", "subresource": subresource}
        return json.dumps({"verb": verb, "userAgent": agent, "objectRef": reference}) + "\n"

    path.write_text(line("get", "ours/1 (manager)"))
    audit = Audit(path)
    audit.mark()
    with path.open("a") as stream:
        stream.write(line("patch", "ours/1 (manager)", "status") + line("get", "other") + line("get", "ours/1 (bench)"))
        stream.write('{"verb": "half a line')
    assert audit.counts("ours/1 (manager)") == {"patch syncs/status": 1}
