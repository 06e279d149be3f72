"""Run the suite with the lowest and the newest versions of the dependencies: ``python .ci/versions.py``.

Needs ``uv`` (``pip install uv``), which resolves, installs, and finds each Python. What follows ``--`` goes to pytest:

    python .ci/versions.py --python 3.11 3.13 --folder /tmp/versions -- tests/pulse/program -q
    python .ci/versions.py --write -- -n auto

Tests that fail are run once more by themselves, in one process: those with sound servers need a machine that is not
busy. With ``--folder``, ``--write`` writes the page from every environment that the folder has a result of.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "versions.md"
PYTHONS = ("3.11", "3.12", "3.13")
RESOLUTIONS = {"lowest": "lowest-direct", "newest": "highest"}
EXTRAS = ("test", "report")
STORED = "outcome.json"

HEAD = """# Versions

`python .ci/versions.py --write` writes this page: pytest on each Python, with the lowest version of each direct
dependency that `pyproject.toml` allows and that has a wheel for it, and with the newest. The arguments of pytest were:

```
{arguments}
```

*Passed alone*: of those that passed, how many failed while other processes ran and passed when run again by themselves.
"""


@dataclass(frozen=True)
class PytestRun:
    """A run of pytest in one environment.

    versions  package -> version, of the direct dependencies
    again     how many of those that passed failed first
    exit      of pytest; 0: nothing failed
    """

    python: str
    which: str
    versions: dict[str, str]
    passed: int
    skipped: int
    failed: int
    again: int
    exit: int


def main() -> None:
    """Run what the arguments say; the exit code is 1 where a run failed."""
    parser = argparse.ArgumentParser(
        prog="python .ci/versions.py", description="The suite on other versions."
    )
    parser.add_argument("--python", nargs="+", default=PYTHONS, metavar="VERSION", help="versions, or paths")
    parser.add_argument("--versions", nargs="+", choices=RESOLUTIONS, default=list(RESOLUTIONS))
    parser.add_argument("--folder", type=Path, help="keep the environments here, for the next time")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    parser.add_argument("arguments", nargs="*", help="of pytest, after --")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="versions-") as temporary:
        folder = options.folder or Path(temporary)
        outcomes: list[PytestRun] = []
        for python in options.python:
            for resolution in options.versions:
                outcomes.append(run_tests_of_version(python, resolution, folder.resolve(), options.arguments))
                print(line(outcomes[-1]), flush=True)
        if options.write:
            PAGE.write_text(page(stored_outcomes(folder), options.arguments))
    sys.exit(any(outcome.exit for outcome in outcomes))


def run_tests_of_version(python: str, resolution: str, folder: Path, arguments: Sequence[str]) -> PytestRun:
    """Make an environment, and run pytest in it."""
    home = folder / f"{python.strip(os.sep).replace(os.sep, '-')}-{resolution}"
    home.mkdir(parents=True, exist_ok=True)
    requirements = home / "requirements.txt"
    environment = home / "environment"
    uv("venv", "--quiet", "--allow-existing", "--python", python, str(environment))
    inside = environment / "bin" / "python"
    extras = [word for extra in EXTRAS for word in ("--extra", extra)]
    expected = ["--resolution", RESOLUTIONS[resolution], "--only-binary", ":all:", "--python", str(inside)]
    uv("pip", "compile", "--quiet", "pyproject.toml", *extras, *expected, "--output-file", str(requirements))
    uv("pip", "sync", "--quiet", "--python", str(inside), str(requirements))
    uv("pip", "install", "--quiet", "--python", str(inside), "--no-deps", "--editable", str(ROOT))
    pytest = [str(inside), "-m", "pytest", "-o", f"cache_dir={home / 'cache'}"]
    code, counts = run_environment([*pytest, *arguments], environment, home / "result.xml")
    failed = counts["failures"] + counts["errors"]
    left = failed
    if failed:
        code, second = run_environment([*pytest, "--last-failed"], environment, home / "again.xml")
        left = second["failures"] + second["errors"]
    version = subprocess.run(
        [str(inside), "-c", "import platform; print(platform.python_version())"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    passed = counts["tests"] - left - counts["skipped"]
    outcome = PytestRun(
        version, resolution, versions(inside), passed, counts["skipped"], left, failed - left, code
    )
    (home / STORED).write_text(json.dumps(asdict(outcome)))
    return outcome


def run_environment(command: Sequence[str], environment: Path, result: Path) -> tuple[int, Counter[str]]:
    """The exit code of pytest, and what its tests came to."""
    result.unlink(missing_ok=True)
    variables = os.environ | {"VIRTUAL_ENV": str(environment)}
    process = subprocess.run([*command, f"--junitxml={result}"], cwd=ROOT, env=variables, check=False)
    counts = Counter[str]()
    for suite in ElementTree.parse(result).iter("testsuite") if result.exists() else ():
        counts.update({name: int(suite.get(name, 0)) for name in ("tests", "failures", "errors", "skipped")})
    return process.returncode, counts


def stored_outcomes(folder: Path) -> list[PytestRun]:
    """The results of all environments in a folder, by version."""
    results = [PytestRun(**json.loads(path.read_text())) for path in folder.glob(f"*/{STORED}")]
    return sorted(
        results, key=lambda result: ([int(part) for part in result.python.split(".")], result.which)
    )


def uv(*arguments: str) -> str:
    """The output of uv; the script ends with the error where it fails."""
    try:
        process = subprocess.run(["uv", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        sys.exit("uv is missing: pip install uv")
    if process.returncode:
        sys.exit(f"uv {' '.join(arguments)}\n{process.stderr}")
    return process.stdout


def versions(python: Path) -> dict[str, str]:
    """The direct dependencies that an environment has, those of the extras after the others."""
    installed = json.loads(uv("pip", "list", "--quiet", "--python", str(python), "--format", "json"))
    version_of = {entry["name"]: entry["version"] for entry in installed}
    return {name: version_of[name] for name in direct() if name in version_of}


def direct() -> Iterator[str]:
    """The names of the direct dependencies."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for requirement in [
        *project["dependencies"],
        *(requirement for extra in EXTRAS for requirement in project["optional-dependencies"][extra]),
    ]:
        yield requirement.partition(">")[0].strip()


def page(outcomes: Sequence[PytestRun], arguments: Sequence[str]) -> str:
    """The document: what passed, and what was installed."""
    rows = [
        [
            result.python,
            result.which,
            f"{result.passed:,}",
            str(result.skipped),
            str(result.failed),
            str(result.again),
        ]
        for result in outcomes
    ]
    names = list(dict.fromkeys(name for result in outcomes for name in result.versions))
    installed = [[name, *(result.versions.get(name, "") for result in outcomes)] for name in names]
    return "\n\n".join(
        [
            HEAD.format(arguments="\n".join(arguments) or "none: the whole suite").strip(),
            table(["Python", "versions", "passed", "skipped", "failed", "passed alone"], rows),
            table(["package", *(f"{result.python}, {result.which}" for result in outcomes)], installed)
            + "\n",
        ]
    )


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def line(outcome: PytestRun) -> str:
    """An outcome in words."""
    counts = (
        f"{outcome.passed} passed ({outcome.again} alone), {outcome.skipped} skipped, {outcome.failed} failed"
    )
    listed = ", ".join(f"{name} {version}" for name, version in outcome.versions.items())
    return f"Python {outcome.python}, {outcome.which}: {counts}, exit code {outcome.exit} ({listed})"


if __name__ == "__main__":
    main()
