"""What words do in NumPy, to one image or a list of images: how a program runs, and the reference for the library."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Int64

from jaxarc.search import lists
from jaxarc.search.images import Images
from jaxarc.search.words import FUNCTIONS, Word


class State(NamedTuple):
    """A list of images, or a list of one. A state whose first place has no image is no answer."""

    images: Images  # each different one once
    numbers: Int64[np.ndarray, " L"]  # of the images at the places of the list; -1 where one has no answer


def state_of(images: Images, numbers: Int64[np.ndarray, " L"] | None = None) -> State:
    """Return the list of some images, by their numbers or all of them."""
    first: dict[tuple[int, int, tuple[int, ...], bytes], int] = {}  # image -> its first place
    place = np.full(len(images) + 1, -1)  # the last one is of the number -1
    for index in np.flatnonzero(images.height > 0).tolist():
        grid = images.grid(index)
        key = int(images.row[index]), int(images.column[index]), grid.shape, grid.tobytes()
        place[index] = first.setdefault(key, index)
    kept, renamed = np.unique(place, return_inverse=True)
    has_none = int(kept[0] < 0)
    numbers = np.arange(len(images)) if numbers is None else numbers
    return State(images.take(kept[has_none:]), renamed.reshape(-1)[numbers] - has_none)


def apply(word: Word, state: State) -> State:
    """Return what a word makes of a state."""
    name, arguments = word.name, [str(one) for one in word.arguments]
    images, numbers = state
    if FUNCTIONS[name].of_images is not None:
        return state_of(word.of_images(images), numbers)
    if name == "split":
        return state_of(lists.SPLITS[arguments[0]](images.take(numbers[:1])).take(slice(lists.LENGTH)))
    if name == "item":
        return State(images, numbers[int(arguments[0]) :][:1])
    known = numbers[numbers >= 0]
    if name in lists.CHOICES:
        values = {**lists.FEATURES, **lists.KEYS}[arguments[1]](images)[known]
        return State(images, lists.CHOICES[name](values, known, arguments[0]))
    if name == "compare":
        if len(known) != 2 or numbers[1] < 0:
            return State(images, numbers[:0])
        return state_of(lists.combined(images.take(known[:1]), images.take(known[1:]), arguments[0]))
    if name == "stack":
        return state_of(lists.stacked(images.take(known), arguments[0] == "first"))
    return state_of(lists.joined(images.take(known), 1 if arguments[0] == "rows" else 2))
