"""The words of a command line as mlir-opt's users write them, brought to this tool's own spelling.

-split-input-file                       --split-input-file           one dash for two
--mlir-print-ir-after-all               --print-ir-after-all         mlir-opt's prefix
--mlir-pass-statistics                  --statistics                 ... and its names
--verify-each=false                     --no-verify-each
--cse --lin-to-tile='tile-sizes=8,8'    a pipeline, in order
--mlir-disable-threading                nothing: there are no threads
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tilewright.diagnostics import TilewrightError

_PREFIX = "--mlir-"

_OTHER_NAMES = {
    "--pass-statistics": "--statistics",
    "--pass-pipeline-crash-reproducer": "--crash-reproducer",
    "--show-dialects": "--list-dialects",
    "--run-reproducers": "--run-reproducer",
}
"""What mlir-opt calls what has another name here; its prefix is gone already."""

_WITHOUT_MEANING = frozenset(
    {
        "--disable-threading",
        "--pass-pipeline-local-reproducer",
        "--print-local-scope",
        "--print-op-on-diagnostic",
        "--print-stacktrace-on-diagnostic",
        "--pass-statistics-display",
        "--timing-display",
    }
)
"""What mlir-opt has to be told and this tool does anyway, or cannot do; scripts that say it run."""

_TRUTH = {"true": True, "1": True, "false": False, "0": False}


@dataclass(frozen=True, slots=True)
class Words:
    """The command line, sorted: what argparse reads, and words that may be passes."""

    known: list[str]
    passes: list[tuple[str, str, str]]
    """(word as it was written, name, text of its options) of each option that the tool does not know."""
    joined: bool = False
    """Whether there is a short option with its value behind it, which a pass may be called as well."""


def sort_words(
    argv: Sequence[str], flags: Collection[str], valued: Collection[str], optional: Mapping[str, str]
) -> Words:
    """Return the words of `argv` sorted.

    `flags` are the options without a value, `valued` those with one, `optional` those that take one behind `=`
    only, with the value that they have alone.

    Raises TilewrightError for a flag with a value that is no truth value.
    """
    known: list[str] = []
    passes: list[tuple[str, str, str]] = []
    joined = False
    every = {*flags, *valued, *optional}
    words = iter(argv)
    for word in words:
        if word == "--":
            known.append(word)
            known.extend(words)
        elif not word.startswith("-") or word == "-":
            known.append(word)
        elif _is_short(word, every):
            # A short option, perhaps with its value behind it, as in -ofile.
            known.append(word)
            joined = joined or len(word) > 2
            if word in valued:
                known.extend(_next(words))
        else:
            name, equals, value = word.partition("=")
            option = _spelled(name if word.startswith("--") else "-" + name, every)
            if option is None:
                passes.append((word, name.lstrip("-"), value))
            elif option in flags and equals:
                known.extend(_flag(option, value))
            elif option in valued and not equals:
                known.append(option)
                known.extend(_next(words))
            elif option in optional and not equals:
                known.append(f"{option}={optional[option]}")
            elif option:
                known.append(option + equals + value)
    return Words(known, passes, joined)


def _is_short(word: str, every: Collection[str]) -> bool:
    """Return whether a word is a short option, perhaps with its value: `-ofile` is, `-cse` and other passes are not."""
    name = word[1:].partition("=")[0]
    if word.startswith("--") or _spelled(f"--{name}", every) is not None:
        return False
    if len(word) == 2:
        return True
    if word[:2] not in every:
        return False
    # Here, since most command lines need not know the passes to be read.
    from tilewright.passes.registry import LOWERING_NAMES, all_passes

    return name not in {*all_passes(), *LOWERING_NAMES}


def _next(words: Iterator[str]) -> list[str]:
    """Return the following word, if there is one."""
    following = next(words, None)
    return [] if following is None else [following]


def _spelled(name: str, every: Collection[str]) -> str | None:
    """Return the option that a word names, "" for one without meaning here, None for none."""
    if name in every:
        return name
    plain = "--" + name.removeprefix(_PREFIX) if name.startswith(_PREFIX) else name
    if plain in _WITHOUT_MEANING:
        return ""
    plain = _OTHER_NAMES.get(plain, plain)
    return plain if plain in every else None


def _flag(option: str, value: str) -> list[str]:
    """Return a flag that was given a truth value, as argparse reads it."""
    truth = _TRUTH.get(value.lower())
    if truth is None:
        raise TilewrightError(f"option '{option}' takes true or false, got '{value}'")
    if truth:
        return [option]
    return [option.replace("--", "--no-", 1)] if option == "--verify-each" else []
