"""A CLI that misbehaves on order: its arguments are steps, done one after the other.

    stderr:N           write N bytes to stderr
    complain:TEXT      write a line to stderr
    say:TEXT           write a line
    line:N             write one line of N bytes: a JSON string with line separators and four-byte characters in it
    half-line          write the beginning of a line and no end
    note:FILE          from now on append what happens to FILE: "sigterm", "eof"
    farewell:N         from now on answer SIGTERM with N bytes of output and exit code 0
    deaf               ignore SIGTERM
    child[:FLAGS]      start a process that sleeps; flags, joined by +: session (setsid), empty (no environment),
                       orphan (its parent is gone); write {"pid": N}
    chain:N            become the outermost of N wrappers around the rest of the steps; each writes {"pid": N}
    close-output       close stdout
    close-input        close stdin
    environment        write the whole environment as JSON
    echo               send every line back, until the end of input
    swallow            read all input, until its end
    flood              write lines as fast as they are taken, for ever
    sleep              do nothing, for ever
    exit:CODE          leave
    die:SIGNAL         be killed

Standard library only, and little of it: tests start many.
"""

import json
import os
import signal
import subprocess
import sys

SLEEPER = [sys.executable, "-I", "-S", "-c", "import signal\nwhile True: signal.pause()"]
ORPHAN_MAKER = (
    "import subprocess, sys\n"
    "print(subprocess.Popen(sys.argv[2:], start_new_session='session' in sys.argv[1], stdout=2).pid)"
)
notes: list[str] = []


def say(text: str) -> None:
    os.write(1, f"{text}\n".encode())


def write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def note(event: str) -> None:
    for file in notes:
        with open(file, "a", encoding="utf-8") as out:  # noqa: PTH123 - pathlib takes longer to import than to use
            out.write(f"{event}\n")


def line_of(size: int) -> bytes:
    pattern = "\u2028\u2029\u0085\U0001f600 x".encode()
    head, tail = b'{"text":"', b'"}'
    inside = size - len(head) - len(tail)
    whole = pattern * (inside // len(pattern))
    return head + whole + b"." * (inside - len(whole)) + tail + b"\n"


def start_child(flags: str) -> None:
    environment = {} if "empty" in flags else None
    if "orphan" in flags:
        maker = [sys.executable, "-I", "-S", "-c", ORPHAN_MAKER, flags, *SLEEPER]
        pid = int(subprocess.run(maker, env=environment, stdout=subprocess.PIPE, check=True).stdout)
    else:
        pid = subprocess.Popen(SLEEPER, env=environment, start_new_session="session" in flags).pid
    say(json.dumps({"pid": pid}))


def become_wrapper(depth: int, steps: list[str]) -> None:
    inner = [f"chain:{depth - 1}", *steps] if depth > 1 else steps
    child = subprocess.Popen([sys.executable, "-I", "-S", __file__, *inner])
    say(json.dumps({"pid": child.pid}))
    sys.exit(child.wait())


def echo() -> None:
    while data := os.read(0, 1 << 20):
        write_all(1, data)
    note("eof")


def on_sigterm(number: int, frame: object) -> None:
    note("sigterm")
    os._exit(143)


def sleep() -> None:
    while True:
        signal.pause()


def do(step: str, rest: list[str]) -> None:
    word, _, value = step.partition(":")
    match word:
        case "stderr":
            write_all(2, (b"y" * 99 + b"\n") * (int(value) // 100))
        case "complain":
            write_all(2, f"{value}\n".encode())
        case "say":
            say(value)
        case "line":
            write_all(1, line_of(int(value)))
        case "half-line":
            os.write(1, b'{"text":"hal')
        case "note":
            notes.append(value)
            signal.signal(signal.SIGTERM, on_sigterm)
        case "farewell":
            signal.signal(signal.SIGTERM, lambda *_: (write_all(1, b"f" * int(value)), os._exit(0)))
        case "deaf":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        case "child":
            start_child(value)
        case "chain":
            become_wrapper(int(value), rest)
        case "close-output":
            os.close(1)
        case "close-input":
            os.close(0)
        case "environment":
            say(json.dumps(dict(os.environ)))
        case "echo":
            echo()
        case "swallow":
            while os.read(0, 1 << 20):
                pass
        case "flood":
            while True:
                write_all(1, (b"z" * 119 + b"\n") * 1000)
        case "sleep":
            sleep()
        case "exit":
            sys.exit(int(value))
        case "die":
            os.kill(os.getpid(), int(value))
        case _:
            sys.exit(f"no step '{step}'")


def main() -> None:
    steps = sys.argv[1:]
    for position, step in enumerate(steps):
        do(step, steps[position + 1 :])


if __name__ == "__main__":
    main()
