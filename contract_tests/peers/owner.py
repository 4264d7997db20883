"""A server in small: starts peers, says their process ids, then holds them for ever. The test that starts it kills it.

owner.py STANDIN_ARGV_AS_JSON...
"""

import json
import os
import sys

import anyio

from connectors._environment import base_environment
from connectors._process import open_process


async def hold(argv: list[str]) -> None:
    async with open_process(argv, env=base_environment(os.environ)) as process:
        print(json.dumps({"pid": process.pid, **process.record._asdict()}), flush=True)
        async for lines in process.lines():
            for line in lines:
                print(line.decode(), flush=True)


async def main() -> None:
    async with anyio.create_task_group() as tasks:
        for argv in sys.argv[1:]:
            tasks.start_soon(hold, json.loads(argv))


if __name__ == "__main__":
    anyio.run(main)
