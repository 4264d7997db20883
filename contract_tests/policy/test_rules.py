"""What a rule matches: an allow rule only what it surely means, a deny rule whatever may be meant."""

import json
import os
from pathlib import Path

import anyio
import pytest

from contract_tests.requirements import requirement
from harness.contract import ArgumentPattern, PolicyRule
from harness.errors import InvalidArgument
from harness.policy import Place, PolicyCall, call_of_text, rule_of_text, rule_text
from harness.policy.rules import allows, concerns

PLACE = Place("/home/me/project", home="/home/me", resolve=lambda path: os.path.normpath(path))


def allowed(rule: str, call: str, place: Place = PLACE) -> bool:
    return allows(rule_of_text(rule), call_of_text(call), place)


def meant(rule: str, call: str, place: Place = PLACE) -> bool:
    return concerns(rule_of_text(rule), call_of_text(call), place)


def bash(command: str) -> PolicyCall:
    return PolicyCall("Bash", json.dumps({"command": command}))


@requirement("policy:commands")
@pytest.mark.parametrize(
    "command",
    ["git diff", "git diff HEAD", "git diff -- 'a;b'", "git diff --stat *.py", 'git diff "a b"', "git diff ~/x"],
)
def test_wildcard_takes_the_arguments_of_one_plain_command(command: str) -> None:
    assert allowed("Bash(git diff *)", f"Bash({command})")


@requirement("policy:commands")
@pytest.mark.parametrize(
    "command",
    [
        "git difftool",
        "git  diff x",
        "git diff x; rm y",
        "git diff x && rm y",
        "git diff x || rm y",
        "git diff x | sh",
        "git diff x & rm y",
        "git diff x\nrm y",
        "git diff x\rrm y",
        "git diff $(rm y)",
        "git diff `rm y`",
        'git diff "$(rm y)"',
        "git diff ${x@P}",
        "git diff $'\\n'rm",
        "git diff <(rm y)",
        "git diff > y",
        "git diff 2>&1",
        "git diff \\\nrm",
        "git diff 'x' # y",
        "git diff {a,b}",
        "git diff 'x",
        "git diff !!",
        "PAGER=rm git diff",
        "git diff x\u00a0y",
        "git diff \u202ex",
        "git diff x\u2028rm y",
        " git diff x",
        "git diff x ",
        "git\tdiff x",
    ],
)
def test_wildcard_takes_nothing_else(command: str) -> None:
    assert not allows(rule_of_text("Bash(git diff *)"), bash(command), PLACE)


@requirement("policy:commands")
def test_command_that_is_written_out_is_that_command_whatever_it_is() -> None:
    assert allowed("Bash(make && make test)", "Bash(make && make test)")
    assert not allowed("Bash(make && make test)", "Bash(make && make test2)")


@requirement("policy:commands")
def test_rule_that_leaves_the_program_open_allows_nothing() -> None:
    assert not allowed("Bash(* --version)", "Bash(rm --version)")


@requirement("policy:commands")
def test_argument_list_is_the_command_line_it_stands_for() -> None:
    rule = PolicyRule(tool="shell", arguments=[ArgumentPattern(name="command", pattern="git diff *")])
    said = [["git", "diff", "x"], ["bash", "-lc", "git diff x"], ["bash", "-lc", "git diff x; rm y"], ["git", "diff x"]]
    calls = [PolicyCall("shell", json.dumps({"command": words})) for words in said]
    assert [allows(rule, call, PLACE) for call in calls] == [True, True, False, False]


@requirement("policy:commands:deny")
@pytest.mark.parametrize(
    "command",
    [
        "rm",
        "rm -rf x",
        "ls; rm x",
        "ls && rm x",
        "ls | xargs rm",
        "ls\nrm x",
        "(rm x)",
        "{ rm x; }",
        "sudo -u me rm x",
        "env A=1 rm x",
        "A=1 B='2' rm x",
        "/bin/rm x",
        "'rm' x",
        'r"m" x',
        "\\rm x",
        "RM x",
        "$(rm x)",
        "`rm x`",
        "bash -c 'rm x'",
        "> y rm x",
        "2>&1 rm x",
        "if true; then rm x; fi",
        "! rm x",
        "find . -exec rm {} +",
        "timeout 5 nice rm x",
        "  rm   x",
    ],
)
def test_denied_command_is_found_in_a_line(command: str) -> None:
    assert concerns(rule_of_text("Bash(rm *)"), bash(command), PLACE)


@requirement("policy:commands:deny")
@pytest.mark.parametrize("command", ["rmdir x", "echo rm x", "git rm x", "ls", "cat rm.txt"])
def test_denied_command_is_not_seen_where_it_is_not(command: str) -> None:
    assert not concerns(rule_of_text("Bash(rm *)"), bash(command), PLACE)


