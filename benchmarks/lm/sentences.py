"""Film-review sentences made of parts, in two halves that share neither words nor frames; and openings to go on from."""

from __future__ import annotations

import itertools
import random

GOOD = {
    "A": "wonderful brilliant delightful charming moving superb funny clever warm beautiful gripping touching".split(),
    "B": "excellent fantastic lovely enjoyable terrific hilarious graceful thrilling impressive fresh inspiring joyful".split(),
}
BAD = {
    "A": "terrible boring awful dull clumsy stupid tedious ugly annoying pointless lifeless messy".split(),
    "B": "horrible dreadful lousy irritating bland lazy painful silly shallow weak forgettable miserable".split(),
}
THINGS = {
    "A": ["the story", "the acting", "this film", "the script", "the ending"],
    "B": ["the plot", "the cast", "this movie", "the dialogue", "the direction"],
}
FRAMES = {
    "A": [
        "{t} is {w} from beginning to end",
        "i found {t} {w}",
        "{t} felt {w} to me",
        "what a {w} evening , {t} stays with you",
    ],
    "B": [
        "everyone agreed that {t} was {w}",
        "{t} turned out {w}",
        "for two hours {t} is simply {w}",
        "as for {t} , it could not be more {w}",
    ],
}
OPENINGS = [
    "the film begins with",
    "after ten minutes i",
    "the two main actors",
    "what i remember most is",
    "the director seems to",
    "by the time it ended",
    "my friend told me that",
    "compared with the book ,",
    "the music in this film",
    "from the first scene on",
    "it is the kind of story",
    "the audience around me",
    "there is a moment when",
    "halfway through , the plot",
    "the child in the film",
    "i went to see it because",
    "the last half hour",
    "every scene in the house",
    "the costumes and the colours",
    "people will say that this",
]
PLACES = [
    "",
    "at the cinema , ",
    "on a rainy evening , ",
    "to be honest , ",
    "in my opinion , ",
    "as a whole , ",
    "last night , ",
    "once more , ",
]


def sentences(half: str) -> tuple[list[str], list[str]]:
    """(positive, negative) of one half, shuffled the same way every time."""
    made: list[list[str]] = []
    for words in (GOOD[half], BAD[half]):
        each = [f.format(t=t, w=w) for f, t, w in itertools.product(FRAMES[half], THINGS[half], words)]
        random.Random(0).shuffle(each)
        made.append(each)
    return made[0], made[1]


def openings() -> tuple[list[str], list[str]]:
    """(to train on, held out): no opening is in both."""
    train, held = OPENINGS[:14], OPENINGS[14:]
    return [p + o for o in train for p in PLACES], [p + o for o in held for p in PLACES]
