"""The strict parser of commits and tags: what is read, what is refused, and with which words.

In scope: form.  Out of scope: whether a signature is good (trust), trees (test_raw_trees.py).
"""

from datetime import UTC, datetime

import pytest

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import Refused
from gitops_ctl.git.objects import MAX_OBJECT_BYTES, object_id_of, parse_commit, parse_links, parse_tag

TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
FIRST, SECOND, THIRD = "1" * 40, "2" * 40, "3" * 40
PERSON = "Network Author <network-author@example.net> 1767225600 +0100"
SSH = "-----BEGIN SSH SIGNATURE-----\nU1NIU0lH\n-----END SSH SIGNATURE-----\n"
PGP = "-----BEGIN PGP SIGNATURE-----\n\niHUEABYI\n=eoTN\n-----END PGP SIGNATURE-----\n"


def header(name, value):
    return f"{name} " + value.rstrip("\n").replace("\n", "\n ") + "\n"


def a_commit(*, before="", parents=(FIRST,), author=PERSON, committer=PERSON, extra="", message="change\n"):
    lines = [f"tree {TREE}\n", *(f"parent {parent}\n" for parent in parents)]
    return f"{before}{''.join(lines)}author {author}\ncommitter {committer}\n{extra}\n{message}".encode()


def a_tag(*, head=f"object {FIRST}\ntype commit\ntag v1\n", tagger=PERSON, message="release\n", signature=""):
    return f"{head}tagger {tagger}\n\n{message}{signature}".encode()


def commit_of(data):
    return parse_commit(object_id_of("commit", data), data)


def tag_of(data):
    return parse_tag(object_id_of("tag", data), data)


def refusal_of(data, parse=commit_of):
    with pytest.raises(Refused) as caught:
        parse(data)
    return caught.value


def test_a_signed_commit_gives_its_parts_and_the_bytes_that_were_signed():
    unsigned = a_commit(parents=(FIRST, SECOND), message="change\n\nbody\n")
    signed = a_commit(parents=(FIRST, SECOND), extra=header("gpgsig", PGP), message="change\n\nbody\n")
    commit = commit_of(signed)
    assert (commit.tree, commit.parents) == (TREE, (FIRST, SECOND))
    assert (commit.signature, commit.payload, commit.raw) == (PGP.encode(), unsigned, signed)
    assert (commit.subject, commit.committer_name) == ("change", "Network Author")
    assert commit.committer_email == "network-author@example.net"
    assert commit.committer_time == datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("before", "signature", "after"),
    [
        (header("encoding", "ISO-8859-1"), SSH, ""),
        ("", SSH, header("encoding", "UTF-8")),
        (header("mergetag", f"object {SECOND}\ntype commit\ntag v1\ntagger {PERSON}\n\nv1\n{PGP}"), SSH, ""),
        (header("change-id", "zzzz"), PGP + " \n", ""),
        (header("HG:extra", "a:b"), PGP, ""),
    ],
    ids=["encoding first", "encoding last", "signed tag merged", "blank line after the block", "mercurial"],
)
def test_rare_but_honest_headers_stay_in_the_payload(before, signature, after):
    folded = "gpgsig " + signature[:-1].replace("\n", "\n ") + "\n"
    commit = commit_of(a_commit(extra=before + folded + after))
    assert commit.signature == signature.encode()
    assert commit.payload == a_commit(extra=before + after)


def test_an_unsigned_commit_has_no_signature_and_is_its_own_payload():
    data = a_commit(parents=())
    assert (commit_of(data).signature, commit_of(data).payload, commit_of(data).parents) == (None, data, ())


def test_the_encoding_header_decides_how_names_are_read_but_not_the_address():
    data = (
        a_commit(extra=header("encoding", "ISO-8859-1"))
        .replace(b"Network Author", b"Ren\xe9")
        .replace(b"change", b"\xe9t\xe9")
    )
    assert (commit_of(data).author.name, commit_of(data).subject) == ("René", "été")
    hidden = data.replace(b"network-author@", b"\xe9@")
    assert commit_of(hidden).committer_email == "\\xe9@example.net"


def test_an_encoding_that_is_no_plain_text_encoding_is_not_used():
    assert commit_of(a_commit(extra=header("encoding", "rot13"))).subject == "change"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (a_commit(before=f"tree {TREE}\n"), "2 tree headers"),
        (a_commit(extra=f"tree {TREE}\n"), "tree stands twice"),
        (a_commit(extra=f"parent {SECOND}\n"), "parent stands twice"),
        (a_commit(before=f"parent {SECOND}\n"), "not in the order"),
        (a_commit(extra=f"author {PERSON}\n"), "author stands twice"),
        (a_commit(extra=f"committer {PERSON}\n"), "committer stands twice"),
        (a_commit(before=header("gpgsig", SSH)), "not in the order"),
        (a_commit().replace(b"author", header("gpgsig", SSH).encode() + b"author", 1), "not in the order"),
        (a_commit().replace(b"committer", header("gpgsig", SSH).encode() + b"committer", 1), "not in the order"),
        (a_commit(extra=header("gpgsig", SSH) + header("gpgsig", PGP)), "gpgsig stands twice"),
        (a_commit(extra=header("gpgsig-sha256", SSH)), "gpgsig-sha256"),
        (a_commit(extra=header("gpgsig", SSH) + header("gpgsig-sha256", SSH)), "gpgsig-sha256"),
        (a_commit(extra=header("encoding", "UTF-8") * 2), "encoding stands twice"),
        (a_commit(extra=" folded\n"), "is no header"),
        (a_commit(extra="word\n"), "is no header"),
        (a_commit(extra="gpgsig\n " + SSH.replace("\n", "\n ").rstrip(" ")), "is no header"),
    ],
)
def test_X06_headers_that_tools_read_differently_are_refused(data, words):
    error = refusal_of(data)
    assert (error.code, error.reason) == (ErrorCode.MALFORMED_OBJECT, "MalformedObject")
    assert words in error.message


