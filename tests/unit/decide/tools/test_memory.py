"""Passages of texts, found by words and meaning."""

from __future__ import annotations

from pathlib import Path

from surefoot.decide.tools.memory import TextMemory, pieces


def test_memory_finds_by_words_and_cuts_documents_at_headings(encoder, tmp_path: Path):
    (tmp_path / "a.md").write_text("# Cats\n\nA cat purrs.\n\n# Dogs\n\nA dog barks loudly.\n")
    memory = TextMemory(encoder)
    assert memory.add_files(tmp_path) == 2
    assert memory.lookup("which animal barks")[0].passage.text == "Dogs\nA dog barks loudly."
    assert pieces("plain text") == ["plain text"]
    assert TextMemory(encoder).lookup("x") == []
