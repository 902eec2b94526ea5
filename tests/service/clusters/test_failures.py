"""The failure matrix: what each trouble of an API server becomes. The table: ``python -m tests.failures``."""

from pathlib import Path

import pytest

from rules.errors import AdvisorError
from service import unreadable
from service.clusters import ClusterSettings, connect
from service.clusters.kinds import BY_KIND
from tests.fakes.kubernetes import FakeKubernetes
from tests.fakes.kubernetes_config import Tls
from tests.service.clusters.failures import LISTING, WATCHING, Case, Effect, Watched, followed, read_once, row


@pytest.mark.parametrize("case", LISTING, ids=lambda case: case.name)
async def test_trouble_while_reading_has_a_typed_and_readable_outcome(case: Case, tmp_path: Path) -> None:
    _check(case, await read_once(case, tmp_path))


@pytest.mark.parametrize("case", WATCHING, ids=lambda case: case.name)
async def test_trouble_while_following_has_a_typed_and_readable_outcome(case: Watched, tmp_path: Path) -> None:
    effect = await followed(case, tmp_path)
    _check(case, effect)
    assert case.mended is None or effect.after == "complete"


def _check(case: Case | Watched, effect: Effect) -> None:
    print(row("", case.name, effect))
    assert effect.audit == case.outcome
    assert case.says in effect.words
    assert "token-0000" not in effect.words
    assert effect.others, "another cluster is not touched"
    if ": " not in case.outcome and case.outcome != "complete":
        assert (effect.state, effect.rules) == ("unreachable", [unreadable.WHOLLY])
        assert effect.findings == []
        return
    missing = [item.split(":")[0] for item in case.outcome.split(", ")] if case.outcome != "complete" else []
    asked = [kind for kind in missing if BY_KIND[kind].built_in]
    assert effect.state == "ok"
    assert set(asked) <= set(effect.unreadable)
    assert effect.rules == ([unreadable.PARTLY] if asked else []), "told once, and only of what should be there"
    if "Pod" in missing:
        assert not any("idle" in rule for rule in effect.findings), "nothing is idle because pods could not be read"


async def test_names_that_do_not_resolve(tmp_path: Path) -> None:
    with FakeKubernetes() as server:
        file = server.kubeconfig(tmp_path)
        file.write_text(file.read_text(encoding="utf-8").replace(server.url, "https://no-such-host.invalid:6443"))
        with pytest.raises(AdvisorError, match="cannot be resolved") as caught:
            await connect(ClusterSettings(name="lab", kubeconfig=str(file))).collect()
    assert caught.value.code == "cluster-unreachable"


@pytest.mark.parametrize(("tls", "scheme", "says"), [("off", "https", "does not speak TLS"), ("good", "http", "")])
async def test_the_wrong_scheme(tmp_path: Path, tls: Tls, scheme: str, says: str) -> None:
    with FakeKubernetes(tls=tls) as server:
        file = server.kubeconfig(tmp_path)
        wrong = f"{scheme}://127.0.0.1:{server.port}"
        file.write_text(file.read_text(encoding="utf-8").replace(server.url, wrong))
        with pytest.raises(AdvisorError) as caught:
            await connect(ClusterSettings(name="lab", kubeconfig=str(file))).collect()
    assert caught.value.code == "cluster-unreachable"
    assert says in str(caught.value)
