"""A tiny pair whose target is a Markov chain: what follows a token is drawn from a distribution known exactly.

A token's class is its id modulo CLASSES. Its embedding is a row of a Hadamard matrix, the class's own; its RMS is 1,
so the norms leave it as it is. Each class has a few successors, and no token is a successor of two classes, so a
row of the head is a logit times one row of the matrix: every logit is exact in bfloat16. The draft knows the same
successors, weighs them in its own way, and takes a wrong one for the most likely in some classes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from .pairs import HIDDEN, VOCAB, Matrix, Tokens

CLASSES = 16
# Logits of the successors, of even and of odd classes. All others have 0, which nobody will see drawn.
TARGET = ((40.0, 38.5, 38.0, 37.5, 37.0, 36.5), (40.0, 39.5, 38.5, 38.0, 37.5, 37.0))
DRAFT = (40.0, 39.0, 38.0, 37.5, 37.0, 36.5)
DRAFT_IS_WRONG = (5, 12)  # classes whose first two successors the draft mistakes for one another


def tokens() -> Tokens:
    """The pair, for write_pair."""
    embedding = [[float(sign) for sign in _signs(token % CLASSES)] for token in range(VOCAB)]
    target = [TARGET[of % 2] for of in range(CLASSES)]
    draft = [(DRAFT[1], DRAFT[0], *DRAFT[2:]) if of in DRAFT_IS_WRONG else DRAFT for of in range(CLASSES)]
    return Tokens(embedding, _head(target), _head(draft), constant=1.0)


def successors(of: int) -> list[int]:
    """The tokens that may follow one of this class. The first ones alone lead through every class."""
    return [CLASSES * (1 + rank) + (5 * of + 3 * rank + 1) % CLASSES for rank in range(len(DRAFT))]


def distribution(of: int, temperature: float, top_k: int = 0, top_p: float = 1.0) -> dict[int, float]:
    """What follows a token of this class, by the definition of each sampling parameter."""
    logits = TARGET[of % 2]  # in descending order, no two alike
    if temperature == 0:
        return {successors(of)[0]: 1.0}
    weights = [math.exp((logit - logits[0]) / temperature) for logit in logits[: top_k or None]]
    kept, mass = 0, 0.0
    while mass < top_p * sum(weights) and kept < len(weights):
        mass += weights[kept]
        kept += 1
    return {token: weight / mass for token, weight in zip(successors(of), weights[:kept], strict=False)}


def entropy(probabilities: Sequence[float]) -> float:
    """In bits."""
    return -sum(p * math.log2(p) for p in probabilities if p)


def _signs(row: int) -> list[int]:
    """A row of the Hadamard matrix; component 0 is 1 in every row."""
    return [1 - 2 * ((row & column).bit_count() % 2) for column in range(HIDDEN)]


def _head(logits: Sequence[Sequence[float]]) -> Matrix:
    head = [[0.0] * HIDDEN for _ in range(VOCAB)]
    for of, ladder in enumerate(logits):
        for token, logit in zip(successors(of), ladder, strict=True):
            head[token] = [logit * sign / HIDDEN for sign in _signs(of)]
    return head
