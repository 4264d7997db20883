"""How UJMW spells: members in camelCase, operations and enums in PascalCase, all read without regard to case (pure)."""


def camel(name: str) -> str:
    """`call_id_source` as `callIdSource`."""
    head, *others = name.split("_")
    return head + "".join(map(_capitalized, others))


def pascal(name: str) -> str:
    """`awaiting_host` as `AwaitingHost`."""
    return "".join(map(_capitalized, name.split("_")))


def folded(name: str) -> str:
    """What all spellings of a name have in common."""
    return name.replace("_", "").lower()


def _capitalized(word: str) -> str:
    return word[:1].upper() + word[1:]
