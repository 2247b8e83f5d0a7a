"""The guides (and the README) quote files as they are; the guides show what commands print."""

from __future__ import annotations

import io
import re
import shlex
from pathlib import Path

import pytest

from tilewright.api.opt.main import main
from tilewright.dialects.registry import all_dialects
from tilewright.lowering.targets import registry as targets
from tilewright.passes import registry as passes

ROOT = Path(__file__).parents[2]
GUIDES = sorted((ROOT / "docs" / "guides").glob("*.md"))
QUOTING = [*GUIDES, ROOT / "README.md"]
QUOTE = re.compile(r"<!-- (?P<file>\S+?)(?: \[(?P<part>\w+)\])? -->\n```\w+\n(?P<text>.*?)```\n", re.DOTALL)
CONSOLE = re.compile(r"```console\n(.*?)```\n", re.DOTALL)


def part_of(file: str, part: str | None) -> str:
    """A file's text, or what stands in it between `# [part]` and `# [/part]`."""
    text = (ROOT / file).read_text(encoding="utf-8")
    if part is None:
        return text
    return text.split(f"# [{part}]\n")[1].split(f"# [/{part}]\n")[0].strip("\n") + "\n"


def quotes(guide: Path) -> list[re.Match[str]]:
    return list(QUOTE.finditer(guide.read_text(encoding="utf-8")))


def sessions(guide: Path) -> list[tuple[str, str]]:
    """Each command of the guide's console blocks with what it shows."""
    found: list[tuple[str, str]] = []
    for block in CONSOLE.findall(guide.read_text(encoding="utf-8")):
        for session in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, shown = session.partition("\n")
            found.append((command, shown))
    return found


def pattern_of(shown: str) -> str:
    """A regular expression for an output in which a line `...` is any lines, and `...` at an end the line's rest."""
    pattern = ""
    for line in shown.splitlines():
        if line == "...":
            pattern += r"(?:.*\n)*?"
        elif line.endswith("..."):
            pattern += re.escape(line[:-3]) + r".*\n"
        else:
            pattern += re.escape(line) + r"\n"
    return pattern


@pytest.mark.parametrize("guide", QUOTING, ids=lambda guide: guide.stem)
def test_a_guide_quotes_files_as_they_are(guide: Path) -> None:
    found = quotes(guide)
    assert found
    for quote in found:
        assert quote["text"] == part_of(quote["file"], quote["part"]), f"{quote['file']} [{quote['part']}]"


@pytest.mark.parametrize(
    ("command", "shown"), [session for guide in GUIDES for session in sessions(guide)], ids=lambda text: text[:60]
)
def test_commands_print_what_the_guide_shows(command: str, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(passes, "_registered", {})
    monkeypatch.setattr(targets, "_registered", {})
    program, *words = shlex.split(command)
    assert program == "tilewright-opt"
    out, err = io.StringIO(), io.StringIO()
    main(words, io.StringIO(""), out, err)
    printed = out.getvalue() + err.getvalue()
    assert re.fullmatch(pattern_of(shown), printed), printed


@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.stem)
def test_the_blocks_of_a_guide_are_a_file_that_runs(
    guide: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(passes, "_registered", {})
    monkeypatch.setattr(targets, "_registered", {})
    path = tmp_path / "blocks.py"
    blocks = re.findall(r"```python\n(.*?)```\n", guide.read_text(encoding="utf-8"), re.DOTALL)
    path.write_text("\n".join(blocks), encoding="utf-8")
    passes.load_passes_from(path)
    if guide.stem == "adding-a-target":
        assert "__kernel __attribute__" in capsys.readouterr().out
        assert targets.all_targets()["opencl"]()().name == "opencl"
    else:
        assert "exact-reciprocals" in passes.all_passes()


def test_the_pass_guide_lists_every_op_with_its_module() -> None:
    text = (ROOT / "docs" / "guides" / "writing-a-pass.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z_]+\.[a-z_.]+)` \| (.*) \|$", text, re.MULTILINE)
    shown = {(module, name) for module, names in rows for name in re.findall(r"`(\w+)`", names)}
    home = "tilewright.dialects."
    ops = [op for load in all_dialects().values() for op in load().operations if op.__module__.startswith(home)]
    assert shown == {(op.__module__.removeprefix(home), op.__name__) for op in ops}


def test_what_differs_is_seen() -> None:
    assert re.fullmatch(pattern_of("a\n...\nb ...\n"), "a\nx\ny\nb c\n")
    assert not re.fullmatch(pattern_of("a\n...\nb\n"), "a\nx\ny\nb c\n")
    assert not re.fullmatch(pattern_of("a.c\n"), "abc\n")
