"""The policy of whoever runs the harness: it answers before a host is asked, and never in a host's place otherwise."""

from __future__ import annotations

from harness.contract.requests import HostRequest, HostResponse
from harness.conversation.running_turn import AnswersFirst
from harness.place import place_here
from harness.policy import Policy, PolicyCall, answer_of, decide


def answers_first(policy: Policy, connector: str, cwd: str | None) -> AnswersFirst:
    """What the policy says about a request at once; null where a host is to be asked, or runs the tool."""
    place = place_here(cwd)

    def answer(request: HostRequest) -> HostResponse | None:
        return answer_of(request, decide(policy, PolicyCall.of(request, connector), place))

    return answer
