"""The scripted inbox has the gateway's rules of numbers."""

from sdk.conformance.script_inbox import Declined, ScriptInbox, Taken


def test_the_next_number_is_taken_and_a_repeat_is_no_second_one() -> None:
    inbox = ScriptInbox()

    assert inbox.offer("c", 1, {"n": 1}) == Taken(is_repeat=False)
    assert inbox.offer("c", 1, {"n": 1}) == Taken(is_repeat=True)
    assert inbox.payloads() == [{"n": 1}]


def test_the_same_number_with_another_body_is_a_conflict() -> None:
    inbox = ScriptInbox()
    inbox.offer("c", 1, {"n": 1})

    assert inbox.offer("c", 1, {"n": 2}) == Declined("conflict", 2)


def test_a_number_too_far_ahead_is_told_which_comes_next() -> None:
    assert ScriptInbox().offer("c", 2, {}) == Declined("expected", 1)


def test_clients_have_numbers_of_their_own() -> None:
    inbox = ScriptInbox()
    inbox.offer("c", 1, {"n": 1})

    assert inbox.offer("d", 1, {"n": 2}) == Taken(is_repeat=False)
