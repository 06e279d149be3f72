"""Sums of products."""

from collections.abc import Iterator, Mapping

from tests.pulse.cases.build import Case, cases, floats, node

SIZES = {
    "a": 2,
    "b": 3,
    "c": 4,
    "d": 5,
    "h": 2,
    "i": 3,
    "j": 4,
    "k": 5,
    "n": 3,
    "q": 6,
    "t": 7,
    "v": 4,
    "w": 6,
}

CASES: Mapping[str, str] = {
    "bij,bjk->bik": "b",
    "btc,cd->btd": "t",
    "btn,nhd->bthd": "t",
    "bcvt,vw->bcwt": "t",
    "bhqd,bhkd->bhqk": "q",
    "bhqk,bhkd->bhqd": "q",
    "nkctv,kvw->nctw": "t",
    "abc,bd,ci->adi": "a",
    "bt,b->bt": "t",
    "i,j->ij": "i",
    "ij->ji": "j",
    "ij->": "",
    "ij,j": "i",
    "ij,ij->": "",
    "ab,cd->bd": "d",
    "ii->i": "",
    "iit->ti": "t",
    "...ij,...jk->...ik": "i",
    "t...,...->t...": "t",
    "ab...t->b...t": "t",
    "a,b,c->": "",
}
"""Equation -> the label that is the stream."""


def einsum() -> Iterator[Case]:
    """One, two and three operands; batches, diagonals, ellipses, no arrow."""
    for number, (equation, stream) in enumerate(CASES.items()):
        texts = equation.split("->")[0].split(",")
        terms = dict(zip("xyz", (text.replace("...", "ac") for text in texts)))
        feeds = {name: floats(name, *(SIZES[label] for label in term)) for name, term in terms.items()}
        axes = {name: term.index(stream) for name, term in terms.items() if stream and stream in term}
        operator = node("Einsum", " ".join(feeds), "out", equation=equation)
        yield from cases(f"Einsum_{number}", [operator], feeds, None, (12,), axes or None, "out")
    weights = {"w": floats("w", 4, 5, 2)}
    operator = node("Einsum", "x w", equation="b t n, n h d -> b t h d")
    yield from cases("Einsum_weights", [operator], {"x": floats("x", 2, 7, 4)}, weights, (12,), {"x": 1})
    small = {"x": floats("x", 1, 3), "z": floats("z", 2, 3)}
    yield from cases(
        "Einsum_ones",
        [node("Einsum", "x z", equation="...t,...t->...t")],
        small,
        None,
        (12,),
        {"x": 1, "z": 1},
    )


ALL = (einsum,)
