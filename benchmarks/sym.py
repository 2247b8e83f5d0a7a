"""Queries to the symbolic algebra, beside isl and Z3 in the same run.

    python -m benchmarks.sym [--repeats 20] [--output benchmarks/results/NAME.json]

Each query has a fresh scope of facts and an empty memo every time: `query` is the time of the scope and the proof, and
`text` counts reading the relations as well. isl builds the set of counterexamples from text and asks whether it is
empty; Z3 has a fresh solver. Times are the least of the repeats, in microseconds, without imports.
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from tilewright.dialects.sym import Expr, Facts, Relation, floordiv, parse_relation
from tilewright.dialects.sym.expr import total

TARGET_WITHOUT_ISL_US: Final = 50.0


@dataclass(frozen=True)
class Query:
    """A scope and what is asked in it, in the three notations; None where isl cannot say it."""

    name: str
    declared: Mapping[str, Mapping[str, Any]]
    given: tuple[str, ...]
    asked: str
    isl: str | None
    """The set of points that satisfy the facts and not the query."""
    expected: str = "proved"
    z3: str = ""
    """Python conditions of Z3 that hold together exactly at a counterexample."""
    names: tuple[str, ...] = field(default=())


def queries() -> list[Query]:
    """The kinds of query that shapes and addresses give rise to."""
    size: Mapping[str, Any] = {}
    return [
        Query("Q1 (S+1)-S == 1", {"S": size}, (), "(S + 1) - S == 1", "{[S]: S >= 0 and not ((S + 1) - S = 1)}",
              z3="S >= 0, (S + 1) - S != 1"),
        Query("Q2 ceildiv(S,32)*32 >= S", {"S": size}, (), "(S ceildiv 32)*32 >= S",
              "{[S]: S >= 0 and not (32*ceil(S/32) >= S)}", z3="S >= 0, ((S + 31) / 32) * 32 < S"),
        Query("Q3 S mod 16 == 0 given S == 16*t", {"S": size}, ("S == 16*t",), "S mod 16 == 0",
              "{[S, t]: S >= 0 and S = 16*t and not (S mod 16 = 0)}", z3="S >= 0, S == 16 * t, S % 16 != 0"),
        Query("Q3b the same by declaration", {"S": {"multiple_of": 16}}, (), "S mod 16 == 0",
              "{[S]: S >= 0 and S mod 16 = 0 and not (S mod 16 = 0)}", z3="S >= 0, S % 16 == 0, S % 16 != 0"),
        Query("Q4 S0 == 2*S1, S0 == S1, S1 >= 1", {"S1": {"min": 1}}, ("S0 == 2*S1", "S0 == S1"), "contradiction",
              "{[S0, S1]: S1 >= 1 and S0 = 2*S1 and S0 = S1}", z3="S1 >= 1, S0 == 2 * S1, S0 == S1"),
        Query("Q5 4ab == b*4a", {"a": size, "b": size}, (), "4*a*b == b*4*a", None,
              z3="a >= 0, b >= 0, 4 * a * b != b * 4 * a"),
        Query("Q6 a*b mod 4 == 0 given 4 | a", {"a": {"multiple_of": 4}, "b": size}, (), "(a*b) mod 4 == 0", None,
              z3="a >= 0, b >= 0, a % 4 == 0, (a * b) % 4 != 0"),
        Query("Q7 (H-1)//2+1 == (H+1)//2", {"H": size}, (), "(H - 1) floordiv 2 + 1 == (H + 1) floordiv 2",
              "{[H]: H >= 0 and not (floor((H - 1)/2) + 1 = floor((H + 1)/2))}",
              z3="H >= 0, (H - 1) / 2 + 1 != (H + 1) / 2"),
        Query("Q8 min(S,128) <= 128", {"S": size}, (), "min(S, 128) <= 128",
              "{[S]: S >= 0 and not (min(S, 128) <= 128)}", z3="S >= 0, z3.If(S <= 128, S, 128) > 128"),
        Query("Q9 4ab < 2^31", {"a": {"max": 4096}, "b": {"max": 8192}}, (), "4*a*b < 2147483648", None,
              z3="a >= 0, b >= 0, a <= 4096, b <= 8192, 4 * a * b >= 2 ** 31"),
        Query("Q10 S >= 17 given S >= 1", {"S": {"min": 1}}, (), "S >= 17", "{[S]: S >= 1 and not (S >= 17)}",
              expected="unknown", z3="S >= 1, S < 17"),
        Query("Q11 ceildiv(ab,32)*32 >= ab", {"a": size, "b": size}, (), "((a*b) ceildiv 32)*32 >= a*b", None,
              z3="a >= 0, b >= 0, ((a * b + 31) / 32) * 32 < a * b"),
        Query("Q12 a >= 9 given a >= b+8, b >= 8", {"a": size, "b": {"min": 8}}, ("a >= b + 8",), "a >= 9",
              "{[a, b]: a >= 0 and b >= 8 and a >= b + 8 and not (a >= 9)}", z3="a >= 0, b >= 8, a >= b + 8, a < 9"),
        Query("Q13 (64S+32)//32 == 2S+1", {"S": size}, (), "(64*S + 32) floordiv 32 == 2*S + 1",
              "{[S]: S >= 0 and not (floor((64*S + 32)/32) = 2*S + 1)}", z3="S >= 0, (64 * S + 32) / 32 != 2 * S + 1"),
        Query("Q14 (i*N+j)//N == i, 0 <= j < N", {"i": size, "j": size, "N": size}, ("j < N",),
              "(i*N + j) floordiv N == i", None, z3="i >= 0, j >= 0, j < N, (i * N + j) / N != i"),
    ]  # fmt: skip


def least_us(call: Callable[[], object], repeats: int) -> float:
    """The least time of one call, in microseconds."""
    times: list[int] = []
    for _ in range(repeats):
        begin = time.perf_counter_ns()
        call()
        times.append(time.perf_counter_ns() - begin)
    return min(times) / 1000


def own(query: Query, relations: list[Relation]) -> str:
    """Build the scope and ask; the last relation is the query, unless it asks for a contradiction."""
    facts = Facts()
    for name, options in query.declared.items():
        facts.declare(name, **options)
    if query.asked == "contradiction":
        for relation in relations:
            facts.add(relation)
        return "proved" if facts.conflict() is not None else "unknown"
    for relation in relations[:-1]:
        facts.add(relation)
    return facts.prove(relations[-1]).value


def texts_of(query: Query) -> tuple[str, ...]:
    return query.given if query.asked == "contradiction" else (*query.given, query.asked)


def by_isl(query: Query) -> str:
    """Whether the set of counterexamples is empty, by isl; `query.isl` must be there."""
    import islpy

    return "proved" if islpy.Set(query.isl or "").is_empty() else "unknown"


def by_z3(query: Query) -> str:
    """Whether the conditions of a counterexample have no solution, by Z3."""
    import z3

    names = {name: z3.Int(name) for name in ("S", "S0", "S1", "t", "a", "b", "H", "i", "j", "N")}
    solver = z3.Solver()
    solver.set("timeout", 1000)
    solver.add(*eval(f"[{query.z3}]", {"z3": z3}, names))
    return "proved" if solver.check() == z3.unsat else "unknown"


def measure(query: Query, repeats: int) -> dict[str, Any]:
    """Times and answers of one query."""
    texts = texts_of(query)
    relations = [parse_relation(t) for t in texts]
    answers = {"own": own(query, relations), "z3": by_z3(query)}
    row: dict[str, Any] = {
        "query_us": least_us(lambda: own(query, relations), repeats),
        "text_us": least_us(lambda: own(query, [parse_relation(t) for t in texts]), repeats),
        "isl_us": None,
        "z3_us": least_us(lambda: by_z3(query), repeats),
    }
    if query.isl is not None:
        answers["isl"] = by_isl(query)
        row["isl_us"] = least_us(lambda: by_isl(query), repeats)
    row["answers"] = answers
    row["expected"] = query.expected
    row["limit_us"] = TARGET_WITHOUT_ISL_US if query.isl is None else row["isl_us"]
    row["met"] = answers["own"] == query.expected and row["query_us"] <= row["limit_us"]
    return row


def chain(length: int) -> str:
    """A chain of equalities that comes back to twice where it began, from 1: contradictory."""
    facts = Facts()
    facts.declare("s0", min=1)
    for i in range(length):
        facts.add(Relation(Expr.symbol(f"s{i + 1}"), "==", Expr.symbol(f"s{i}")))
    facts.add(Relation(Expr.symbol(f"s{length}"), "==", 2 * Expr.symbol("s0")))
    return "proved" if facts.conflict() is not None else "unknown"


def wide_sum() -> str:
    """A sum of 64 terms, and a multiple pulled out of its floor division."""
    weighted = total((i + 1) * Expr.symbol(f"s{i}") for i in range(64))
    return Facts().prove(Relation(floordiv(weighted * 32 + 31, 32), "==", weighted)).value


def main() -> int:
    """Run from the command line; the exit code is 1 when an answer is not the expected one."""
    parser = argparse.ArgumentParser(description="Time queries to the symbolic algebra beside isl and Z3.")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    import z3

    rows = {query.name: measure(query, options.repeats) for query in queries()}
    print(f"{'query':34}{'query us':>10}{'text us':>10}{'isl us':>10}{'z3 us':>10}  limit met")
    for name, row in rows.items():
        isl = "-" if row["isl_us"] is None else f"{row['isl_us']:.1f}"
        numbers = f"{row['query_us']:>10.1f}{row['text_us']:>10.1f}{isl:>10}{row['z3_us']:>10.1f}"
        print(f"{name:34}{numbers}  {row['answers']['own']}, {'yes' if row['met'] else 'NO'}")
    larger = {
        "chain of 64 equalities, contradiction": (chain, (64,), 20_000.0),
        "sum of 64 terms with floordiv": (wide_sum, (), 1_000.0),
    }
    for name, (call, arguments, limit) in larger.items():
        answer = call(*arguments)
        taken = least_us(lambda call=call, arguments=arguments: call(*arguments), options.repeats)
        met = answer == "proved" and taken <= limit
        rows[name] = {
            "query_us": taken,
            "limit_us": limit,
            "answers": {"own": answer},
            "expected": "proved",
            "met": met,
        }
        print(f"{name:34}{taken:>10.1f}  limit {limit:.0f}, {answer}, {'yes' if met else 'NO'}")
    result = {
        "date": datetime.date.today().isoformat(),
        "command": "python -m benchmarks.sym",
        "python": platform.python_version(),
        "machine": platform.machine(),
        "islpy": version("islpy"),
        "z3": z3.get_version_string(),
        "repeats": options.repeats,
        "rows": rows,
    }
    if options.output is not None:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(json.dumps(result, indent=1) + "\n")
    return 0 if all(row["answers"]["own"] == row["expected"] for row in rows.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
