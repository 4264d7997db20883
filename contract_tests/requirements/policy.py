"""What is promised about policy."""

from contract_tests.requirements.entry import Requirement

POLICY = (
    Requirement(
        "policy:order",
        "Hooks, deny rules, ask rules, mode, allow rules, then somebody is asked: the first that speaks decides.",
        "design 9",
    ),
    Requirement(
        "policy:hooks",
        "A hook denies, asks or changes arguments; its allow never beats a deny or ask rule, its failure denies.",
        "design 9",
    ),
    Requirement("policy:commands", "An allow rule never matches a part of a compound command.", "design 9"),
    Requirement("policy:commands:deny", "A deny rule finds its command wherever it may be run in a line.", "ours"),
    Requirement("policy:paths", "Paths match as they are written and also where their links lead.", "ours"),
    Requirement("policy:urls", "URLs match by host, and only where every client would go to that host.", "ours"),
    Requirement("policy:text-form", "The short form of a rule is read and written without a change.", "contract 2"),
    Requirement(
        "policy:unreadable",
        "Arguments that two readers could read differently are never allowed.",
        "ours",
    ),
    Requirement("policy:files", "What is wrong in a policy names file, key and what was expected.", "contract 7"),
    Requirement("policy:layers", "One layer decides, the deny rules of all stay in force.", "ours"),
    Requirement("policy:house", "A server's own policy answers before a host is asked, and says so.", "contract 3"),
    Requirement(
        "policy:delegation:house", "What a caller delegates never passes by the server's policy.", "contract 1"
    ),
    Requirement("policy:probes", "A fixed table of bypasses is ruled as expected.", "ours"),
    Requirement(
        "policy:probes:verify", "`verify --policy-probes` tries the table on a CLI and names what got past.", "ours"
    ),
    Requirement("policy:probes:report", "docs/policy-probes.md has every probe, and none got past.", "ours"),
    Requirement(
        "policy:delegation:never-wider",
        "A delegated policy allows nothing that the host's policy would not allow.",
        "contract 1",
    ),
)
