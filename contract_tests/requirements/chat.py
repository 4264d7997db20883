"""What is promised about `harness chat`."""

from contract_tests.requirements.entry import Requirement

CHAT = (
    Requirement("chat:messages", "Messages are typed one by one in one conversation, and answers stream.", "issue 9"),
    Requirement("chat:lines", "A message may have several lines.", "issue 9"),
    Requirement("chat:commands", "/help, /tools, /cost, /approve, /model, /info tell and change it.", "issue 9"),
    Requirement("chat:approve", "What the peer asks is asked in the chat, and /approve says who answers.", "issue 9"),
    Requirement("chat:interrupt", "Ctrl-C cancels the answer, twice leaves; Ctrl-D leaves in order.", "issue 9"),
    Requirement("chat:history", "What was typed is kept for the next chat, without secrets.", "issue 9"),
    Requirement("chat:resume", "-c and -r go on with a conversation of before, or its unfinished turn.", "issue 9"),
    Requirement(
        "chat:failures", "A turn that fails ends no chat; one that cannot begin ends with its reason.", "issue 9"
    ),
    Requirement("chat:piped", "Without a terminal each line of stdin is a message, and nobody is asked.", "issue 9"),
    Requirement("chat:claude", "A chat with the real Claude CLI, over two processes.", "issue 9"),
)
