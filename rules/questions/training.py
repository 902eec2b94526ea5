"""Makes the weights of the reader from the corpus: ``python -m rules.questions.training > weights.json``, then put it
into ``rules/questions/data``; with the argument ``words`` likewise ``language_words.yaml``.
Deterministic: the same corpus gives the same files.
"""

import hashlib
import math
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.resources import files

import msgspec

from rules.language import LANGUAGES
from rules.questions import corpus, data
from rules.questions.corpus import Line
from rules.questions.features import VERSION, features
from rules.questions.model import SCALE, Weights
from rules.questions.text import clean, words

_Packed = tuple[list[tuple[list[float], list[float], float]], int, list[int], float]
"""(weights, sums of squares, value) per feature of a line; column, further right columns, weight of the line."""
EPOCHS = 14
RATE = 0.2
DECAY = 1e-3
SMALLEST = 0.14
"""Weights that move a score by less in a text are left out of the file."""
MIN_LINES = 2
"""A stem, pair or group of letters must stand in so many lines."""
MADE_FROM = ("glossary.yaml", "lexicon.yaml", "causes.yaml", "filters.yaml", "labels.yaml", "provider_names.yaml")


def digest() -> str:
    """Fingerprint of what the weights depend on."""
    sums = hashlib.sha256(f"{VERSION} {EPOCHS} {RATE} {DECAY}".encode())
    for name in MADE_FROM:
        sums.update((files(data.__name__) / name).read_bytes())
    for line in corpus.lines():
        sums.update(f"{line.label}\t{line.text}\n".encode())
    return sums.hexdigest()[:16]


def _examples(lines: Sequence[Line]) -> list[tuple[dict[str, float], str, frozenset[str], float]]:
    """features, label, further right labels, weight: a small label counts as much as a large one, nearly."""
    per_label = Counter(line.label for line in lines)
    return [
        (features(clean(line.text)).values, line.label, line.also, (60 / per_label[line.label]) ** 0.5)
        for line in lines
    ]


def _kept(examples: Sequence[tuple[dict[str, float], str, frozenset[str], float]]) -> frozenset[str]:
    seen = Counter(name for values, *_ in examples for name in values)
    return frozenset(name for name, count in seen.items() if count >= MIN_LINES or name[0] in "gletxrfwo")


def train(lines: Sequence[Line], epochs: int = EPOCHS) -> Weights:
    """Weights that tell the labels of ``lines`` apart: softmax regression by AdaGrad, in a fixed order."""
    examples = _examples(lines)
    names = sorted({label for _, label, _, _ in examples})
    column = {name: index for index, name in enumerate(names)}
    width = len(names)
    kept = _kept(examples)
    rows: dict[str, list[float]] = {name: [0.0] * width for name in sorted(kept)}
    squares: dict[str, list[float]] = {name: [1e-2] * width for name in rows}
    bias, bias_squares = [0.0] * width, [1.0] * width
    packed: list[_Packed] = [
        (
            [(rows[name], squares[name], value) for name, value in values.items() if name in kept],
            column[label],
            [column[other] for other in also if other in column],
            weight,
        )
        for values, label, also, weight in examples
    ]
    means: dict[str, list[float]] = {name: [0.0] * width for name in rows}
    first_kept = epochs // 2
    for epoch in range(epochs):
        for found, right, also, weight in _shuffled(packed, epoch):
            totals = list(bias)
            for row, _, value in found:
                totals = [total + value * cell for total, cell in zip(totals, row, strict=True)]
            top = max(totals)
            raw = [math.exp(total - top) for total in totals]
            scale = sum(raw)
            slopes = [(index, cell / scale) for index, cell in enumerate(raw) if cell > 0.002 * scale or index == right]
            target = _target(raw, right, also)
            moved = [(index, weight * (share - target.get(index, 0.0))) for index, share in slopes]
            for index, slope in moved:
                bias_squares[index] += slope * slope
                bias[index] -= RATE * 0.3 * slope / math.sqrt(bias_squares[index])
            for row, square, value in found:
                for index, slope in moved:
                    push = slope * value + DECAY * row[index]
                    square[index] += push * push
                    row[index] -= RATE * push / math.sqrt(square[index])
        if epoch >= first_kept:
            # The mean of the later passes: the last lines seen pull less.
            for name, row in rows.items():
                means[name] = [mean + cell for mean, cell in zip(means[name], row, strict=True)]
    kept_epochs = epochs - first_kept
    rows = {name: [cell / kept_epochs for cell in row] for name, row in means.items()}
    return Weights(
        digest=digest(),
        labels=names,
        bias=[round(cell * SCALE) for cell in bias],
        rows={name: packed_row for name, row in rows.items() if (packed_row := _packed(row, _least(name)))},
    )


def _target(raw: Sequence[float], right: int, also: Sequence[int]) -> dict[int, float]:
    """Where two readings are right, both are, as far as each is believed already; the first one a little more."""
    if not also:
        return {right: 1.0}
    total = raw[right] + sum(raw[other] for other in also)
    target = {other: 0.4 * raw[other] / total for other in also}
    target[right] = 1.0 - sum(target.values())
    return target


def _shuffled(packed: Sequence[_Packed], epoch: int) -> Iterator[_Packed]:
    """All examples once, in an order that mixes the labels and differs from epoch to epoch."""
    count = len(packed)
    step = next(number for number in (7919 + 2 * epoch, 104729, 1299709) if math.gcd(number, count) == 1)
    return (packed[(index * step + epoch * 131) % count] for index in range(count))


def _least(name: str) -> float:
    """The least weight of a feature that is kept: groups of letters count little in a text."""
    return SMALLEST if name[0] not in "cbk" else SMALLEST * 1.5 if name[0] != "c" else SMALLEST * 2.5


def _packed(row: Sequence[float], least: float) -> list[int]:
    return [number for index, cell in enumerate(row) if abs(cell) >= least for number in (index, round(cell * SCALE))]


WORD_LINES = 2
"""In so many lines of one language, and in none of another, a word must stand to tell that language."""


def telling_words(lines: Sequence[Line]) -> dict[str, str]:
    """Words that only Spanish lines have, and those that only Italian ones have, for ``language_words.yaml``."""
    seen: dict[str, Counter[str]] = {language: Counter() for language in LANGUAGES}
    for line in lines:
        seen[line.language].update({word.folded for word in words(clean(line.text)) if word.folded.isalpha()})
    return {
        language: " ".join(
            sorted(
                word
                for word, times in seen[language].items()
                if times >= WORD_LINES
                and len(word) > 2
                and not any(word in seen[other] for other in LANGUAGES if other != language)
            )
        )
        for language in ("es", "it")
    }


def main() -> None:
    """Write the weights of the whole corpus but its held-out lines; with ``words`` the words that tell a language."""
    if sys.argv[1:] == ["words"]:
        told = telling_words([line for line in corpus.lines() if not line.held_out])
        head = "# Words that only lines of one language have; made by: python -m rules.questions.training words\n"
        sys.stdout.write(head + "".join(f"{language}: >-\n  {listed}\n" for language, listed in told.items()))
        return
    made = train([line for line in corpus.lines() if not line.held_out])
    sys.stdout.buffer.write(msgspec.json.encode(made) + b"\n")


if __name__ == "__main__":
    main()
