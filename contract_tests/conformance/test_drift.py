"""What a peer does otherwise than recorded, in words."""

from contract_tests.requirements import requirement
from harness.testing.drift import changes


@requirement("conformance:drift")
def test_what_changed_is_told_in_words() -> None:
    usual = ['{"kind": "notice", "code": "a", "text": "x"}', '{"kind": "turn_ended", "status": "completed"}']
    assert changes(usual, usual) == []
    assert changes(usual, usual[1:]) == ['no longer sends notice {"code": "a", "text": "x"}']
    assert changes(usual[1:], usual) == ['now sends notice {"code": "a", "text": "x"}']
    failed = [usual[0], '{"kind": "turn_ended", "status": "failed"}']
    assert changes(usual, failed) == ['turn ended: status was "completed", is "failed"']
