"""The generated tables: fresh in the tree, and stale as soon as the code or the text differs."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def gen_docs() -> ModuleType:
    spec = importlib.util.spec_from_file_location("gen_docs", ROOT / "tools" / "gen_docs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_generated_files_are_fresh_and_every_table_is_somewhere(gen_docs: ModuleType) -> None:
    wanted = gen_docs.wanted_files()

    texts = {path: path.read_text(encoding="utf-8") for path in wanted}

    assert texts == wanted
    assert {match["name"] for text in texts.values() for match in gen_docs.BLOCK.finditer(text)} == set(gen_docs.TABLES)


def test_text_between_the_markers_is_replaced_and_the_rest_kept(gen_docs: ModuleType) -> None:
    text = "before\n<!-- generated: close-codes -->\nold\n<!-- end -->\nafter\n"

    fresh = gen_docs.fresh(text)

    assert fresh.startswith("before\n<!-- generated: close-codes -->\n| code | meaning | reconnect |\n")
    assert fresh.endswith("|\n<!-- end -->\nafter\n")
    assert "old" not in fresh
    assert gen_docs.fresh(fresh) == fresh


def test_unknown_table_is_an_error(gen_docs: ModuleType) -> None:
    with pytest.raises(KeyError, match="weather"):
        gen_docs.fresh("<!-- generated: weather -->\n<!-- end -->\n")


def test_every_setting_has_a_row(gen_docs: ModuleType) -> None:
    table = gen_docs.configuration()

    assert "| `limits.message_bytes` | 64 KiB |" in table
    assert "| `redis.url` | `redis://127.0.0.1:6379/0` |" in table
