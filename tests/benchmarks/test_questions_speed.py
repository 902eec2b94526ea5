"""Speed of answering. Prints figures (pytest -s); nothing fails on time."""

import subprocess
import sys
import time

from rules.questions import answer, corpus, read
from tests.evaluation.scoring import development, frequent, others
from tests.rules.questions.facts import cluster, gpu_node, gpu_pod

COLD = """
import time
start = time.process_time()
from rules.questions import answer
imported = time.process_time()
reply = answer("¿puedo ejecutar más de una carga por GPU?")
assert reply.topic == "multiple_workloads_per_gpu"
import sys
print(imported - start, time.process_time() - start, "lingua" in sys.modules)
"""


def test_cold_start() -> None:
    out = subprocess.run([sys.executable, "-c", COLD], capture_output=True, text=True, check=True).stdout.split()
    importing, first = (float(figure) * 1e3 for figure in out[:2])
    print(f"\nquestions, cold: import {importing:.0f} ms CPU, import and first answer {first:.0f} ms CPU")
    assert out[2] == "False"


def test_warm_readings() -> None:
    """Reading alone, once every text was read: the development set, lines of the corpus, several questions in one."""
    asked = [str(question["text"]) for question in development()]
    sets = {
        "development set": asked,
        "corpus": [line.text for line in corpus.lines()[::10]],
        "four questions in one": [" ".join(asked[index : index + 4]) for index in range(0, len(asked), 8)],
    }
    for name, texts in sets.items():
        for text in texts:
            read(text)
        times = []
        for text in texts:
            start = time.process_time()
            assert read(text).parts
            times.append(time.process_time() - start)
        times.sort()
        p50, p99 = (1e3 * times[int((len(times) - 1) * share)] for share in (0.5, 0.99))
        print(f"\nreading, warm, {name}: n {len(times)}, p50 {p50:.2f} ms, p99 {p99:.2f} ms of CPU")


def test_warm_answers() -> None:
    texts = [line.text for line in (*frequent(), *others())] + [question["text"] for question in development()]
    pods = [gpu_pod(f"p{index}", f"n{index % 500}") for index in range(5000)]
    clusters = [
        cluster("prod", [gpu_node(f"n{index}", pool=f"pool-{index % 9}", gpus=8) for index in range(500)], pods=pods)
    ]
    for text in texts:
        answer(text)
    for name, known in (("no cluster", []), ("500 nodes, 5000 pods", clusters)):
        times = []
        for text in texts:
            start = time.process_time()
            reply = answer(text, clusters=known)
            times.append(time.process_time() - start)
            assert reply.text
        times.sort()
        p50, p99, most = (1e3 * times[int((len(times) - 1) * share)] for share in (0.5, 0.99, 1.0))
        print(
            f"\nquestions, warm, {name}: n {len(times)}, p50 {p50:.2f} ms, p99 {p99:.2f} ms, max {most:.2f} ms of CPU"
        )
    long = "the pod says 0/5 nodes are available and nothing else, " * 200
    start = time.process_time()
    assert answer(long).text
    print(f"\nquestions, a pasted log of {len(long)} characters: {(time.process_time() - start) * 1e3:.1f} ms")
