"""The tuned numbers of the order in which a search works: each with its unit, and why there is such a number.

They were tuned on training tasks, by the outputs that are solved in a given time (benchmarks/search_ledger.py). Costs
are those of programs: a word of lists costs 1, a word of images 2.
"""

from typing import Final, NamedTuple


class Limits(NamedTuple):
    """How far each stage goes before the next one begins."""

    # Costs of states. Another image word costs 2, and there are about 150.
    first_cost: int = 2  # one image word: a look at all that is simple, in a tenth of a second
    second_cost: int = 4  # two image words: seconds; all namings and sides come before states that cost more
    ranked_cost: int = 3  # with colors named by rank: the time goes to the other namings, which explain more

    # Costs of candidates, and the charges for what is often wrong though it fits.
    sure_cost: int = 7  # a program that fits and costs more is often wrong: a cheaper one comes later, or more of them
    halving_cost: float = 6.0  # a program that costs this much more has half a vote; 4 to 10 solve as many outputs
    voters: int = 2  # programs of a view that vote for an answer: the others are mostly variants of these
    turned_cost: int = 6  # for a side that each grid chooses by its cells: three words, as one of six sides is
    odd_size_cost: int = 10  # for an answer of another size where all outputs have that of their inputs
    stray_cost: int = 20  # for a color that neither an output nor the test input has: answers rarely have one
    missed_cost: int = 25  # for a demonstration that is not explained; more than for one explained by heart, 10
    fewest_explained: int = 2  # demonstrations that say something without the one that is left out

    # Shares of the time.
    words_share: float = 0.7  # until then words are applied; the rest is for what the finders make of the states
    left_out_share: float = 0.15  # for programs that explain all demonstrations but one: a graph for each one left out
    rules_share: float = 0.08  # for each form of rules under each naming: all forms of two namings take half

    # Numbers of candidates.
    second_programs: int = 2  # answers from which a second program starts: each needs a graph of its own
    rules: int = 3  # rules of one form that are candidates: others cost more, and a task has few attempts
    exact_pieces: int = 6  # single pieces that equal all outputs, the cheapest: the same
    starts: int = 24  # first pieces from which stacks grow, since the piece with most right cells may mislead
    starts_of_some: int = 6  # the same for a set of demonstrations, of which there are many
    sets_of_some: int = 30  # sets of demonstrations that are explained alone, the largest first: all of five
    layers: int = 6  # of a stack; with more it paints the outputs by heart

    # Memory.
    view_share: float = 0.05  # of that of a search, for each view at least, as the last ones are small


LIMITS: Final = Limits()
