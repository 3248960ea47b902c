"""The words of a turned task: if ``half(left)`` explains a task, ``half(right)`` explains its mirror image.

The map is found by trying: a word turns into the one that makes of turned samples what the word makes of the samples,
turned. So it holds for any vocabulary. A word without such a counterpart, as ``to_origin`` has none for a mirror
image, turns into none. Two steps give all eight symmetries::

    mirrored    half(left) -> half(right)      smear(up) -> smear(up)      pick(least, column) -> pick(most, column)
    transposed  half(left) -> half(top)        smear(up) -> smear(left)    pick(least, column) -> pick(least, row)
"""

import functools
from collections.abc import Iterator
from typing import Final, Literal, TypeAlias

import numpy as np
from jaxtyping import Int64

from jaxarc.search.descriptions import keys_of, word_keys
from jaxarc.search.images import Images, images_of
from jaxarc.search.interpreter import State, apply, state_of
from jaxarc.search.words import FUNCTIONS, Word, vocabulary

NUM_SYMMETRIES: Final = 8
_SAMPLES: Final = 5  # of each kind
_AGREEMENT: Final = 0.6  # share of the samples, as two rays that meet, or two images as large, may be taken in order
_PLACE: Final = 0.1  # what the positions of images count: what grows does so to the right and down
_FRAME: Final = 24  # of the samples, and of what words make of them
_SPLITS: Final = (Word("split", ("objects",)), Word("split", ("2_beside",)), Word("split", ("2_above",)))
_Step: TypeAlias = Literal["none", "transposed", "mirrored"]
_Outcome: TypeAlias = list[tuple[tuple, ...]]  # for each sample the images that a word makes; none without an answer


@functools.cache
def turned_keys(symmetry: int) -> tuple[int, ...]:
    """Return of each key the place of its counterpart under a symmetry, and -1 where it has none."""
    places = np.arange(len(word_keys()))
    # To mirror rows is to transpose, to mirror columns, and to transpose back.
    rows: tuple[_Step, ...] = ("transposed", "mirrored", "transposed")
    for bit, steps in ((1, rows[:1]), (2, rows[1:2]), (4, rows)):
        for step in steps if symmetry & bit else ():
            places = np.where(places < 0, -1, _counterparts(step)[places])
    return tuple(places.tolist())


@functools.cache
def _counterparts(step: _Step) -> Int64[np.ndarray, " k"]:
    """Find the counterpart of each key under one step."""
    words = vocabulary(range(1, 4), range(1, 4), [(1, 3), (3, 1)], [(9, 12), (12, 9)])
    wanted = dict(_outcomes(words, "none", step))
    made = dict(_outcomes(words, step, "none"))
    places = np.full(len(word_keys()), -1)
    places[0] = 0  # of no word
    for word, outcome in wanted.items():
        # Of words that are as good the word itself comes first.
        alike = {one: _agreement(outcome, made[one]) for one in [word, *words] if one.name == word.name}
        best = max(alike, key=lambda one: alike[one])
        if alike[best] >= _AGREEMENT:
            (key,), (other,) = keys_of([word]), keys_of([best])
            places[key] = other
    # A step undoes itself, so two keys are counterparts of each other or of none.
    is_mutual = (places >= 0) & (places[places] == np.arange(len(places)))
    return np.where(is_mutual, places, -1)


def _agreement(one: _Outcome, other: _Outcome) -> float:
    """Return the share of the samples of which two words make the same images, at the same positions or elsewhere."""
    informative = [(mine, theirs) for mine, theirs in zip(one, other, strict=True) if mine or theirs]
    same = sum(mine == theirs for mine, theirs in informative)
    alike = sum([each[2:] for each in mine] == [each[2:] for each in theirs] for mine, theirs in informative)
    return ((1 - _PLACE) * alike + _PLACE * same) / max(len(informative), 1)


def _outcomes(words: list[Word], before: _Step, after: _Step) -> Iterator[tuple[Word, _Outcome]]:
    """Yield what each word makes of the samples, which are turned before, or of which the results are turned."""
    grids = _samples()
    shapes = np.array([grid.shape for grid in grids])
    images = images_of(grids, _FRAME)
    alone = [state_of(images.take(slice(place, place + 1))) for place in range(len(grids))]
    lists = [apply(split, one) for split in _SPLITS for one in alone]
    owners = np.tile(shapes, (len(_SPLITS), 1))
    start = _turned(images, shapes, before)
    lists = [
        State(_turned(one.images, owner[None], before), one.numbers) for one, owner in zip(lists, owners, strict=True)
    ]
    for word in words:
        if FUNCTIONS[word.name].of_images is not None:
            made = _turned(word.of_images(start), shapes, after)
            yield word, [_seen(made.take(slice(place, place + 1))) for place in range(len(made))]
            continue
        is_split = word.name == "split"
        starts = [state_of(start.take(slice(place, place + 1))) for place in range(len(start))] if is_split else lists
        seen = []
        for one, owner in zip(starts, shapes if is_split else owners, strict=True):
            made, numbers = apply(word, one)
            seen.append(_seen(_turned(made.take(numbers[numbers >= 0]), owner[None], after)))
        # The order of the parts of a split is that of the rows and columns, so it is not compared.
        yield word, [tuple(sorted(one)) for one in seen] if is_split else seen


def _turned(images: Images, shapes: Int64[np.ndarray, "N 2"], step: _Step) -> Images:
    """Turn images with their positions in grids of some shapes."""
    if step == "none" or not len(images):
        return images
    cells, row, column, height, width = images.cells, images.row, images.column, images.height, images.width
    if step == "transposed":
        return Images(cells.transpose(0, 2, 1).copy(), column, row, width, height)
    span = np.arange(images.frame)
    source = np.where(span < width[:, None], width[:, None] - 1 - span, span)
    flipped = np.take_along_axis(cells, np.broadcast_to(source[:, None, :], cells.shape), 2)
    return Images(flipped, row, (shapes[:, 1] - column - width).astype(np.int32), height, width)


def _seen(images: Images) -> tuple[tuple, ...]:
    return tuple(
        (int(images.row[one]), int(images.column[one]), images.grid(one).shape, images.grid(one).tobytes())
        for one in np.flatnonzero(images.height > 0).tolist()
    )


def _samples() -> list[np.ndarray]:
    """Draw sparse grids, boxes, patterns with holes, and mirror images with holes, so that each word has some to do."""
    random = np.random.default_rng(0)
    grids = []
    for _ in range(_SAMPLES):
        height, width = random.integers(3, 8, 2)
        sparse = np.where(random.random((height, width)) < 0.2, random.integers(1, 4, (height, width)), 0)
        boxes = np.zeros((height, width), np.int64)
        for color in range(1, 3):
            top, left = random.integers(0, height - 1), random.integers(0, width - 1)
            boxes[top : top + random.integers(1, 4), left : left + random.integers(1, 4)] = color
        tile = random.integers(1, 4, random.integers(1, 4, 2))
        pattern = np.tile(tile, (4, 4))[:height, :width]
        mirrored = np.concatenate([sparse, sparse[:, ::-1]], 1)
        with_hole = [one.copy() for one in (pattern, mirrored)]
        for one in with_hole:
            one[:2, : random.integers(1, 3)] = 0
        grids += [sparse, boxes, boxes | sparse, pattern, *with_hole]
    return [grid.astype(np.int8) for grid in grids]