@pytest.mark.parametrize(
    "value",
    [
        "x",
        "-----BEGIN SSH SIGNATURE-----",
        SSH.replace("U1NIU0lH\n", ""),
        "x\n" + SSH,
        SSH + "x",
        SSH.replace("END SSH", "END PGP"),
    ],
    ids=["a word", "only a begin", "empty", "text before", "text after", "other end"],
)
def test_X09_a_gpgsig_header_without_one_signature_block_is_refused(value):
    assert "one armored block" in refusal_of(a_commit(extra=header("gpgsig", value))).message


@pytest.mark.parametrize(
    "value", [PGP + PGP, SSH + PGP, PGP + "\n" + SSH], ids=["two PGP", "SSH and PGP", "with a gap"]
)
def test_X10_two_blocks_in_one_signature_are_refused(value):
    assert "more than one signature block" in refusal_of(a_commit(extra=header("gpgsig", value))).message
    assert "more than one signature block" in refusal_of(a_tag(signature=value), tag_of).message


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (a_commit(parents=(FIRST, SECOND, THIRD)), "3 parents"),
        (a_commit(parents=(FIRST, FIRST)), "both parents"),
        (a_commit(message="a\0b"), "NUL"),
        (a_commit(author="A\0 <a@example.net> 1 +0000"), "NUL"),
        (a_commit(author="A <a@example.net> -5 +0000"), "not as Git writes it"),
        (a_commit(author="A <a@example.net> 05 +0000"), "not as Git writes it"),
        (a_commit(author="A <a@example.net> 5 0000"), "not as Git writes it"),
        (a_commit(author="A <a@<example.net> 5 +0000"), "not as Git writes it"),
        (a_commit(author="A<a@example.net> 5 +0000"), "not as Git writes it"),
        (a_commit(author="A <a@example.net> 999999999999 +0000"), "beyond the year 9999"),
        (a_commit(parents=("A" * 40,)), "not as Git writes it"),
        (b"tree x", "no empty line"),
        (b"", "no empty line"),
        (b"\n\n", "0 tree headers"),
    ],
)
def test_a_commit_of_another_form_is_refused_with_the_reason(data, words):
    assert words in refusal_of(data).message


def test_a_commit_above_64_kib_is_refused_as_too_large():
    data = a_commit(message="x" * MAX_OBJECT_BYTES)
    assert refusal_of(data).code is ErrorCode.OBJECT_TOO_LARGE
    assert commit_of(a_commit(message="x" * (MAX_OBJECT_BYTES - len(a_commit(message=""))))).id


def test_bytes_that_are_not_those_of_the_id_are_refused():
    with pytest.raises(Refused, match="not those of the commit"):
        parse_commit(FIRST, a_commit())


def test_a_tag_gives_its_target_its_name_and_the_bytes_that_were_signed():
    tag = tag_of(a_tag(signature=SSH))
    assert (tag.target, tag.target_kind, tag.name, tag.tagger_email) == (
        FIRST,
        "commit",
        "v1",
        "network-author@example.net",
    )
    assert (tag.signature, tag.payload) == (SSH.encode(), a_tag())
    assert tag_of(a_tag()).signature is None


def test_a_tag_message_may_speak_of_other_blocks_than_signatures():
    tag = tag_of(a_tag(message="-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n", signature=PGP))
    assert tag.signature == PGP.encode()


@pytest.mark.parametrize(
    "data",
    [
        a_tag(head=f"object {FIRST}\nobject {SECOND}\ntype commit\ntag v1\n"),
        a_tag(head=f"type commit\nobject {FIRST}\ntag v1\n"),
        a_tag(head=f"object {FIRST}\ntype wheel\ntag v1\n"),
        a_tag().replace(b"\n\n", b"\n" + header("gpgsig", SSH).encode() + b"\n", 1),
        a_tag().replace(f"tagger {PERSON}\n".encode(), b""),
        a_tag(signature=SSH + "more\n"),
        a_tag(message="a\0b"),
    ],
    ids=["two objects", "order", "unknown kind", "header signature", "no tagger", "text after the signature", "NUL"],
)
def test_a_tag_of_another_form_is_refused(data):
    assert refusal_of(data, tag_of).code is ErrorCode.MALFORMED_OBJECT


def test_links_are_read_from_commits_of_any_form():
    odd = a_commit(parents=(FIRST, SECOND, THIRD), extra=header("gpgsig", "x"))
    assert parse_links(THIRD, odd).parents == (FIRST, SECOND, THIRD)
    assert parse_links(THIRD, odd).time == 1767225600
    assert parse_links(THIRD, f"tree {TREE}\n\n".encode()).parents == ()
    with pytest.raises(Refused):
        parse_links(THIRD, b"parent")
