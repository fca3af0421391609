"""An unchanged situation is an unchanged document; a changed word gets a new time."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitops_ctl.core.conditions import MESSAGE_LIMIT, Condition, condition_of, cut, is_true, listed, merge_conditions

NOW = datetime(2026, 11, 1, 8, 0, 0, tzinfo=UTC)
LATER = NOW + timedelta(minutes=5)
CONDITIONS = st.lists(
    st.builds(
        Condition,
        st.sampled_from(("Ready", "Stalled", "Verified")),
        st.sampled_from(("True", "False", "Unknown")),
        st.sampled_from(("Succeeded", "Blocked")),
        st.text(max_size=20),
    ),
    unique_by=lambda condition: condition.type,
)


def merged(previous, *wanted, generation=1, now=NOW):
    return {"conditions": merge_conditions(previous, wanted=wanted, generation=generation, now=now)}


@pytest.mark.property
@given(wanted=CONDITIONS)
def test_the_same_conditions_later_are_the_same_document(wanted):
    first = merged({}, *wanted)
    assert merged(first, *reversed(wanted), now=LATER) == first


@pytest.mark.property
@given(before=CONDITIONS, wanted=CONDITIONS)
def test_only_a_changed_status_word_gets_a_new_time(before, wanted):
    old = merged({}, *before)
    for found in merged(old, *wanted, now=LATER)["conditions"]:
        same = (condition_of(old, found["type"]) or {}).get("status") == found["status"]
        assert found["lastTransitionTime"] == ("2026-11-01T08:00:00Z" if same else "2026-11-01T08:05:00Z")


def test_conditions_are_ordered_by_type_and_unlisted_ones_go():
    status = merged({}, Condition("Stalled", "True", "A"), Condition("Ready", "False", "A"))
    assert [found["type"] for found in status["conditions"]] == ["Ready", "Stalled"]
    assert merged(status, Condition("Ready", "True", "B"))["conditions"][0] == {
        "type": "Ready",
        "status": "True",
        "reason": "B",
        "message": "",
        "observedGeneration": 1,
        "lastTransitionTime": "2026-11-01T08:00:00Z",
    }


def test_reason_message_and_generation_change_without_a_new_time():
    status = merged({}, Condition("Ready", "False", "A", "one"))
    (found,) = merged(status, Condition("Ready", "False", "B", "two"), generation=2, now=LATER)["conditions"]
    assert (found["reason"], found["message"], found["observedGeneration"]) == ("B", "two", 2)
    assert found["lastTransitionTime"] == "2026-11-01T08:00:00Z"


@pytest.mark.parametrize(
    "stored",
    [{"conditions": "none"}, {"conditions": ["Ready", None]}, {"conditions": [{"type": "Ready", "status": "True"}]}],
)
def test_a_damaged_stored_status_does_no_harm(stored):
    assert merged(stored, Condition("Ready", "True", "A"))["conditions"][0]["lastTransitionTime"] == (
        "2026-11-01T08:00:00Z"
    )


def test_a_long_message_is_cut_and_says_so():
    (found,) = merged({}, Condition("Ready", "False", "A", "x" * 3000))["conditions"]
    assert len(found["message"]) == MESSAGE_LIMIT
    assert found["message"].endswith("…")


def test_one_condition_is_found_and_read():
    status = merged({}, Condition("Ready", "True", "A"), Condition("Stalled", "Unknown", "A"))
    assert is_true(status, "Ready")
    assert not is_true(status, "Stalled")
    assert not is_true(status, "Healthy")
    assert condition_of(status, "Healthy") is None


@pytest.mark.property
@given(text=st.text(max_size=30), limit=st.integers(1, 20))
def test_cut_keeps_the_limit_and_the_start(text, limit):
    short = cut(text, limit=limit)
    assert len(short) <= limit
    assert short == text or (short.endswith("…") and text.startswith(short[:-1]))


def test_a_list_names_the_first_and_counts_the_others():
    assert listed([]) == ""
    assert listed(["a", "b"]) == "a, b"
    assert listed([str(n) for n in range(10)]) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9"
    assert listed([str(n) for n in range(12)]) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more"
