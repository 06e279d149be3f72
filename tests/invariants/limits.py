"""The limits of files, lines and functions in all languages, and the words that name nothing."""

PACKAGES = ("pulse", "streaming", "bench", "demos")
FOLDERS = (*PACKAGES, "docs", "tests")
MAX_LINES = 450
MAX_COLUMNS = 120
MAX_BODY_LINES = 60
"""The lines of a function, its signature and its docstring left out."""
MAX_TEST_NAME = 60
"""Maximum number of characters in the name of a test."""
VAGUE = {
    "own",
    "agreed",
    "asked",
    "each",
    "found",
    "given",
    "got",
    "had",
    "heard",
    "made",
    "most",
    "said",
    "seen",
    "thing",
    "things",
    "told",
    "wanted",
}
"""Names that do not say what a parameter or a local holds."""
