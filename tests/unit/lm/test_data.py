"""Prompts and preferences out of files; a bad row is named by its line."""

from __future__ import annotations

import gzip
import json

import pytest

from surefoot.errors import DataError
from surefoot.lm.data import (
    PreferencePair,
    in_batches,
    messages_of,
    read_demonstrations,
    read_pairs,
    read_prompts,
    read_rows,
)


def test_text_has_a_prompt_a_line_and_empty_lines_are_passed_over(tmp_path):
    (tmp_path / "p.txt").write_text("one\n\ntwo words\n")
    assert read_prompts(tmp_path / "p.txt") == ["one", "two words"]


def test_json_lines_are_plain_or_conversations(tmp_path):
    talk = [{"role": "user", "content": "hi"}]
    rows = [{"prompt": "one"}, {"messages": talk}, {"question": "three", "id": 7}]
    (tmp_path / "p.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    assert read_prompts(tmp_path / "p.jsonl") == ["one", talk, "three"]


def test_csv_with_commas_and_line_breaks(tmp_path):
    (tmp_path / "p.csv").write_text('id,prompt\n1,"a, b"\n2,"c\nd"\n')
    assert read_prompts(tmp_path / "p.csv") == ["a, b", "c\nd"]


def test_parquet(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    pyarrow.parquet.write_table(arrow.table({"prompt": ["x", "y"]}), tmp_path / "p.parquet")
    assert read_prompts(tmp_path / "p.parquet") == ["x", "y"]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("p.jsonl", '{"prompt": "ok"}\n{"prompt": }\n', "p.jsonl:2 is not JSON"),
        ("p.jsonl", '{"prompt": "ok"}\n\n', "p.jsonl:2 is empty"),
        ("p.jsonl", '{"answer": "x"}\n', "p.jsonl:1 has answer; a prompt is called"),
        ("p.jsonl", '{"prompt": "  "}\n', "p.jsonl:1 is an empty prompt"),
        ("p.jsonl", '{"prompt": 3}\n', "p.jsonl:1 is 3"),
        ("p.jsonl", '{"messages": [{"role": "king", "content": "x"}]}\n', "p.jsonl:1 has the message"),
        ("p.csv", "prompt,id\na,1\nb\n", "p.csv:3 has other columns"),
        ("p.txt", "\n", "has no prompts"),
        ("p.doc", "x", "none of .txt"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path, name, content, said):
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=said):
        read_prompts(tmp_path / name)


def test_a_file_that_is_not_there_or_not_text(tmp_path):
    with pytest.raises(DataError, match="there is no file"):
        read_prompts(tmp_path / "no.txt")
    (tmp_path / "b.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="not UTF-8"):
        read_prompts(tmp_path / "b.txt")


def test_preferences_with_a_prompt_and_in_the_form_of_hh_rlhf(tmp_path):
    (tmp_path / "a.jsonl").write_text(json.dumps({"prompt": "p", "chosen": "c", "rejected": "r", "margin": 0.5}) + "\n")
    assert read_pairs(tmp_path / "a.jsonl") == [PreferencePair("p", "c", "r", 0.5)]
    whole = {"chosen": "\n\nHuman: hi\n\nAssistant: hello", "rejected": "\n\nHuman: hi\n\nAssistant: go away"}
    with gzip.open(tmp_path / "b.jsonl.gz", "wt") as file:
        file.write(json.dumps(whole) + "\n")
    assert read_pairs(tmp_path / "b.jsonl.gz") == [PreferencePair("\n\nHuman: hi\n\nAssistant:", " hello", " go away")]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"chosen": "c"}, "no text 'rejected'"),
        ({"prompt": "p", "chosen": "c", "rejected": "c"}, "are the same"),
        (3, "is 3"),
    ],
)
def test_a_bad_preference_is_named(tmp_path, row, said):
    (tmp_path / "a.jsonl").write_text(json.dumps(row) + "\n")
    with pytest.raises(DataError, match=f"a.jsonl:1.*{said}"):
        read_pairs(tmp_path / "a.jsonl")


def test_demonstrations_need_a_response(tmp_path):
    (tmp_path / "d.jsonl").write_text('{"prompt": "p", "response": "r"}\n{"prompt": "p"}\n')
    with pytest.raises(DataError, match=r"d.jsonl:2 has no text 'response'"):
        read_demonstrations(tmp_path / "d.jsonl")


def test_rows_keep_every_column_and_call_the_prompt_prompt(tmp_path):
    (tmp_path / "q.jsonl").write_text('{"question": "2 + 2?", "answer": "4"}\n')
    assert read_rows(tmp_path / "q.jsonl") == [{"question": "2 + 2?", "answer": "4", "prompt": "2 + 2?"}]


def test_a_transcript_is_split_into_turns_and_a_text_is_one_message():
    transcript = "\n\nHuman: hi\n\nAssistant: hello\n\nHuman: who?\n\nAssistant:"
    assert [(m["role"], m["content"]) for m in messages_of(transcript)] == [
        ("user", "hi"),
        ("assistant", "hello"),
        ("user", "who?"),
    ]
    assert messages_of("The Human: a word") == [{"role": "user", "content": "The Human: a word"}]


def test_finished_batches_are_not_made_again_and_a_cut_line_is(tmp_path):
    target, made = tmp_path / "rows.jsonl", []

    def make(items):
        made.append(list(items))
        return [[{"item": item}, {"item": item.upper()}] for item in items]

    (tmp_path / "rows.partial").write_text('[[{"item": "a"}], [{"item": "b"}]]\n[[{"it')
    rows = in_batches(["a", "b", "c", "d", "e"], 2, target, make)
    assert made == [["c", "d"], ["e"]]
    assert [row["item"] for row in rows] == ["a", "b", "c", "C", "d", "D", "e", "E"]
    assert [json.loads(line) for line in target.read_text().splitlines()] == rows
    assert list(tmp_path.iterdir()) == [target]
