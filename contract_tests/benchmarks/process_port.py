"""What the process port costs over its floor: the same stand-in, spoken to with plain blocking pipes.

    python -m contract_tests.benchmarks.process_port [--round-trips 3000] [--repeats 5]

Ours and the floor take turns, so that a busy machine troubles both alike: compare the ratios, not the times.
"""

import argparse
import asyncio
import os
import resource
import statistics
import subprocess
import time
from collections.abc import Awaitable, Callable

import anyio

from connectors._process import open_process
from contract_tests.connectors.processes import ENVIRONMENT, standin

MIB = 1024 * 1024
LINE = b"x" * 1023 + b"\n"
BIG = 50 * MIB


def microseconds(samples: list[float]) -> tuple[float, float]:
    ordered = sorted(samples)
    return statistics.median(ordered) * 1e6, ordered[int(len(ordered) * 0.99)] * 1e6


async def round_trips_floor(count: int) -> list[float]:
    with subprocess.Popen(standin("echo"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as child:
        assert child.stdin and child.stdout
        to_child, from_child = child.stdin.fileno(), child.stdout.fileno()
        samples: list[float] = []
        for _ in range(count):
            began = time.perf_counter()
            os.write(to_child, LINE)
            data = os.read(from_child, 262144)
            while not data.endswith(b"\n"):
                data += os.read(from_child, 262144)
            samples.append(time.perf_counter() - began)
        child.kill()
        return samples


async def round_trips_ours(count: int) -> list[float]:
    async with open_process(standin("echo"), env=ENVIRONMENT) as process:
        samples: list[float] = []
        for _ in range(count):
            began = time.perf_counter()
            process.write(LINE)
            await process.receive()
            samples.append(time.perf_counter() - began)
        return samples


async def round_trips_asyncio(count: int) -> list[float]:
    child = await asyncio.create_subprocess_exec(
        *standin("echo"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, limit=MIB
    )
    assert child.stdin and child.stdout
    samples: list[float] = []
    for _ in range(count):
        began = time.perf_counter()
        child.stdin.write(LINE)
        await child.stdout.readline()
        samples.append(time.perf_counter() - began)
    child.kill()
    await child.wait()
    return samples


async def big_line_floor() -> float:
    """The stand-in's 50 MiB as fast as plain reads take them, joined at the end."""
    with subprocess.Popen(standin("say:up", f"line:{BIG}", "sleep"), stdout=subprocess.PIPE, bufsize=0) as child:
        assert child.stdout
        descriptor = child.stdout.fileno()
        os.read(descriptor, 3)
        parts = [os.read(descriptor, 262144)]
        began, size = time.perf_counter(), len(parts[0])
        while size < BIG + 1:
            parts.append(os.read(descriptor, 262144))
            size += len(parts[-1])
        b"".join(parts)
        took = time.perf_counter() - began
        child.kill()
        return took


async def big_line_ours() -> float:
    async with open_process(standin("say:up", f"line:{BIG}", "sleep"), env=ENVIRONMENT) as process:
        await process.receive()
        # The clock starts with the first bytes, as above: the stand-in needs a while to make them.
        await anyio.wait_readable(process._pipes.stdout)  # pyright: ignore[reportPrivateUsage]
        began = time.perf_counter()
        [line] = await process.receive()
        took = time.perf_counter() - began
        assert len(line) == BIG
        return took


async def big_line_written() -> float:
    async with open_process(standin("say:up", "swallow", "sleep"), env=ENVIRONMENT) as process:
        await process.receive()
        began = time.perf_counter()
        process.write(b"x" * BIG + b"\n")
        await process.drain()
        return time.perf_counter() - began


async def open_and_close() -> tuple[float, float, float]:
    began = time.perf_counter()
    async with open_process(standin("say:up", "sleep"), env=ENVIRONMENT) as process:
        opened = time.perf_counter()
        await process.receive()
        closing = time.perf_counter()
        await process.end()
        ended = time.perf_counter()
    return opened - began, ended - closing, time.perf_counter() - ended


async def repeated(repeats: int, *measures: Callable[[], Awaitable[float]]) -> list[float]:
    rounds = [[await measure() for measure in measures] for _ in range(repeats)]
    return [statistics.median(column) for column in zip(*rounds, strict=True)]


async def main(round_trips: int, repeats: int) -> None:
    floor: list[float] = []
    ours: list[float] = []
    plain_asyncio: list[float] = []
    for _ in range(repeats):
        floor += await round_trips_floor(round_trips)
        ours += await round_trips_ours(round_trips)
        plain_asyncio += await round_trips_asyncio(round_trips)
    base = microseconds(floor)[0]
    for name, samples in (("floor: blocking pipes", floor), ("ours", ours), ("asyncio streams", plain_asyncio)):
        p50, p99 = microseconds(samples)
        print(f"1 KB line out and back, {name:22} p50 {p50:6.0f} us  p99 {p99:6.0f} us  {p50 / base:.1f} x floor")

    read_floor, read_ours, written = await repeated(repeats, big_line_floor, big_line_ours, big_line_written)
    print(f"50 MiB line read:    floor {read_floor * 1e3:.0f} ms, ours {read_ours * 1e3:.0f} ms")
    print(f"50 MiB line written: {written * 1e3:.0f} ms")

    async with open_process(standin("sleep"), env=ENVIRONMENT):  # so that the reaper stays
        times = [await open_and_close() for _ in range(20)]
    opening, ending, _ = (statistics.median(column) * 1e3 for column in zip(*times, strict=True))
    print(
        f"open_process until it is written to: {opening:.1f} ms; end(): {ending:.1f} ms, of a peer that obeys SIGTERM"
    )
    print(f"peak memory of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MiB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--round-trips", type=int, default=3000)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    anyio.run(main, options.round_trips, options.repeats)