@requirement("policy:commands:deny")
async def test_huge_commands_cost_no_more_than_their_length() -> None:
    huge = ("sudo " + "a " * 100_000, "1" * 1_000_000, "sh -c '" + "rm;" * 100_000, "a" * 1_000_000)
    with anyio.fail_after(20):
        for command in huge:
            concerns(rule_of_text("Bash(x * y * z *)"), bash(command), PLACE)
            allows(rule_of_text("Bash(a * y * z *)"), bash(command), PLACE)


@requirement("policy:paths")
def test_paths_follow_links_both_ways(tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / "src").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    (work / "src" / "out").symlink_to(tmp_path / "outside")
    (tmp_path / "alias").symlink_to(work)
    place = Place(str(tmp_path / "alias"), resolve=os.path.realpath)
    assert allowed("Edit(src/**)", "Edit(src/a/b.py)", place)
    assert allowed("Edit(src/**)", f"Edit({tmp_path}/alias/src/a.py)", place)
    assert not allowed("Edit(src/**)", "Edit(src/out/a.py)", place)
    assert meant(f"Edit({tmp_path}/outside/**)", "Edit(src/out/a.py)", place)
    assert meant("Edit(!./**)", "Edit(src/out/a.py)", place)
    assert not meant("Edit(!./**)", "Edit(src/a.py)", place)


@requirement("policy:paths")
@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("./**", "a", True),
        ("./**", ".", True),
        ("./**", "../a", False),
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/deep/a.py", False),
        ("src/**/*.py", "src/deep/er/a.py", True),
        ("src/**", "srcs/a", False),
        ("src/**", "src", True),
        ("src/**", "SRC/a", False),
        ("~/notes/**", "/home/me/notes/a", True),
        ("~/notes/**", "~/notes/a", False),
        ("/etc/*", "/etc/hosts", True),
        ("//etc/*", "/etc/hosts", True),
        ("/etc/*", "/etc/ssh/config", False),
        ("./**", "a\\b", False),
        ("./**", "file:///etc/passwd", False),
        ("./**", "a\x00b", False),
        ("./**", "a ", False),
        ("!./**", "/tmp/x", True),
        ("!./**", "a", False),
        ("src/a?.py", "src/ab.py", True),
    ],
)
def test_allowed_paths(pattern: str, path: str, fits: bool) -> None:
    call = PolicyCall("Edit", json.dumps({"file_path": path}))
    assert allows(rule_of_text(f"Edit({pattern})"), call, PLACE) is fits


@requirement("policy:paths")
@pytest.mark.parametrize(
    ("pattern", "path", "is_meant"),
    [
        (".env", ".env", True),
        (".env", "deep/er/.ENV", True),
        (".env", "/elsewhere/.env", True),
        ("~/.ssh/**", "~/.ssh/id", True),
        ("~/.ssh/**", "/home/me/.ssh/id", True),
        ("~/.ssh/**", "../.ssh/id", True),
        ("/etc/**", "/ETC/passwd", True),
        ("src/**", "src\\a", True),
        ("src/**", "lib/a", False),
        ("!./**", "~/x", True),
        ("!./**", "PROJECT/../../x", True),
    ],
)
def test_denied_paths(pattern: str, path: str, is_meant: bool) -> None:
    call = PolicyCall("Read", json.dumps({"file_path": path}))
    assert concerns(rule_of_text(f"Read({pattern})"), call, PLACE) is is_meant


@requirement("policy:paths")
def test_path_rules_allow_nothing_where_links_cannot_be_followed() -> None:
    elsewhere = Place("/home/me/project")
    assert not allowed("Edit(src/**)", "Edit(src/a)", elsewhere)
    assert meant("Edit(src/**)", "Edit(src/a)", elsewhere)


@requirement("policy:paths")
def test_search_may_not_lead_out_of_the_directory_it_names() -> None:
    inside = PolicyCall("Glob", json.dumps({"pattern": "**/*.py"}))
    outside = [PolicyCall("Glob", json.dumps({"pattern": one})) for one in ("../**", "/etc/*", "~/*")]
    rule = rule_of_text("Glob(./**)")
    assert allows(rule, inside, PLACE)
    assert not any(allows(rule, call, PLACE) for call in outside)


@requirement("policy:paths")
def test_directory_with_wildcards_in_its_name_is_just_that_directory() -> None:
    place = Place("/data/a*b", resolve=os.path.normpath)
    assert allowed("Edit(src/**)", "Edit(src/a)", place)
    assert not allowed("Edit(src/**)", "Edit(/data/axb/src/a)", place)


