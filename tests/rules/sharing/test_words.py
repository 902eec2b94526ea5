"""Every remark and step has its words in all three languages, and a plan reads well in each."""

import json
import re
from pathlib import Path

import pytest
import yaml

from rules.language import LANGUAGES, Language
from rules.sharing.model import SharingRequest, Workload
from rules.sharing.plan import plan
from rules.sharing.report import document
from rules.sharing.words import say, words
from tests.rules.sharing.test_manifests import REQUESTS

SOURCES = Path(__file__).parents[3] / "rules/sharing"
PLACEHOLDER = re.compile(r"{([a-z_]+)}")


def test_every_key_in_the_code_has_words_and_every_word_is_used() -> None:
    code = "".join(file.read_text("utf-8") for file in sorted(SOURCES.glob("*.py")))
    known = {**words().remarks, **words().steps}
    for key in known:
        assert f'"{key}"' in code, key
    for key in re.findall(r'(?:key=|_step\(\s*)"([a-z_0-9]+)"', code):
        assert key in known, key


def test_all_languages_name_the_same_values() -> None:
    for group in (words().summary, words().remarks, words().steps):
        for key, text in group.items():
            named = {language: set(PLACEHOLDER.findall(text.in_(language))) for language in LANGUAGES}
            assert named["en"] == named["es"] == named["it"], key


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", list(REQUESTS))
def test_a_plan_is_said_without_holes(name: str, language: Language) -> None:
    found = plan(REQUESTS[name])
    told = document(found, language)
    text = json.dumps(told)
    assert told["summary"].endswith(".")
    assert not PLACEHOLDER.search(told["summary"])
    assert all(item["text"] for item in told["caveats"])
    assert [say(item, language) for item in found.caveats] == [item["text"] for item in told["caveats"]]
    assert "null" not in {item["key"] for item in told["caveats"]}
    assert text.count("Traceback") == 0


def test_manifests_of_the_document_are_yaml_that_reads_back() -> None:
    told = document(plan(REQUESTS["mig"]), "en")
    body = yaml.safe_load(told["configuration"]["manifests"][0]["yaml"])
    assert yaml.safe_load(body["data"]["config.yaml"])["version"] == "v1"


def test_what_is_missing_is_asked_for_and_the_rest_is_planned() -> None:
    request = SharingRequest(
        models=(Workload(name="a", parameters_b=7), Workload(name="b", memory_gib=4)),
        gpus=("L4",),
        objective="cheapest",
    )
    found = plan(request)
    assert found.needs_more == ("models[0].precision", "prices")
    assert (found.complete, found.gpus, found.usd_hour) == (False, 1, None)
    assert found.sizings[0].fits is None
    assert "models[0].precision" in document(found, "es")["summary"]
