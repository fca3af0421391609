"""The entry point: lazy commands, exit codes, errors in one form, start-up time.

Out of scope: what the commands do (their own tests).
"""

import errno
import subprocess
import sys

import click
import pytest

from gitops_ctl.cli import main
from gitops_ctl.cli.complete import candidates
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import NotFound

# What may be imported to answer `--help`: nothing that is slow, nothing of a command.
HEAVY = ("aiohttp", "cryptography", "jsonschema_rs", "kubernetes", "pydantic", "pygit2", "rich", "yaml", "asyncio")


@pytest.fixture
def probe(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command `probe` in this module, whose argument says how it ends."""
    monkeypatch.setattr(main, "COMMANDS", {"probe": (f"{__name__}:probe_command", "Ends as it is told.")})


@click.command()
@click.argument("how")
def probe_command(how: str) -> int | None:
    if how == "missing":
        raise NotFound("the Sync has no GitSource", subject="default/site", hint="create it")
    if how == "bug":
        raise ValueError("unexpected\x1b[31m text")
    if how == "read-only":
        raise OSError(errno.EROFS, "Read-only file system", "/home/somebody/.local")
    if how == "full":
        raise OSError(errno.ENOSPC, "No space left on device")
    if how == "interrupt":
        raise click.Abort
    if how == "pipe":
        raise BrokenPipeError
    return 2 if how == "different" else None


@pytest.mark.usefixtures("probe")
@pytest.mark.parametrize(
    ("how", "code"), [("fine", 0), ("different", 2), ("missing", 1), ("bug", 1), ("interrupt", 130)], ids=str
)
def test_each_end_has_its_exit_code(how: str, code: int) -> None:
    assert main.run(["probe", how]) == code


@pytest.mark.usefixtures("probe")
def test_an_error_is_told_as_code_cause_place_and_hint(capsys: pytest.CaptureFixture[str]) -> None:
    main.run(["probe", "missing"])
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == (
        f"error {ErrorCode.NOT_FOUND.label} not-found\n"
        "  the Sync has no GitSource\n"
        "  place: default/site\n"
        "  hint:  create it\n"
    )


@pytest.mark.usefixtures("probe")
def test_a_bug_is_told_in_the_same_form_and_its_text_cannot_colour_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    main.run(["probe", "bug"])
    text = capsys.readouterr().err
    assert text.startswith("error GC9001 internal\n  ValueError: unexpected [31m text\n  place: ")
    assert "Traceback" not in text
    monkeypatch.setenv("GITOPS_CTL_TRACEBACK", "1")
    main.run(["probe", "bug"])
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said", "hint"),
    [
        (["frobnicate"], "No such command 'frobnicate'.", "gitops-ctl --help"),
        (["up", "--provider", "vm"], "'vm' is not one of 'auto', 'kind', 'processes'", "gitops-ctl up --help"),
    ],
    ids=["command", "option"],
)
def test_a_mistake_in_the_arguments_is_an_error_and_never_the_code_of_a_difference(
    capsys: pytest.CaptureFixture[str], arguments: list[str], said: str, hint: str
) -> None:
    assert main.run(arguments) == 1
    text = capsys.readouterr().err
    assert text.startswith("error GC9002 usage\n")
    assert said in text
    assert f"see `{hint}`" in text


@pytest.mark.usefixtures("probe")
@pytest.mark.parametrize(
    ("how", "code", "said"),
    [
        (
            "read-only",
            ErrorCode.LOCAL_SYSTEM,
            ("Read-only file system", "place: /home/somebody/.local", "XDG_STATE_HOME"),
        ),
        ("full", ErrorCode.DISK_SHORT, ("No space left on device", "free disk space")),
    ],
    ids=["read-only", "full"],
)
def test_a_file_of_the_machine_that_cannot_be_used_is_no_bug_of_ours(
    capsys: pytest.CaptureFixture[str], how: str, code: ErrorCode, said: tuple[str, ...]
) -> None:
    assert main.run(["probe", how]) == 1
    text = capsys.readouterr().err
    assert text.startswith(f"error {code.label} ")
    assert [word for word in said if word not in text] == []


@pytest.mark.parametrize("arguments", [[], ["trust"]], ids=["alone", "group"])
def test_without_a_command_the_help_is_shown_and_no_error_around_it(
    capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    assert main.run(arguments) == 1
    text = capsys.readouterr().err
    assert text.startswith("Usage: gitops-ctl")
    assert "error GC" not in text


def test_every_listed_command_can_be_loaded_and_has_the_name_of_its_entry() -> None:
    context = click.Context(main.cli)
    group = main.LazyGroup()
    names = group.list_commands(context)
    assert {"up", "down", "version", "completion"} <= set(names)
    for name in names:
        command = group.get_command(context, name)
        assert command is not None
        assert command.name == name


def test_help_imports_no_command_and_nothing_slow() -> None:
    script = (
        "import sys; from gitops_ctl.cli.main import run; run(['--help'])\nprint(*sorted(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    modules = done.stderr.split()
    assert "up" in done.stdout
    assert [name for name in modules if name.split(".")[0] in HEAVY] == []
    ours = [name for name in modules if name.startswith("gitops_ctl.cli.")]
    assert ours == ["gitops_ctl.cli.main", "gitops_ctl.cli.output"]


def test_completing_a_command_imports_none() -> None:
    script = (
        "import sys; from gitops_ctl.cli.complete import candidates; print(*candidates(['ver']), sep='\\n')\n"
        "print(*[name for name in sys.modules if name.startswith('gitops_ctl.cli.')], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "version\tPrint the version." in done.stdout.splitlines()
    assert sorted(done.stderr.split()) == ["gitops_ctl.cli.complete", "gitops_ctl.cli.main", "gitops_ctl.cli.output"]


def test_start_up_takes_less_than_150_ms_of_processor_time() -> None:
    script = (
        "import resource; from gitops_ctl.cli.main import run; run(['--help'])\n"
        "import sys; print(resource.getrusage(resource.RUSAGE_SELF).ru_utime, file=sys.stderr)"
    )

    def once() -> float:
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        return float(done.stderr)

    # The best of some runs: what else the machine does is not ours.
    assert min(once() for _ in range(5)) < 0.15


def test_completion_offers_commands_options_and_values() -> None:
    assert any(line.startswith("down\t") for line in candidates(["d"]))
    assert any(line.startswith("--foreground\t") for line in candidates(["up", "--fore"]))
    assert candidates(["up", "--provider", "k"]) == ["kind"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_for_each_shell(capsys: pytest.CaptureFixture[str], shell: str) -> None:
    assert main.run(["completion", shell]) == 0
    assert "_GITOPS_CTL_COMPLETE" in capsys.readouterr().out


def test_kubectl_gets_candidates_and_the_directive_that_forbids_file_names() -> None:
    script = "import sys; sys.argv[1:] = ['vers']; from gitops_ctl.cli.complete import main; main()"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert lines[0].startswith("version\t")
    assert lines[-1] == ":4"
