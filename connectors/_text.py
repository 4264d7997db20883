"""Text as wires need it: programs in UTF-16 languages cut strings in the middle of a character. Pure."""

REPLACEMENT = "\ufffd"


def has_surrogates(text: str) -> bool:
    """Whether UTF-8 cannot say this text."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def without_surrogates(text: str) -> str:
    """The text with pairs of surrogates joined to their character and single ones replaced by U+FFFD."""
    if not has_surrogates(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def split_before_half_pair(text: str) -> tuple[str, str]:
    """The text, and apart from it a last character that may be the first half of a pair."""
    if text and "\ud800" <= text[-1] <= "\udbff":
        return text[:-1], text[-1]
    return text, ""
