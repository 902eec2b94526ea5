"""``gpu-advisor ask``."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.service.cli.running import IDLE, Cli

KEYS = [
    *("language", "kind", "topic", "also_topics", "provider", "field", "filters", "entities", "intent", "cause"),
    *("verdict", "abstain", "clarify", "text", "evidence", "follow_ups"),
]
QUESTIONS = {
    "en": "Can I run more than one workload per GPU?",
    "es": "¿Puedo ejecutar más de una carga por GPU?",
    "it": "Posso eseguire più di un carico di lavoro per GPU?",
}


def lines(out: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


@pytest.mark.parametrize("language", QUESTIONS)
def test_json_has_every_key_and_the_language_of_the_question(cli: Cli, language: str) -> None:
    done = cli("ask", QUESTIONS[language], "--format", "json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert set(KEYS) <= set(answer)
    assert (answer["language"], answer["kind"]) == (language, "faq")
    assert answer["topic"] == "multiple_workloads_per_gpu"
    assert answer["abstain"] is False


def test_text_is_for_people_and_shows_where_facts_come_from(cli: Cli) -> None:
    done = cli("ask", QUESTIONS["es"])
    text = done.stdout.decode()
    assert done.returncode == 0
    assert "MIG" in text
    assert "Fuentes:\n- " in text
    assert "También puedes preguntar:\n- " in text
    assert "**" not in text
    assert b"\x1b[" not in done.stdout
    assert done.stderr == b""


def test_a_question_may_come_on_standard_input(cli: Cli) -> None:
    done = cli("ask", "-", "--format", "json", stdin=QUESTIONS["it"].encode())
    assert json.loads(done.stdout)["language"] == "it"


def test_a_snapshot_adds_what_is_true_there(cli: Cli) -> None:
    without = json.loads(cli("ask", QUESTIONS["en"], "--format", "json").stdout)
    done = cli("ask", QUESTIONS["en"], "--format", "json", "--snapshot", IDLE)
    assert done.returncode == 0, done.stderr
    with_cluster = json.loads(done.stdout)
    assert with_cluster["topic"] == without["topic"]
    assert "eks-managed-spot-ondemand" not in without["text"]
    assert "eks-managed-spot-ondemand" in json.dumps(with_cluster)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["hi", "--batch", "-"],
        [""],
        ["  "],
        ["hi", "--lang", "de"],
        ["hi", "--format", "xml"],
        ["hi", "--snapshot", "missing.json"],
        ["--snapshot", "a.json", "which nodes are idle?"],
        ["--batch", "missing.jsonl"],
    ],
)
def test_arguments_that_cannot_be_used_end_with_2_and_a_sentence(cli: Cli, arguments: list[str]) -> None:
    done = cli("ask", *arguments)
    assert done.returncode == 2
    assert done.stdout == b""
    assert b"gpu-advisor" in done.stderr
    assert b"Traceback" not in done.stderr


def test_a_batch_answers_in_the_order_of_its_lines(cli: Cli, tmp_path: Path) -> None:
    questions = [{"id": f"q-{number}", "text": text} for number, text in enumerate([*QUESTIONS.values()] * 4)]
    file = tmp_path / "questions.jsonl"
    file.write_text("".join(json.dumps(item, ensure_ascii=False) + "\n" for item in questions), encoding="utf-8")
    done = cli("ask", "--batch", file)
    assert done.returncode == 0, done.stderr
    answers = lines(done.stdout)
    assert [answer["id"] for answer in answers] == [item["id"] for item in questions]
    assert [answer["language"] for answer in answers] == ["en", "es", "it"] * 4
    assert all(set(KEYS) <= set(answer) for answer in answers)
    assert [cli("ask", "--batch", "-", stdin=file.read_bytes()).stdout] == [done.stdout]


def test_a_bad_line_gets_an_error_in_its_place_and_loses_no_other(cli: Cli) -> None:
    good = json.dumps({"id": "good", "text": QUESTIONS["en"]}).encode()
    bad: dict[bytes, str] = {
        b"not json": "not JSON",
        b'["a"]': "not an object",
        b'{"text": "hi"}': '"id" is missing',
        b'{"id": "no-text"}': '"text"',
        b'{"id": "number", "text": 5}': '"text"',
        b'{"id": "empty", "text": " "}': "empty",
        b'{"id": "language", "text": "hi", "language": "de"}': "en, es, it",
        b'{"id": "bytes", "text": "\xff"}': "not JSON",
        b"[" * 100_000: "not JSON",
        b'{"id": "cut", "text": "': "not JSON",
    }
    done = cli("ask", "--batch", "-", stdin=b"\n".join(part for line in bad for part in (good, line)) + b"\n" + good)
    assert done.returncode == 2
    assert done.stderr == b""
    answers = lines(done.stdout)
    assert len(answers) == 2 * len(bad) + 1
    assert all(answer["id"] == "good" and answer["topic"] for answer in answers[::2])
    for number, (line, answer) in enumerate(zip(bad, answers[1::2], strict=True)):
        assert answer["line"] == 2 * number + 2, line
        assert list(bad.values())[number] in answer["error"]["detail"], line
        assert answer["error"]["code"] == "input-invalid"
    assert [answer["id"] for answer in answers[1::2]] == [
        *(None, None, None, "no-text", "number", "empty", "language", None, None, None)
    ]


def test_a_batch_keeps_ids_as_they_are_and_ignores_other_keys_blank_lines_and_the_byte_order_mark(cli: Cli) -> None:
    ids: list[Any] = [7, "ñandú", "\ud83d\ude00 emoji", None, ["a"]]
    body = b"\xef\xbb\xbf" + b"\n\n".join(
        json.dumps({"id": value, "text": QUESTIONS["en"], "expect": {"topic": "x"}}).encode() for value in ids
    )
    done = cli("ask", "--batch", "-", stdin=body)
    assert done.returncode == 0, done.stderr
    assert [answer["id"] for answer in lines(done.stdout)] == [json.loads(json.dumps(value)) for value in ids]


def test_an_empty_batch_is_fine(cli: Cli) -> None:
    done = cli("ask", "--batch", "-", stdin=b"")
    assert (done.returncode, done.stdout) == (0, b"")


def test_answers_of_a_batch_come_as_soon_as_they_are_known(cli: Cli) -> None:
    with cli.start("ask", "--batch", "-") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for number in range(3):
            process.stdin.write(json.dumps({"id": number, "text": QUESTIONS["en"]}).encode() + b"\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["id"] == number
        process.stdin.close()
        assert process.wait(30) == 0
        assert process.stderr is not None
        assert process.stderr.read() == b""


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_terminals_that_do_not_speak_utf8_get_escapes_instead_of_a_crash(cli: Cli, encoding: str) -> None:
    text = cli("ask", QUESTIONS["es"], PYTHONIOENCODING=encoding)
    assert text.returncode == 0, text.stderr
    document = cli("ask", QUESTIONS["es"], "--format", "json", PYTHONIOENCODING=encoding)
    assert json.loads(document.stdout.decode("ascii"))["language"] == "es"


@pytest.mark.skipif(sys.platform == "win32", reason="arguments are bytes on POSIX only")
def test_a_question_that_is_no_valid_text_does_not_crash(cli: Cli) -> None:
    for format_ in ("text", "json"):
        done = cli("ask", b"gpu \xff\xfe nodes idle?", "--format", format_)
        assert done.returncode == 0, done.stderr
    json.loads(done.stdout)


def test_a_reader_that_goes_away_ends_it_quietly(cli: Cli) -> None:
    with cli.start("ask", "--batch", "-") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        line = json.dumps({"id": 1, "text": QUESTIONS["en"]}).encode() + b"\n"
        try:
            process.stdin.write(line * 50)
            process.stdin.close()
        except BrokenPipeError:
            pass
        assert process.wait(60) == 141
        assert process.stderr.read() == b""


def test_answering_imports_nothing_heavy(cli: Cli) -> None:
    done = cli("ask", QUESTIONS["it"], PYTHONPROFILEIMPORTTIME="1")
    assert done.returncode == 0
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.decode().splitlines()}
    assert "rules.questions" in imported
    heavy = {
        "kubernetes",
        "litestar",
        "slack_bolt",
        "sqlalchemy",
        "sqlmodel",
        "lingua",
        "aiohttp",
        "structlog",
        "babel",
    }
    assert not heavy & imported
