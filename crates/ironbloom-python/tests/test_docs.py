"""The code in the documentation runs, from top to bottom, and is right."""

from __future__ import annotations

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[3]


@pytest.mark.parametrize("page", ["docs/python.md", "crates/ironbloom-python/README.md"])
def test_the_code_of_a_page_runs(page: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = list(re.finditer(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
    assert blocks
    names: dict[str, object] = {}
    for block in blocks:
        line = text.count("\n", 0, block.start()) + 1
        source = "\n" * line + block.group(1)  # so that errors name the line of the page
        exec(compile(source, page, "exec"), names)
