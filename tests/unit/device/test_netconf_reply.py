"""What is concluded from a reply (devices.md, sections 6 and 7.1)."""

import pytest

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.device.netconfreply import AnswerUnusable, NetconfRefused, parse_xml, read_reply

BASE = "urn:ietf:params:xml:ns:netconf:base:1.0"
CISCO = "http://cisco.com/ns/yang/Cisco-IOS-XE-native"


def reply(inside: str) -> str:
    return f'<rpc-reply xmlns="{BASE}" message-id="1">{inside}</rpc-reply>'


def error(tag: str, *, severity: str = "error", more: str = "") -> str:
    return f"<rpc-error><error-type>application</error-type><error-tag>{tag}</error-tag>" + (
        f"<error-severity>{severity}</error-severity>{more}</rpc-error>"
    )


def test_ok_is_ok_and_data_is_data():
    assert read_reply(reply("<ok/>")).ok
    found = read_reply(reply("<data><a xmlns='x'/><b xmlns='x'/></data>"))
    assert [tree.tag for tree in found.data] == ["{x}a", "{x}b"]
    assert (found.has_data, found.ok) == (True, False)


def test_empty_data_is_data():
    assert read_reply(reply("<data/>")).has_data


def test_an_empty_reply_proves_nothing():
    with pytest.raises(AnswerUnusable, match="empty") as raised:
        read_reply(reply(""))
    assert raised.value.code is ErrorCode.NETCONF_ANSWER_UNUSABLE


def test_every_error_of_a_reply_is_told():
    more = "<error-path>/native</error-path><error-message xml:lang='en'>no  such\n vlan</error-message>"
    with pytest.raises(NetconfRefused) as raised:
        read_reply(reply(error("invalid-value", more=more) + error("in-use")), subject="switch-17")
    assert [found.tag for found in raised.value.errors] == ["invalid-value", "in-use"]
    assert raised.value.message == "invalid-value; no such vlan; at /native; in-use"
    assert raised.value.subject == "switch-17"


def test_the_answer_of_the_command_parser_is_told():
    info = (
        f"<error-info><severity xmlns='{CISCO}'>critical</severity><bad-cli xmlns='{CISCO}'>"
        "<bad-command>vlan 5000</bad-command><parser-response>Command rejected</parser-response></bad-cli></error-info>"
    )
    with pytest.raises(NetconfRefused, match="vlan 5000: Command rejected"):
        read_reply(reply(error("operation-failed", more=info)))


def test_a_secret_in_a_refused_command_is_not_told():
    more = "<error-message>username admin password 0 Hunter2Hunter2</error-message>"
    with pytest.raises(NetconfRefused) as raised:
        read_reply(reply(error("operation-failed", more=more)))
    assert "Hunter2" not in raised.value.message


def test_warnings_are_no_errors():
    found = read_reply(reply(error("operation-failed", severity="warning") + "<data/>"))
    assert found.has_data
    assert [warning.severity for warning in found.warnings] == ["warning"]


def test_a_reply_with_only_warnings_still_has_to_say_something():
    with pytest.raises(AnswerUnusable):
        read_reply(reply(error("operation-failed", severity="warning")))


def test_a_thousand_errors_are_cut():
    with pytest.raises(NetconfRefused) as raised:
        read_reply(reply(error("in-use") * 1000))
    assert len(raised.value.errors) == 32


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no XML",
        "<rpc-reply",
        reply("<data>&undeclared;</data>"),
        "<hello xmlns='urn:ietf:params:xml:ns:netconf:base:1.0'/>",
        "<rpc-reply><ok/></rpc-reply>",
        reply("<a>" * 300 + "</a>" * 300),
    ],
)
def test_what_is_no_reply_is_unusable(text):
    with pytest.raises(AnswerUnusable):
        read_reply(text)


def test_a_declared_document_type_is_refused_and_no_file_is_read(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("s3cret")
    with pytest.raises(AnswerUnusable) as raised:
        parse_xml(f'<!DOCTYPE a [<!ENTITY b SYSTEM "{secret.as_uri()}">]><a>&b;</a>')
    assert "s3cret" not in str(raised.value)


def test_a_known_secret_is_taken_out_of_errors_and_data_wherever_it_stands():
    secret = "ochre-Lantern"
    more = f"<error-message>bad value {secret}</error-message><error-path>/a[b='{secret}']</error-path>"
    with pytest.raises(NetconfRefused) as raised:
        read_reply(reply(error("in-use", more=more)), known=(secret,))
    assert secret not in raised.value.message
    assert "bad value" in raised.value.message
    found = read_reply(reply(f"<data><a xmlns='x'><name>app {secret}</name></a></data>"), known=(secret,))
    assert secret not in "".join(found.data[0].itertext())
    assert "app" in "".join(found.data[0].itertext())


def test_a_short_secret_is_taken_out_of_texts_for_people_and_leaves_data_alone():
    more = "<error-message>login 17 refused</error-message>"
    with pytest.raises(NetconfRefused) as raised:
        read_reply(reply(error("in-use", more=more)), known=("17",))
    assert "17" not in raised.value.message
    found = read_reply(reply("<data><a xmlns='x'>17.18.03</a></data>"), known=("17",))
    assert found.data[0].text == "17.18.03"
