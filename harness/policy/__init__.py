"""Policy: which calls may run, which may not, and who is asked (pure).

Two sorts of rules, matched in opposite spirit: an allow rule matches only what it surely means, a deny or ask rule
matches whatever may be meant.
"""

from harness.policy.answers import answer_of
from harness.policy.call import Place, PolicyCall
from harness.policy.decision import Allowed, Asked, Changed, Denied, Hook, Policy, Ruling, RulingBy, Verdict, decide
from harness.policy.delegation import DELEGATED_FORMS, Form, delegated, narrowed
from harness.policy.file_form import policy_of
from harness.policy.layers import RESTRICTIVE, Layer, layered
from harness.policy.text_form import call_of_text, call_text, main_argument, rule_of_text, rule_text

__all__ = [
    "DELEGATED_FORMS",
    "RESTRICTIVE",
    "Allowed",
    "Asked",
    "Changed",
    "Denied",
    "Form",
    "Hook",
    "Layer",
    "Place",
    "Policy",
    "PolicyCall",
    "Ruling",
    "RulingBy",
    "Verdict",
    "answer_of",
    "call_of_text",
    "call_text",
    "decide",
    "delegated",
    "layered",
    "main_argument",
    "narrowed",
    "policy_of",
    "rule_of_text",
    "rule_text",
]
