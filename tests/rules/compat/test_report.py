"""Cases and verdicts as plain data."""

import pytest

from rules.compat import check
from rules.compat.report import document, judge
from rules.errors import InputInvalid
from rules.language import LANGUAGES, Language


@pytest.mark.parametrize("language", LANGUAGES)
def test_document_has_the_promised_keys_in_the_language(language: Language) -> None:
    verdict = check(driver="535.183.01", cuda="12.8", gpu="L4")
    found = document(verdict, language)
    assert {"verdict", "reasons", "cuda", "driver", "gpu", "warnings"} <= set(found)
    assert found["verdict"] == "ok_minor_compat"
    assert (found["cuda"], found["driver"], found["gpu"]) == ("12.8", "535.183.01", "L4")
    assert found["reasons"][0]["text"] == verdict.reasons[0].text.in_(language)
    assert found["reasons"][0]["source"].startswith("https://")
    assert found["reasons"][0]["as_of"]


def test_numbers_of_yaml_are_versions() -> None:
    assert judge({"driver": 535, "cuda": 12.4}).verdict == "ok_minor_compat"


def test_other_keys_do_not_matter() -> None:
    assert judge({"id": "x", "driver": "550.54.15", "cuda": "12.4", "expect": "no", "why": ["a"]}).verdict == "ok"


@pytest.mark.parametrize(
    ("record", "key"),
    [
        ({"driver": ["535"]}, "driver"), ({"cuda": True}, "cuda"), ({"gpu": {}}, "gpu"), ({"mig": "yes"}, "mig"),
        ({"image_config": []}, "image_config"), ({"kernel_modules": "closed"}, "kernel_modules"),
        ({"arch": "x"}, "arch"),
    ],
)  # fmt: skip
def test_a_value_of_the_wrong_type_is_named(record: dict[str, object], key: str) -> None:
    with pytest.raises(InputInvalid, match=f'"{key}"'):
        judge({"driver": "535.183.01", "cuda": "12.4", **record})
