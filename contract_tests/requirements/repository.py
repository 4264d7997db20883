"""What is promised about the repository itself."""

from contract_tests.requirements.entry import Requirement

REPOSITORY = (
    Requirement(
        "packaging:wheel:three-packages",
        "The wheel holds harness, connectors and bridge_mcp with their data files, and no tests or fixtures.",
        "ours",
    ),
    Requirement(
        "packaging:wheel:runs-alone",
        "The wheel alone in an empty environment gives the command and all three packages; the demo then exits 3 "
        "and names the line that installs the extra.",
        "ours",
    ),
    Requirement(
        "packaging:wheel:demo-with-extra",
        "With the extra 'claude' and nothing else the demo passes.",
        "ours",
    ),
    Requirement(
        "packaging:no-registry-host",
        "No committed file names a package registry: whoever installs chooses where from.",
        "ours",
    ),
    Requirement(
        "layout:public-names-pinned",
        "A public name appears or goes only together with the list that pins it.",
        "ours",
    ),
    Requirement("layout:typed", "Every package tells type checkers that it is typed.", "ours"),
    Requirement(
        "layout:import-rules-cover-every-room",
        "A room of the house that exists is named in the import rules that apply to it.",
        "ours",
    ),
    Requirement("import:cost:harness", "Importing harness loads no pydantic.", "ours"),
    Requirement(
        "import:cost:help",
        "`harness --help` loads neither rich nor pydantic nor a vendor's SDK.",
        "ours",
    ),
)
