"""Error texts that people paste."""

from rules.compat import data
from rules.compat.symptoms import error_code, find


def test_a_pasted_log_line_finds_its_symptom() -> None:
    line = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus."
    assert "xid_79" in [symptom.id for symptom in find(line)]


def test_case_does_not_matter_and_the_most_telling_pattern_comes_first() -> None:
    line = (
        "nvidia-container-cli: requirement error: UNSATISFIED CONDITION: cuda>=12.8, please update your driver to a"
        " newer version, or use an earlier cuda container"
    )
    found = [symptom.id for symptom in find(line)]
    assert found == ["requirement_error", "unsatisfied_condition"]


def test_conditions_are_not_looked_for_in_texts() -> None:
    conditions = [symptom for symptom in data.symptoms().symptoms if symptom.match == "condition"]
    assert conditions
    assert all(symptom not in find(symptom.pattern) for symptom in conditions)


def test_every_searchable_pattern_finds_itself() -> None:
    for symptom in data.symptoms().symptoms:
        if symptom.match != "condition":
            assert symptom in find(symptom.pattern)


def test_error_codes() -> None:
    found = error_code(804)
    assert found is not None
    assert found.runtime_name == "cudaErrorCompatNotSupportedOnDevice"
    assert error_code(-1) is None
