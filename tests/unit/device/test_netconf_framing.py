"""Messages cut out of a stream in both framings, within bounds (devices.md, section 6)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitops_ctl.device.netconfframing import Framing, Misframed

TEXTS = st.text(alphabet=st.characters(codec="utf-8", exclude_characters="]"), max_size=60).map(str.strip)


def chunks(text: str, size: int) -> bytes:
    data = text.encode()
    parts = [data[at : at + size] for at in range(0, len(data), size)]
    return b"".join(b"\n#%d\n%s" % (len(part), part) for part in parts) + b"\n##\n"


def pieces(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


def chunked(largest: int = 1000) -> Framing:
    framing = Framing(largest=largest)
    framing.chunked = True
    return framing


@pytest.mark.property
@given(st.lists(TEXTS, max_size=4), st.integers(1, 20))
def test_messages_up_to_the_end_mark_arrive_whole_however_the_stream_is_cut(texts, size):
    framing = Framing()
    found = [
        text for piece in pieces(b"".join(framing.frame(text) for text in texts), size) for text in framing.feed(piece)
    ]
    assert found == texts


@pytest.mark.property
@given(st.lists(TEXTS, max_size=4), st.integers(1, 20), st.integers(1, 20))
def test_chunked_messages_arrive_whole_however_they_and_the_stream_are_cut(texts, chunk, size):
    framing = chunked()
    stream = b"".join(chunks(text, chunk) for text in texts)
    assert [text for piece in pieces(stream, size) for text in framing.feed(piece)] == texts


def test_a_message_is_framed_as_agreed():
    framing = Framing()
    assert framing.frame("<a/>") == b"<a/>]]>]]>"
    framing.chunked = True
    assert framing.frame("<ä/>") == "\n#5\n<ä/>\n##\n".encode()


@pytest.mark.parametrize(
    "stream",
    [
        b"<rpc-reply/>",
        b"\n#0\n",
        b"\n#-1\n",
        b"\n#01\n",
        b"\n#x\n",
        b"\n#99999999999\n",
        b"\n#4\n<a/>x",
        b"\n\n#4\n<a/>",
    ],
)
def test_what_is_no_chunk_ends_the_session(stream):
    with pytest.raises(Misframed):
        chunked().feed(stream)


def test_a_message_over_the_limit_ends_the_session_before_it_is_kept():
    with pytest.raises(Misframed, match="more than 1000 bytes"):
        chunked().feed(b"\n#1001\n")
    with pytest.raises(Misframed, match="more than 1000 bytes"):
        chunked().feed(b"\n#600\n" + b"x" * 600 + b"\n#600\n")
    with pytest.raises(Misframed, match="more than 1000 bytes"):
        Framing(largest=1000).feed(b"x" * 1100)
    with pytest.raises(Misframed, match="more than 1000 bytes"):
        Framing(largest=1000).feed(b"x" * 1001 + b"]]>]]>")


def test_a_message_of_just_the_limit_passes():
    assert chunked().feed(chunks("x" * 1000, 1000)) == ("x" * 1000,)
    assert Framing(largest=1000).feed(b"x" * 1000 + b"]]>]]>") == ("x" * 1000,)


@pytest.mark.parametrize("text", ['<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>', "  <!DOCTYPE a>"])
def test_a_document_type_ends_the_session(text):
    with pytest.raises(Misframed, match="document type"):
        Framing().feed(text.encode() + b"]]>]]>")


def test_what_is_no_utf8_ends_the_session():
    with pytest.raises(Misframed, match="byte 1 is not UTF-8"):
        Framing().feed(b"a\xff]]>]]>")


def test_a_large_reply_in_small_packets_takes_no_longer_than_its_length():
    framing = chunked(largest=8 * 2**20)
    stream = chunks("x" * (4 * 2**20), 4 * 2**20)
    found = [text for piece in pieces(stream, 1400) for text in framing.feed(piece)]
    assert [len(text) for text in found] == [4 * 2**20]
