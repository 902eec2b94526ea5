"""What a cluster would cost elsewhere."""

from functools import cache
from pathlib import Path

import msgspec
import pytest

import service
from rules.advice.elsewhere import elsewhere
from rules.facts.cluster import ClusterFacts
from service.cli.targets import snapshot_facts
from tests.rules.advice.catalogue import catalog

SAMPLES = Path(service.__file__).parent / "samples"


@cache
def oke() -> ClusterFacts:
    return snapshot_facts([str(SAMPLES / "oke-a10-a100-pools.json")])


def priced() -> ClusterFacts:
    """The same without the node that has no price."""
    nodes = tuple(node for node in oke().nodes if not node.is_gpu_node or node.price is not None)
    return msgspec.structs.replace(oke(), nodes=nodes)


def test_now_is_the_sum_of_the_known_prices_and_says_what_is_missing() -> None:
    found = elsewhere(oke(), catalog())
    known = [node.price.usd_hour for node in oke().gpu_nodes if node.price]
    assert found.usd_month_now == pytest.approx(sum(known) * 730)
    assert found.unpriced == len(oke().gpu_nodes) - len(known) == 1
    assert all(place.difference_usd_month is None for place in found.places)
    assert {"nodes_unpriced", "move_costs"} <= {remark.key for remark in found.remarks}


def test_totals_elsewhere_hold_all_shapes_or_are_unknown() -> None:
    found = elsewhere(priced(), catalog())
    assert found.unpriced == 0
    whole = [place for place in found.places if not place.missing]
    assert whole
    for place in found.places:
        assert (place.usd_month is None) == bool(place.missing)
        assert place.provider.kubernetes is None or place.provider.kubernetes.mode != "none"
    for place in whole:
        assert place.usd_month is not None
        assert found.usd_month_now is not None
        machines = sum(one.usd_hour or 0 for one in place.shapes.values()) * 730
        fee = next(iter(place.shapes.values())).fee_usd_month or 0
        assert place.usd_month == pytest.approx(machines + fee)
        assert place.difference_usd_month == pytest.approx(place.usd_month - found.usd_month_now)
        for number, one in place.shapes.items():
            assert (one.gpus or 0) >= (found.shapes[number].gpus or 0) * found.shapes[number].nodes
            assert one.offer is None or one.offer.purchase != "spot" or found.shapes[number].spot


def test_a_gpu_that_nothing_names_is_said_and_not_priced() -> None:
    nodes = tuple(msgspec.structs.replace(node, product=None) for node in oke().nodes)
    found = elsewhere(msgspec.structs.replace(oke(), nodes=nodes), catalog())
    assert found.places == ()
    assert "shapes_unknown" in {remark.key for remark in found.remarks}


def test_a_cluster_without_gpu_nodes_has_nothing_to_compare() -> None:
    found = elsewhere(msgspec.structs.replace(oke(), nodes=()), catalog())
    assert (found.shapes, found.places, found.usd_month_now) == ((), (), None)
