"""The corpus that the reader learns from: its vocabulary, its size for each label and language, no line twice."""

import re
import unicodedata
from collections import Counter
from importlib.resources import files
from typing import Any

import pytest

from rules.questions.data import parse_yaml
from rules.questions.entities import is_gpu_model

LANGUAGES = ("en", "es", "it")
LEAST = 12
CAUSES = """
    arch_not_supported device_access_lost device_busy driver_image_missing driver_library_mismatch
    driver_not_installed driver_too_old fabric_manager forward_compat_unsupported fractional_gpu_request
    gang_not_ready gpu_hardware_fault gpu_out_of_memory hami_scheduler image_lacks_cuda_runtime insufficient_gpu
    mig_profile_unavailable mig_strategy_mismatch mps_daemon mps_too_many_clients nccl_timeout nccl_wrong_interface
    node_out_of_memory operator_missing ptx_toolchain rdma_not_used runtime_not_nvidia scale_from_zero
    scale_up_limit selector_mismatch shared_request_too_large shm_too_small stale_allocation untolerated_taint
    vendor_mismatch volume_multi_attach volume_zone_conflict
"""
INTENTS = """
    audit component_status cost cpu_pods_on_gpu_nodes cuda_mismatch drain_impact driver_version free_gpus gpu_inventory
    gpu_pods idle_cost idle_nodes idle_pods namespace_usage node_health pending_reason recent_crashes right_sizing
    scale_down_blockers sharing_config spot_nodes unrequested_gpu_use
"""
TOPICS = """
    drivers_preinstalled multiple_workloads_per_gpu single_gpu_worth_it multinode_checklist what_k8s_support_means
    managed_vs_own why_kubernetes sharing_options driver_cuda_alignment networking storage spot billing_idle
    device_plugin gpu_operator batch_jobs inference_at_scale distributed_training amd
"""
LABELS = {"error": CAUSES.split(), "cluster": INTENTS.split(), "faq": TOPICS.split()}
KEYS = {"error": "cause", "cluster": "intent", "faq": "topic", "provider": "field"}


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


OTHERS = ("provider", "compat", "sizing", "out_of_scope")
LABELLED = [(kind, language) for kind in sorted(LABELS) for language in LANGUAGES]
FILES = [*LABELLED, *((kind, language) for kind in OTHERS for language in LANGUAGES)]
LEAST_OF_FILTER = 10
FIELDS = _words("""
    billing_unit control_plane_fee device_plugin driver_version drivers_preinstalled gpu_models interconnect
    scale_to_zero sharing spot_notice price
""")
WORDS = {
    "arch": "amd64 arm64",
    "billing_unit": "second minute hour",
    "commitment": "none monthly 1y 3y",
    "compliance": "gdpr hipaa soc2 iso27001 pci ens fedramp acn sovereign",
    "currency": "usd eur",
    "feature": """
        autoscaling confidential dra drivers_preinstalled gang_scheduling gpu_operator ipv6 object_storage openshift
        private_network serverless sla slurm terraform virtual_kubelet windows
    """,
    "interconnect": "infiniband roce rdma efa ethernet nvlink",
    "k8s_version": "1.32 1.33 1.34 1.35 1.36",
    "shared_storage": "any rwx nfs lustre efs cephfs weka",
    "sharing": "mig mps time_slicing",
    "sort": "price_asc",
    "vendor": "nvidia amd",
}
SWITCHES = _words("bare_metal free_control_plane free_egress managed scale_to_zero spot")
COUNTS = _words("gpu_count min_nodes min_vram_gb nodes")
AMOUNTS = _words("hours_per_month max_price_eur_hour max_price_usd_hour max_total_usd_hour")
FILTERS = frozenset(WORDS) | SWITCHES | COUNTS | AMOUNTS | {"exclude", "fields", "gpu", "providers", "region"}


def _document(kind: str, language: str) -> Any:
    path = files("rules.questions.corpus") / f"{kind}.{language}.yaml"
    return parse_yaml(path.read_text(encoding="utf-8"))


def _text(line: Any) -> str:
    return str(line["text"] if isinstance(line, dict) else line)


def _texts(kind: str, language: str) -> list[str]:
    document = _document(kind, language)
    listed = [line for lines in document.values() for line in lines] if isinstance(document, dict) else document
    return [_text(line) for line in listed]


def _folded(text: str) -> str:
    decomposed = unicodedata.normalize("NFD", text.lower())
    plain = "".join(char for char in decomposed if not unicodedata.combining(char))
    return " ".join(re.findall(r"[a-z0-9]+", plain))


def _known_reading(other: Any, kind: str) -> bool:
    if isinstance(other, str):
        return kind == "faq" and other in LABELS["faq"]
    of = other.get("kind", kind)
    if of in LABELS:
        return other.get(KEYS[of]) in LABELS[of]
    return of in ("provider", "compat", "sizing", "out_of_scope")


@pytest.mark.parametrize(("kind", "language"), LABELLED)
def test_every_label_has_lines_enough(kind: str, language: str) -> None:
    document = _document(kind, language)
    assert sorted(document) == sorted(LABELS[kind])
    assert {label: len(lines) for label, lines in document.items() if len(lines) < LEAST} == {}


