"""What is promised about the command line."""

from contract_tests.requirements.entry import Requirement

CLI = (
    Requirement("cli:policy:layers", "--policy, else the project's, else the user's policy decides.", "ours"),
    Requirement("cli:policy:trust", "A project's allow rules count once trusted, until they change.", "ours"),
    Requirement("cli:policy:test", "`harness policy test` explains a decision.", "ours"),
    Requirement("cli:config", "One configuration file; what is wrong in it names file, key, expected.", "contract 7"),
    Requirement("cli:requests", "What waits at a server is listed and answered from another process.", "contract 1"),
    Requirement("doctor:finds", "`doctor` tells version, path and login of what is installed.", "ours"),
    Requirement("doctor:remedy", "`doctor` tells what to type for what is missing, with exit code 3.", "ours"),
    Requirement("cli:sessions:list", "`sessions list` tells what the journal has, and `[]` when it is empty.", "ours"),
    Requirement(
        "cli:sessions:private",
        "The journal is the user's alone; a file, the configuration or 'memory' may be named instead.",
        "ours",
    ),
    Requirement(
        "cli:sessions:show",
        "`sessions show` and `export` give a transcript to read, or the items as JSONL.",
        "ours",
    ),
    Requirement("cli:sessions:delete", "`sessions delete` says what it forgot, or why not.", "ours"),
    Requirement("cli:sessions:prune", "`sessions prune` forgets by age and size; `--dry-run` only says what.", "ours"),
    Requirement("cli:sessions:in-use", "What a live process has open is refused, and the process named.", "ours"),
    Requirement("cli:run:continue", "`run --continue` goes on with the latest of this directory.", "ours"),
    Requirement(
        "cli:run:resume",
        "`run --resume` goes on with a conversation, and without a message with the turn that has not ended.",
        "ours",
    ),
    Requirement("cli:run:fork", "`run --fork` goes on in a new conversation, where the peer can.", "ours"),
    Requirement(
        "cli:run:advisor",
        "The advisor that the configuration names is a tool of a run; without one there is none.",
        "issue 8",
    ),
    Requirement(
        "cli:tools",
        "`harness tools` lists and calls the tools of any source without a model.",
        "issue 8",
    ),
    Requirement(
        "cli:run:sources",
        "`harness run` uses MCP servers and services, and says with -v who runs each and why.",
        "issue 8",
    ),
    Requirement(
        "cli:help",
        "Help names every command and shows examples; without a command it is help that is shown.",
        "ours",
    ),
    Requirement(
        "cli:usage",
        "What cannot be used is said in one line with the remedy, never as a stack trace, and exits with 2.",
        "ours",
    ),
    Requirement("cli:values:durations", "Durations are 90s, 10m, 2h or seconds.", "ours"),
    Requirement(
        "cli:values:json-pairs",
        "KEY=VALUE takes JSON values, and text where the value is no JSON.",
        "ours",
    ),
    Requirement("cli:run:prompt", "The prompt is the argument, or stdin.", "ours"),
    Requirement(
        "cli:run:connector-choice",
        "Without a connector the first usable one is taken and named with the reason; none exits with 3.",
        "ours",
    ),
    Requirement(
        "cli:run:json",
        "`--output json` is one object that fits the checked-in schema, also when the run fails.",
        "ours",
    ),
    Requirement(
        "cli:run:jsonl",
        "`--output jsonl` has a line for everything as it happens, from `started` to `finished` or `failed`.",
        "ours",
    ),
    Requirement(
        "cli:run:arguments-cut",
        "Arguments are cut to 300 characters unless `--full`, which also adds results.",
        "ours",
    ),
    Requirement(
        "cli:run:stdout-is-data",
        "stdout has data only, whatever tools and the programs they start print.",
        "ours",
    ),
    Requirement(
        "cli:run:exit-codes",
        "The exit code tells how the turn ended, by the table of the contract.",
        "ours",
    ),
    Requirement("cli:run:tools-file", "A tools file that cannot be used is one line that says where.", "ours"),
    Requirement(
        "cli:run:tool-timeout",
        "A tool that never returns holds up neither the turn nor the end of the command.",
        "ours",
    ),
    Requirement(
        "cli:run:dry-run",
        "A dry run shows connector, command line and tools, and starts nothing.",
        "ours",
    ),
    Requirement(
        "cli:run:interrupt-once",
        "Ctrl-C cancels the turn and prints the error shape; before there is a turn it ends the beginning.",
        "ours",
    ),
    Requirement(
        "cli:run:interrupt-twice",
        "A second Ctrl-C ends everything at once, even while a tool keeps the event loop busy.",
        "ours",
    ),
    Requirement(
        "cli:run:activity",
        "A person sees each call with its arguments, who answered and how long it took.",
        "ours",
    ),
    Requirement(
        "cli:run:approve",
        "Approvals are allowed, denied, or asked for at the terminal, and questions too.",
        "ours",
    ),
    Requirement(
        "cli:run:remote",
        "`--url` does the same job through a server, with the tools on the caller's side.",
        "ours",
    ),
    Requirement(
        "cli:run:claude",
        "The real Claude Code CLI does what the scripts of its model ask for, and the JSON says so.",
        "ours",
    ),
    Requirement(
        "cli:run:claude-broken",
        "A Claude CLI that is missing, ends at once, talks nonsense or is too old is one line with the remedy.",
        "ours",
    ),
    Requirement(
        "cli:terminal:live",
        "On a terminal text streams as it comes, with the activity beside it.",
        "ours",
    ),
    Requirement("cli:terminal:neutral", "Nothing that a model or a tool says is obeyed by the terminal.", "ours"),
    Requirement(
        "cli:terminal:plain",
        "Without a terminal, with --plain or NO_COLOR there are no escape sequences.",
        "ours",
    ),
    Requirement(
        "cli:demo",
        "The demo lets the real CLI call Python tools and quotes what they drew; without the CLI it exits with 3.",
        "ours",
    ),
    Requirement("bench:tools", "`harness bench tools` counts what a model did right, task by task.", "ours"),
)
