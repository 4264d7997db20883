"""The Python of docs/tools.md is true: it runs from top to bottom."""

from __future__ import annotations

import re
from typing import Any

import anyio

from contract_tests.requirements import requirement
from contract_tests.source_tree import ROOT

PAGE = ROOT / "docs" / "tools.md"


@requirement("orchestrator:docs")
async def test_blocks_of_the_page_run(capsys: Any) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    page: dict[str, Any] = {"__name__": "tools_page"}
    for block in blocks:
        exec(compile(block, PAGE, "exec", dont_inherit=True), page)
    with anyio.fail_after(10):
        registry = await page["with_hook"]()
        await page["main"]()
    assert [descriptor.name for descriptor in registry.descriptors] == ["dig", "get_weather", "shelf_author_of"]
    assert capsys.readouterr().out.startswith("scout: ")