@pytest.mark.parametrize(("kind", "language"), LABELLED)
def test_lines_are_texts_and_further_readings_are_of_the_vocabulary(kind: str, language: str) -> None:
    for lines in _document(kind, language).values():
        for line in lines:
            assert _text(line).strip() == _text(line) != ""
            if isinstance(line, dict):
                assert set(line) == {"text", "also_ok"}
                assert [other for other in line["also_ok"] if not _known_reading(other, kind)] == []


def test_no_line_stands_twice_even_in_other_spelling_or_language() -> None:
    counted = Counter(_folded(text) for kind, language in FILES for text in _texts(kind, language))
    assert [text for text, times in counted.items() if times > 1] == []


@pytest.mark.parametrize(("kind", "language"), LABELLED)
def test_people_describe_rather_than_name_the_label(kind: str, language: str) -> None:
    for label, lines in _document(kind, language).items():
        named = [line for line in lines if label.replace("_", " ") in _folded(_text(line))]
        assert len(named) * 3 <= len(lines), label


def _providers() -> frozenset[str]:
    document = parse_yaml((files("rules.questions.data") / "provider_names.yaml").read_text(encoding="utf-8"))
    return frozenset(document["providers"])


def _fits(name: str, value: Any) -> bool:
    if name in SWITCHES:
        return isinstance(value, bool)
    if name in COUNTS:
        return isinstance(value, int) and not isinstance(value, bool) and value > 0
    if name in AMOUNTS:
        return isinstance(value, int | float) and not isinstance(value, bool) and value > 0
    if name in ("exclude", "providers"):
        return isinstance(value, list) and set(value) <= _providers()
    if name == "fields":
        return isinstance(value, list) and set(value) <= FIELDS | {"managed", "spot"}
    listed = value if isinstance(value, list) else [value]
    if name == "gpu":
        return all(is_gpu(model) for model in listed)
    if name == "region":
        return all(isinstance(region, str) and re.fullmatch("[a-z]{2}|latam", region) for region in listed)
    return set(listed) <= set(WORDS[name].split())


def is_gpu(model: str) -> bool:
    """True for the name of a card without its memory."""
    return is_gpu_model(model.removesuffix(" 80GB").replace(" ", "").removeprefix("RTX").lower())


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_people_look_for_is_of_the_vocabulary(language: str) -> None:
    searches = [row for row in _document("provider", language) if "filters" in row]
    used = Counter(name for row in searches for name in row["filters"])
    assert set(used) == FILTERS
    assert {name: times for name, times in used.items() if times < LEAST_OF_FILTER} == {}
    wrong = [
        (row["text"], name, value)
        for row in searches
        for name, value in row["filters"].items()
        if not _fits(name, value)
    ]
    assert wrong == []
    assert sum(len(row["filters"]) > 1 for row in searches) > len(searches) * 0.8


@pytest.mark.parametrize("language", LANGUAGES)
def test_facts_of_one_provider_are_asked_by_field_and_of_many_providers(language: str) -> None:
    facts = [row for row in _document("provider", language) if "filters" not in row]
    asked = Counter(row["field"] for row in facts)
    assert set(asked) == FIELDS
    assert min(asked.values()) >= LEAST_OF_FILTER
    named = {row["provider"] for row in facts}
    assert named <= _providers()
    assert len(named) >= 25


LEAST_OF_KIND = 60
LEAST_TO_ASK_BACK = 30
ENTITIES = {
    "compat": _words("driver cuda image gpu framework"),
    "sizing": _words("params_b precision count vram_gb vram_gb_each gpu_memory_gb gpu gpus profile sharing"),
}
ANSWERS = _words("gpus min_gpus per_gpu profile fits weights_gb needs_more")


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("kind", sorted(ENTITIES))
def test_compat_and_sizing_name_known_entities(kind: str, language: str) -> None:
    rows = _document(kind, language)
    assert len(rows) >= LEAST_OF_KIND
    for row in rows:
        assert set(row) <= {"text", "entities", "answer"}
        assert set(row["entities"]) <= ENTITIES[kind]
        assert set(row.get("answer", {})) <= ANSWERS
        assert row["entities"] or "needs_more" in row["answer"], row["text"]
    assert any("needs_more" in row.get("answer", {}) for row in rows) == (kind == "sizing")


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", ["driver", "cuda", "image"])
def test_versions_and_images_stand_in_the_text(name: str, language: str) -> None:
    """A corpus that expects what the text does not say would teach guessing. CUDA may be spelled cu124 or 12.4."""
    for row in _document("compat", language):
        value = row["entities"].get(name, [])
        for wanted in value if isinstance(value, list) else [value]:
            spellings = (wanted, wanted.replace(".", "")) if name == "cuda" else (wanted,)
            assert any(spelled in row["text"] for spelled in spellings), row["text"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_out_of_scope_has_both_ways_out(language: str) -> None:
    rows = _document("out_of_scope", language)
    assert sum(row.get("abstain") is True for row in rows) >= LEAST_OF_KIND
    assert sum(row.get("clarify") is True for row in rows) >= LEAST_TO_ASK_BACK
    assert [row for row in rows if len(set(row) & {"abstain", "clarify"}) != 1] == []
