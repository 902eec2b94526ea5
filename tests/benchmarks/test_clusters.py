"""The benchmark of clusters runs, at a small size; it prints figures (pytest -s) and nothing fails on time."""

from tests.benchmarks import clusters


def test_every_measure_gives_a_figure() -> None:
    lines = list(clusters.run(50, 1_000, (50, 1_000), protobuf=True, changes=20, rounds=2))

    for line in lines:
        print(f"{line.what}: {line.value:.3f} {line.unit} {line.goal}")
    goals = {line.what: line.goal for line in lines if line.goal}
    assert set(goals.values()) == {">= 1.5", "<= 1.3", "<= 1", "<= 400", ">= 10", "<= 0.5", "flat", "<= 2.5", "<= 150"}
    assert all(line.value > 0 for line in lines if line.goal != "flat")
