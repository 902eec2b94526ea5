"""What holds for every input."""

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.compat import check, data, image_cuda, recognise
from rules.compat.nvidia import toolkits
from rules.compat.report import document, judge
from rules.compat.requirement import Properties, evaluate
from rules.compat.symptoms import find
from rules.compat.versions import amd_driver, key, nvidia_driver, toolkit

CUDA = st.sampled_from([row.version for row in toolkits()] + ["12", "13", "12.4", "12.8", "13.4", "12.7", "9.0"])
NVIDIA = st.sampled_from([row.labels[0] for row in data.gpus() if row.vendor == "nvidia"])
DRIVER = st.one_of(
    st.sampled_from([row.driver for row in toolkits() if row.driver]),
    st.builds(
        "{}.{}.{:02}".format,
        st.sampled_from([row.branch for row in data.cuda().branches]),
        st.integers(0, 260),
        st.integers(0, 30),
    ),
)
ANY_TEXT = st.one_of(st.none(), st.text(max_size=80), st.from_regex(r"[a-z0-9./:@_<>=!, -]{0,60}", fullmatch=True))


@given(first=DRIVER, second=DRIVER, cuda=CUDA, gpu=st.one_of(st.none(), NVIDIA))
@settings(max_examples=400, deadline=None)
def test_a_newer_driver_never_makes_an_ok_worse(first: str, second: str, cuda: str, gpu: str | None) -> None:
    older, newer = sorted((first, second), key=key)
    if check(driver=older, cuda=cuda, gpu=gpu).verdict != "ok":
        return
    verdict = check(driver=newer, cuda=cuda, gpu=gpu)
    if verdict.verdict != "ok":
        assert verdict.verdict == "arch_unsupported"
        assert {reason.key for reason in verdict.reasons} == {"branch_dropped_gpu"}


@given(first=DRIVER, second=DRIVER, cuda=CUDA, gpu=st.one_of(st.none(), NVIDIA))
@settings(max_examples=400, deadline=None)
def test_a_newer_driver_never_loses_minor_version_compatibility(
    first: str, second: str, cuda: str, gpu: str | None
) -> None:
    older, newer = sorted((first, second), key=key)
    if check(driver=older, cuda=cuda, gpu=gpu).verdict != "ok_minor_compat":
        return
    verdict = check(driver=newer, cuda=cuda, gpu=gpu)
    dropped = {reason.key for reason in verdict.reasons} == {"branch_dropped_gpu"}
    assert verdict.verdict in ("ok", "ok_minor_compat") or dropped


@given(driver=DRIVER, cuda=CUDA, gpu=NVIDIA)
@settings(max_examples=200, deadline=None)
def test_cuda_compat_is_only_ever_offered_to_cards_that_may_use_it(driver: str, cuda: str, gpu: str) -> None:
    if check(driver=driver, cuda=cuda, gpu=gpu).verdict == "needs_forward_compat":
        found = recognise(gpu)
        assert found is not None
        assert found.gpu_class in ("datacenter", "superchip")


@given(driver=DRIVER, cuda=CUDA)
@settings(max_examples=100, deadline=None)
def test_equal_questions_get_equal_answers_in_whatever_spelling(driver: str, cuda: str) -> None:
    plain = check(driver=driver, cuda=cuda, gpu="L4")
    assert check(driver=f"{driver}-1ubuntu1", cuda=f"CUDA {cuda}", gpu="NVIDIA-L4-SHARED") == plain


@given(driver=ANY_TEXT, cuda=ANY_TEXT, image=ANY_TEXT, gpu=ANY_TEXT, vendor=ANY_TEXT)
@settings(max_examples=400, deadline=None)
def test_no_text_makes_it_raise(
    driver: str | None, cuda: str | None, image: str | None, gpu: str | None, vendor: str | None
) -> None:
    verdict = check(driver=driver, cuda=cuda, image=image, gpu=gpu, vendor=vendor)
    assert verdict.reasons
    msgspec.json.encode(document(verdict, "it"))


@given(text=st.text(max_size=200))
@settings(max_examples=400, deadline=None)
def test_no_text_makes_a_parser_raise(text: str) -> None:
    nvidia_driver(text)
    amd_driver(text)
    toolkit(text)
    recognise(text)
    image_cuda(text)
    find(text)
    for mode in ("legacy", "go"):
        here = Properties(cuda="12.4", driver="550.54.15", arch="9.0", brand="nvidia")
        assert evaluate(text, here, mode=mode) in ("satisfied", "not_satisfied", "error")


@given(text=st.text(max_size=60))
@settings(max_examples=300, deadline=None)
def test_an_unreadable_driver_is_never_ok(text: str) -> None:
    if nvidia_driver(text) is None:
        assert check(driver=text, cuda="12.4", gpu="L4").verdict == "unknown"


@given(value=st.one_of(st.integers(), st.floats(allow_nan=False), st.text(max_size=10), st.none()))
@settings(max_examples=100, deadline=None)
def test_records_may_hold_numbers(value: float | str | None) -> None:
    assert judge({"id": 1, "driver": value, "cuda": value, "expect": "ok"}).verdict
