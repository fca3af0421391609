"""Which addresses are fetched, and how they compare."""

import pytest

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import Refused
from gitops_ctl.git.url import parse_url


@pytest.mark.parametrize(
    ("text", "normalised", "display"),
    [
        ("https://Git.Example.NET:443/net/work.git/", "https://git.example.net/net/work.git", "https://git.example.net/net/work.git"),
        ("https://git.example.net:8443/a", "https://git.example.net:8443/a", "https://git.example.net:8443/a"),
        ("SSH://git@git.example.net/a", "ssh://git@git.example.net/a", "ssh://git.example.net/a"),
        ("ssh://git@[2001:db8::1]:2222/a", "ssh://git@[2001:db8::1]:2222/a", "ssh://[2001:db8::1]:2222/a"),
        ("https://192.0.2.1/~user/a%20b", "https://192.0.2.1/~user/a%20b", "https://192.0.2.1/~user/a%20b"),
    ],
)  # fmt: skip
def test_addresses_of_one_repository_compare_equal_and_show_no_user(text, normalised, display):
    url = parse_url(text)
    assert (url.normalised, url.display, str(url)) == (normalised, display, display)


def test_the_parts_of_an_address():
    url = parse_url("ssh://git@git.example.net:2222/net/work")
    assert (url.scheme, url.user, url.host, url.port, url.path) == ("ssh", "git", "git.example.net", 2222, "/net/work")


def test_a_file_is_allowed_only_where_the_caller_says_so():
    assert parse_url("file:///srv/git/a", allow_file=True).path == "/srv/git/a"
    for text in ("file://host/srv/a", "file://user@/srv/a"):
        with pytest.raises(Refused, match="three slashes"):
            parse_url(text, allow_file=True)
    with pytest.raises(Refused, match="only https"):
        parse_url("file:///srv/git/a")


@pytest.mark.parametrize(
    "text",
    [
        "", "-", "--upload-pack=touch /tmp/x", "--upload-pack=x", "-oProxyCommand=x", "ext::sh -c x", "ext::x", "fd::3",
        "ext://host/a", "git://git.example.net/a", "http://git.example.net/a", "ftp://git.example.net/a", "git+ssh://git@h/a",
        "ssh://-oProxyCommand=x/a", "ssh://git@-oProxyCommand=x/a", "ssh://-x@host/a", "https://-host/a", "https://host",
        "https://host/", "https:///a", "https://host/--upload-pack=x", "https://host/a/-x", "https://host/../a", "https://host/a?b",
        "https://host/a#b", "https://host/a\nb", "https://host/a b", "https://host/%00", "https://host/a%0ab", "https://host/a%2fb",
        "https://host:0/a", "https://host:65536/a", "https://host:-1/a", "https://host:x/a", "https://ho$t/a", "https://[::1/a",
        "ssh://host/a", "https://hôst/a", "https://host/" + "a" * 3000, "/srv/git", "./a", "host/a", "https:/host/a",
    ],
)  # fmt: skip
def test_X13_an_address_that_could_be_an_option_or_a_program_is_refused(text):
    with pytest.raises(Refused) as caught:
        parse_url(text)
    assert caught.value.code is ErrorCode.URL_REFUSED


@pytest.mark.parametrize("text", ["https://user:hunter2@host/a", "https://hunter2@host/a", "ssh://git:hunter2@host/a"])
def test_credentials_in_an_address_are_refused_and_not_repeated(text):
    with pytest.raises(Refused) as caught:
        parse_url(text)
    assert "hunter2" not in caught.value.message + caught.value.subject + caught.value.hint


def test_the_short_form_of_ssh_is_refused_with_the_long_one_as_hint():
    with pytest.raises(Refused) as caught:
        parse_url("git@git.example.net:net/work.git")
    assert "ssh://user@host/path" in caught.value.hint
