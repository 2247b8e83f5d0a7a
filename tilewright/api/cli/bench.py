"""`tilewright bench`: `gemm` measures, `report` makes a page of what was measured."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from tilewright.api.cli.arguments import CliArguments
from tilewright.api.diagnostics_cli import FAILURE, Console
from tilewright.diagnostics import TilewrightError

if TYPE_CHECKING:
    from tilewright.api.bench.lab import Lab

PEERS: Final = ("cublas", "triton", "tilelang", "numpy")
"""All that there are; those that a backend or machine lacks are skipped, and it is said."""
MOST_WORK: Final = {"sim": 1 << 24, "cpu": 1 << 31, "reference": 1 << 33}
"""Multiply-adds of a shape that take seconds, not hours."""


def execute(console: Console, arguments: CliArguments) -> int:
    """Measure, or write the page; 1 where a result of ours is wrong."""
    if arguments.action == "report":
        return _report(console, arguments)
    return _gemm(console, arguments)


def _gemm(console: Console, arguments: CliArguments) -> int:
    from tilewright.api.bench.measure import Settings
    from tilewright.api.bench.records import OURS
    from tilewright.api.bench.session import Plan, file_name, run
    from tilewright.api.bench.shapes import make_items, parse_part, part_of
    from tilewright.api.bench.summary import as_text

    sets, dtypes = _words(arguments.shapes), _words(arguments.dtypes)
    peers = [] if arguments.peers == "none" else _words(arguments.peers)
    items = make_items(sets, dtypes)
    if not items:
        raise TilewrightError("bench gemm: expected at least one set or shape and one dtype, got none")
    if arguments.time_limit is not None and arguments.time_limit <= 0:
        raise TilewrightError(f"--time-limit: expected more than 0 seconds, got {arguments.time_limit:g}")
    for peer in peers:
        if peer not in PEERS:
            raise TilewrightError(f"--peers: expected {', '.join(PEERS)} or none, got '{peer}'")
    most = MOST_WORK.get(arguments.backend)
    for item in items:
        if most is not None and item.set != "fused" and item.shape.m * item.shape.n * item.shape.k > most:
            raise TilewrightError(
                f"bench gemm: {item.shape} takes too long with --backend {arguments.backend}: "
                f"expected at most {most:,} multiply-adds a shape, as in --shapes 64x64x64"
            )
    part = parse_part(arguments.part)
    assert arguments.output is not None  # it has a default
    command = f"tilewright bench gemm --peers {arguments.peers} --shapes {arguments.shapes} --dtypes {arguments.dtypes}"
    if part != (1, 1):
        command += f" --part {arguments.part}"
    if arguments.backend not in ("auto", "cuda"):
        command += f" --backend {arguments.backend}"
    plan = Plan(
        items=tuple(part_of(items, *part)),
        part=part,
        path=Path(arguments.output) / file_name(sets, dtypes, part, arguments.backend),
        command=command,
        resume=arguments.resume,
        time_limit=arguments.time_limit,
    )

    def make_lab() -> Lab:
        if arguments.backend in ("auto", "cuda"):
            from tilewright.api.bench.torch_lab import TorchLab

            return TorchLab(peers)
        from tilewright.api.bench.host_lab import HostLab

        return HostLab(arguments.backend, peers)

    def say(line: str) -> None:
        console.stderr.write(f"{line}\n")
        console.stderr.flush()

    results = run(plan, make_lab, Settings(seed=arguments.seed), say)
    records = list(results.records.values())
    console.stdout.write(as_text(records))
    for program, stats in results.kernels.items():
        console.stdout.write(f"{program}: {len(stats['compiled'])} of {stats['variants']} variants compiled\n")
    console.stdout.write(f"wrote {plan.path}\n")
    return FAILURE if any(OURS in record.wrong or OURS not in record.errors for record in records) else 0


def _report(console: Console, arguments: CliArguments) -> int:
    from tilewright.api.bench.records import load_folder
    from tilewright.api.bench.report import make_report

    assert arguments.output is not None  # it has a default
    page, folder = Path(arguments.output), Path(arguments.folder)
    if not page.name:
        raise TilewrightError(f"bench report: expected a file for the page, got '{page}'")
    found = load_folder(folder)
    if not found:
        missing = f"no results of bench gemm in '{folder}'"
        if page.exists():
            raise TilewrightError(f"{missing}: '{page}' stays as it is")
        console.stderr.write(f"warning: {missing}: the page has no figures\n")
    text, pictures = make_report(found, page.stem)
    for written in (page, *(page.with_name(name) for name in pictures)):
        if any(_same(written, read) for read in folder.glob("*.json")):
            raise TilewrightError(f"bench report: '{written}' is a file of results, expected another for the page")
    for name, picture in pictures.items():
        console.write_result(picture, str(page.with_name(name)))
    console.write_result(text, str(page))
    console.stdout.write(f"wrote {', '.join(str(page.with_name(name)) for name in (page.name, *pictures))}\n")
    return 0


def _same(one: Path, other: Path) -> bool:
    """Whether two paths name one file, which exists."""
    try:
        return one.samefile(other)
    except OSError:
        return False


def _words(text: str) -> list[str]:
    """What stands between commas."""
    return [word.strip() for word in text.split(",") if word.strip()]