@requirement("policy:urls")
@pytest.mark.parametrize(
    ("url", "fits"),
    [
        ("https://example.org", True),
        ("https://example.org/a?b#c", True),
        ("http://example.org:80/", True),
        ("https://EXAMPLE.org/", True),
        ("https://example.org:8443/", False),
        ("https://example.org.evil.net/", False),
        ("https://evil.net/example.org", False),
        ("https://user@example.org/", False),
        ("https://example.org@evil.net/", False),
        ("https://evil.net\\@example.org/", False),
        ("https:/example.org/", False),
        ("//example.org/", False),
        ("ftp://example.org/", False),
        ("https://sub.example.org/", False),
        ("https://example.org./", False),
        ("https://ex\u0430mple.org/", False),
        ("https://example.org /", False),
        ("https://example.org\t/", False),
    ],
)
def test_allowed_urls(url: str, fits: bool) -> None:
    call = PolicyCall("WebFetch", json.dumps({"url": url}))
    assert allows(rule_of_text("WebFetch(domain:example.org)"), call, PLACE) is fits


@requirement("policy:urls")
@pytest.mark.parametrize(
    "url",
    [
        "https://evil.net",
        "https://EVIL.net./x",
        "https://user@evil.net",
        "https://good.org\\@evil.net",
        "https:\\\\evil.net",
        "https://evil.net%2f@good.org",
        "https://e%76il.net",
        "https://evil\u3002net/",
        "evil.net",
        "https://ev\til.net",
    ],
)
def test_denied_urls(url: str) -> None:
    call = PolicyCall("WebFetch", json.dumps({"url": url}))
    assert concerns(rule_of_text("WebFetch(domain:evil.net)"), call, PLACE)
    assert not concerns(rule_of_text("WebFetch(domain:other.net)"), call, PLACE)


@requirement("policy:urls")
def test_subdomains_are_not_the_domain() -> None:
    below = "WebFetch(domain:*.example.org)"
    assert allowed(below, "WebFetch(https://a.b.example.org/)")
    assert not allowed(below, "WebFetch(https://example.org/)")
    assert not allowed(below, "WebFetch(https://badexample.org/)")


@requirement("policy:unreadable")
@pytest.mark.parametrize(
    "text", ['{"command": "ls", "command": "rm x"}', "not json", '["ls"]', "null", "[" * 100_000, '{"command": 3}']
)
def test_unreadable_arguments_are_never_allowed_by_what_they_say(text: str) -> None:
    assert not allows(rule_of_text("Bash(ls)"), PolicyCall("Bash", text), PLACE)


@requirement("policy:unreadable")
def test_unreadable_arguments_are_meant_by_every_rule_about_the_tool() -> None:
    call = PolicyCall("Bash", '{"command": "ls", "command": "rm x"}')
    assert concerns(rule_of_text("Bash(git push)"), call, PLACE)
    assert not concerns(rule_of_text("Edit(.env)"), call, PLACE)


@requirement("policy:order")
def test_tools_match_by_glob() -> None:
    assert allowed("mcp__github__*", "mcp__github__get_issue")
    assert not allowed("mcp__github__*", "mcp__gitlab__get_issue")
    assert not allowed("bash", "Bash(ls)")
    assert meant("bash", "Bash(ls)")


@requirement("policy:order")
def test_other_arguments_match_as_texts() -> None:
    assert allowed("look_up(city=Os*)", '{"tool": "look_up", "arguments": {"city": "Oslo"}}')
    assert not allowed("look_up(city=Os*)", '{"tool": "look_up", "arguments": {"town": "Oslo"}}')
    assert allowed("roll(sides=6)", '{"tool": "roll", "arguments": {"sides": 6}}')


@requirement("policy:text-form")
@pytest.mark.parametrize(
    "text",
    [
        "Bash",
        "mcp__git__*",
        "Bash(git diff *)",
        "Bash(git commit -m 'a (b)')",
        "Edit(src/**)",
        "Read(!./**)",
        "WebFetch(domain:*.example.org)",
        "look_up(city=Oslo)",
    ],
)
def test_short_form_is_read_and_written_without_a_change(text: str) -> None:
    assert rule_text(rule_of_text(text)) == text


@requirement("policy:text-form")
def test_other_spellings_are_understood() -> None:
    assert rule_of_text("Bash(git diff:*)") == rule_of_text("Bash(git diff *)")
    assert rule_of_text("Bash(*)") == rule_of_text("Bash") == PolicyRule(tool="Bash")
    assert rule_of_text(" Bash(ls) ") == rule_of_text("Bash(ls)")


@requirement("policy:text-form")
@pytest.mark.parametrize("text", ["", "Bash(", "Bash()", "Bash ls", "(ls)", "look_up(Oslo)", "Bash(ls) x"])
def test_what_is_no_rule_is_refused_with_what_would_be_one(text: str) -> None:
    with pytest.raises(InvalidArgument, match=r"write|say which"):
        rule_of_text(text)
