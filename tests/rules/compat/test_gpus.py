"""Names of GPUs, from every place they come from."""

import pytest

from rules.compat import data
from rules.compat.gpus import recognise, vendor_of

LABELS = [(label, row.id) for row in data.gpus() for label in row.labels]
SUFFIXES = ("", "-SHARED", "-MIG-1g.5gb", "-MIG-1g.5gb.me-SHARED", "-MIG-INVALID", "-MIG-3g.40gb-SHARED")


@pytest.mark.parametrize(("label", "product"), LABELS)
def test_feature_discovery_label_names_its_product_with_any_suffix(label: str, product: str) -> None:
    for suffix in SUFFIXES:
        found = recognise(label + suffix)
        assert found is not None
        assert product in {row.id for row in found.rows}
        assert len(found.rows) == 1
        assert found.sliced is ("MIG" in suffix)


@pytest.mark.parametrize(("label", "product"), LABELS)
def test_name_of_nvidia_smi_is_the_label_with_spaces(label: str, product: str) -> None:
    found = recognise(label.replace("-", " "))
    assert found is not None
    assert product in {row.id for row in found.rows}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("h100", "H100"), ("H100s", "H100"), ("8x H100", "H100"), ("4090", "RTX-4090"), ("rtx 4090", "RTX-4090"),
        ("RTX4090", "RTX-4090"), ("NVIDIA GeForce RTX 4090", "RTX-4090"), ("a10g", "A10G"), ("A10", "A10"),
        ("a100", "A100"), ("L4", "L4"), ("l4s", "L4"), ("l40s", "L40S"), ("L40", "L40"), ("mi300x", "MI300X"),
        ("AMD_Instinct_MI300X_OAM", "MI300X"), ("AMD Instinct MI250X", "MI250X"), ("nvidia-tesla-a100", "A100"),
        ("nvidia-tesla-t4", "T4"), ("nvidia-l4", "L4"), ("nvidia-h100-80gb", "H100"), ("nvidia-h100-mega-80gb", "H100"),
        ("nvidia-h200-141gb", "H200"), ("nvidia-b200", "B200"), ("A100-SXM4-40GB", "A100-SXM4-40"),
        ("NVIDIA A100 80GB PCIe", "A100-PCIE-80"), ("A100_PCIE_80GB", "A100-PCIE-80"),
        ("a100 sxm4 80 gb", "A100-SXM4-80"),
        ("NVIDIA-A100-PCIE-80GB", "A100-PCIE-80"), ("4×L4", "L4"), ("p5.48xlarge", "H100-SXM5-80"),
        ("g5.xlarge", "A10G"),
        ("p4d.24xlarge", "A100-SXM4-40"), ("g4dn.metal", "T4"), ("a2-highgpu-1g", "A100-SXM4-40"),
        ("g2-standard-4", "L4"),
        ("RTX A6000", "RTX-A6000"), ("Quadro RTX 6000", "RTX-6000-Turing"), ("RTX 6000 Ada", "RTX-6000-Ada"),
        ("Quadro_RTX_4000", "Quadro-RTX-4000"), ("gtx 1080 ti", "GTX-1080-Ti"), ("V100 32GB", "V100-SXM2-32"),
        ("tesla t4", "T4"), ("a100 mig 1g.5gb", "A100"), ("H100 SXM", "H100-SXM5-80"), ("P4", "P4"), ("A2", "A2"),
        ("2080 Ti", "RTX-2080-Ti"), ("titan rtx", "TITAN-RTX"), ("H100 NVL", "H100-NVL"), ("gh200", "GH200"),
    ],
)  # fmt: skip
def test_name_is_recognised(name: str, expected: str) -> None:
    found = recognise(name)
    assert found is not None
    assert found.name == expected


@pytest.mark.parametrize(
    "name",
    [
        "", "  ", "gpu", "nvidia", "A1000", "A100X", "A100-7-40C", "rtx 6000", "rtx 5000", "H1000", "100", "L", "Rubin",
        "Foo 9000", "AMD_Radeon_Graphics", "g99.xlarge", "x" * 500, "A10 and A100", "T4 or L4",
    ],
)  # fmt: skip
def test_name_that_is_not_known_as_a_whole_is_not_recognised(name: str) -> None:
    assert recognise(name) is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("A10", "A100"), ("A10", "A10G"), ("L4", "L40S"), ("L40", "L40S"), ("P4", "p4d"), ("A2", "a2-highgpu"),
        ("H20", "H200"), ("MI300X", "MI300A"), ("RTX 6000 Ada", "RTX A6000"), ("T4", "T4G"),
    ],
)  # fmt: skip
def test_similar_names_are_different_cards(one: str, other: str) -> None:
    first, second = recognise(one), recognise(other)
    assert first is not None
    assert second is not None
    assert not set(first.rows) & set(second.rows)


@pytest.mark.parametrize("row", data.gpus(), ids=lambda row: row.id)
def test_product_id_model_and_aliases_lead_to_the_product(row: data.GpuRow) -> None:
    for name in (row.id, row.model, *row.aliases):
        found = recognise(name)
        assert found is not None, name
        assert found.vendor == row.vendor
        assert found.compute_capability == row.compute_capability


@pytest.mark.parametrize(
    ("name", "maker"),
    [
        ("Quadro FX 9", "nvidia"), ("AMD Radeon Graphics", "amd"), ("Intel Data Center GPU Max", "other"),
        ("Gaudi3", "other"), ("Foo 9000", None), ("", None), (None, None),
    ],
)  # fmt: skip
def test_maker_of_an_unknown_card(name: str | None, maker: str | None) -> None:
    assert vendor_of(name) == maker


def test_products_of_one_name_rule_out_only_what_all_rule_out() -> None:
    both = recognise("RTX PRO 6000 Blackwell")
    assert both is not None
    assert (both.min_branch, both.gpu_class) in ((570, None), (575, "datacenter"))
