"""No log line carries a credential, whatever field it arrives in."""

import io
import json

import pytest

from gitops_ctl.telemetry.logs import configure_logs, logger

PLANTED = "S3cr3tPlanted0123456789"


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"error": f"cannot fetch https://user:{PLANTED}@git.example.net/a.git"}, id="url"),
        pytest.param({"error": f"Authorization: Bearer {PLANTED}"}, id="bearer"),
        pytest.param({"error": f"password={PLANTED}"}, id="assignment"),
        pytest.param({"request": {"password": PLANTED}}, id="member"),
        pytest.param({"object": {"apiVersion": "v1", "kind": "Secret", "data": {"a": PLANTED}}}, id="secret"),
        pytest.param({"identity": PLANTED.encode()}, id="bytes"),
        pytest.param({"items": [f"token: {PLANTED}"]}, id="list"),
        pytest.param({"error": ValueError(f"token={PLANTED}")}, id="exception"),
    ],
)
def test_H22_a_planted_secret_is_in_no_log_line(fields: dict[str, object]) -> None:
    stream = io.StringIO()
    configure_logs(json_lines=True, stream=stream)
    logger("test").warning("fetch failed", **fields)
    line = stream.getvalue()
    assert PLANTED not in line
    assert json.loads(line)["event"] == "fetch failed"


def test_H22_a_traceback_says_where_and_not_what_the_variables_held() -> None:
    stream = io.StringIO()
    configure_logs(json_lines=True, stream=stream)

    def failing() -> None:
        configuration = f"{PLANTED[:12]}\n{PLANTED[12:]}"
        raise KeyError(len(configuration))

    try:
        failing()
    except KeyError:
        logger("test").exception("a bug")
    line = stream.getvalue()
    assert "failing" in line
    assert PLANTED[:12] not in line
    assert "locals" not in line


def test_a_logger_that_was_made_earlier_writes_as_the_process_is_set_up() -> None:
    stream = io.StringIO()
    early = logger("test")
    configure_logs(json_lines=True, stream=stream)
    early.warning("started", error=f"password={PLANTED}")
    line = json.loads(stream.getvalue())
    assert (line["event"], line["logger"]) == ("started", "test")
    assert PLANTED not in stream.getvalue()
