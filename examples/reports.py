#!/usr/bin/env python3
"""Writes the data of domain.sh: invented reports of a harbor, and sentences of such reports whose words are tagged.

    python3 reports.py FOLDER

FOLDER/text.txt has a document after each blank line; train.conll, dev.conll, and test.conll have a word and its tag on each line.
No ship of the test sentences is in the training sentences, so its name must be recognized by what stands around it."""

import os
import random
import sys

SHIPS = [a + " " + b for a in "Silver North Grey Amber Iron Swift Pale Morning".split() for b in "Petrel Maren Anchor Widow Lantern Star".split()]
PORTS = "Tarnbay Holmwick Vessely Orrin Skerry Dunhaven Malthe Korsby".split()
GOODS = "salt timber copper barley wool tar herring slate".split()
FORMS = [
    "The brig {ship} left {port} with forty tons of {goods} .",
    "{ship} was unloaded at {port} ; the {goods} had become wet .",
    "No pilot was found for {ship} , which waits off {port} .",
    "The master of {ship} sold his {goods} in {port} before the frost .",
    "At {port} the price of {goods} rose again when {ship} came in .",
    "A gale drove {ship} ashore near {port} , and the crew saved the {goods} .",
    "{port} owes the owners of {ship} for {goods} delivered in spring .",
    "Demurrage was paid for {ship} , and lighterage of {goods} at {port} .",
]


def sentence(ships: list[str]) -> list[tuple[str, str]]:
    names = {"{ship}": ("SHIP", random.choice(ships)), "{port}": ("PORT", random.choice(PORTS)), "{goods}": ("GOODS", random.choice(GOODS))}
    words = []
    for word in random.choice(FORMS).split():
        if word in names:
            tag, name = names[word]
            words += [(part, ("B-" if i == 0 else "I-") + tag) for i, part in enumerate(name.split())]
        else:
            words.append((word, "O"))
    return words


def main() -> None:
    random.seed(1)
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "text.txt"), "w") as text:
        for _ in range(3000):
            for _ in range(random.randint(3, 8)):
                text.write(" ".join(word for word, _ in sentence(SHIPS)).replace(" .", ".").replace(" ,", ",").replace(" ;", ";") + "\n")
            text.write("\n")
    random.shuffle(SHIPS)
    for name, count, ships in (("train", 200, SHIPS[:24]), ("dev", 100, SHIPS[24:36]), ("test", 200, SHIPS[36:])):
        with open(os.path.join(folder, name + ".conll"), "w") as file:
            for _ in range(count):
                file.write("".join(f"{word} {tag}\n" for word, tag in sentence(ships)) + "\n")


main()
