"""What the checks of one call cost in Python: 8 predicates over 3 arguments, and what stands around them.

    python -m benchmarks.guards [--output benchmarks/results/NAME.json]

Times are microseconds a call, the least of many repeats (the others measure what else the machine did). Exits with 1
where the predicates take more than the budget of 1 us.
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import sys
import timeit
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import tilewright
from tilewright.dialects.host.ops import FuncOp
from tilewright.dialects.parsing import parse_module
from tilewright.dialects.registry import make_context
from tilewright.runtime.backends.base import layouts, take_arguments
from tilewright.runtime.binding import Layout
from tilewright.runtime.plan import HostPlan

BUDGET_US = 1.0
"""What the 8 predicates may take, shape and stride tuples being read."""
CALLS, REPEATS = 20_000, 15

GUARDS = (
    "M >= 1",
    "M <= 8192",
    "K >= 16",
    "K mod 16 == 0",
    "N mod 8 == 0",
    "x_s1 == 1",
    "w_s0 mod 8 == 0",
    "M*N <= 2147483647",
)

CHECKS = """
sym.symbol @M
sym.symbol @N
sym.symbol @K
host.func @main(%x : tensor<?x?xf32, #sym.dims<M, K>>, %w : tensor<?x?xf32, #sym.dims<K, N>>,
                %b : tensor<?xf32, #sym.dims<N>>) -> (RESULTS) {
  host.bind %x strides [x_s0, x_s1] base x_base
  host.bind %w strides [w_s0, w_s1] base w_base
  host.bind %b strides [b_s0] base b_base
  BODY
}
"""

LAUNCH = """
  %y = host.output 0 : tensor<?x?xf32, #sym.dims<M, N>>
  host.bind %y strides [y_s0, y_s1] base y_base
  host.dispatch {
    case "vector32" when [y_s1 == 1, x_base mod 16 == 0, y_base mod 16 == 0] {
      host.launch @k(%x, %w, %b, %y) grid [(M ceildiv 128)*(N ceildiv 128)] index_width 32
    }
    case "general64" {
      host.launch @k(%x, %w, %b, %y) grid [(M ceildiv 128)*(N ceildiv 128)] index_width 64
    }
  }
"""


def plan(guards: Sequence[str], *, launch: bool) -> HostPlan:
    """A plan of three arguments with these guards; with a result, a dispatch and a launch after them, or nothing."""
    body = "\n".join(f'host.guard {guard} else ""' for guard in guards) + (LAUNCH if launch else "")
    text = CHECKS.replace("RESULTS", "tensor<?x?xf32, #sym.dims<M, N>>" if launch else "").replace("BODY", body)
    module = parse_module(text, "guards.mlir", make_context())
    return HostPlan(next(op for op in module.ops if isinstance(op, FuncOp)))


def microseconds(call: Callable[[], object]) -> float:
    """The least time of one call over the repeats."""
    return min(timeit.repeat(call, number=CALLS, repeat=REPEATS)) / CALLS * 1e6


def measure() -> dict[str, float]:
    """Times by what is measured."""
    checks, nothing, whole = plan(GUARDS, launch=False), plan((), launch=False), plan(GUARDS, launch=True)
    arrays = [np.empty(shape, np.float32) for shape in ((512, 1024), (1024, 2048), (2048,))]

    def read() -> list[Layout | None]:
        return layouts(whole.arguments, take_arguments(whole.arguments, arrays, "main"))

    given = read()
    expected = whole.run(given, None)
    # That the guards pass: else the time would be that of an explanation.
    assert len(expected.launches) == 1
    assert len(checks.run(given, None).symbols) == 11
    with_guards = microseconds(lambda: checks.run(given, None))
    without = microseconds(lambda: nothing.run(given, None))
    return {
        "read_tuples_us": microseconds(lambda: [(array.shape, array.strides) for array in arrays]),
        "read_and_check_arrays_us": microseconds(read),
        "bind_us": without,
        "bind_and_8_predicates_us": with_guards,
        "8_predicates_us": with_guards - without,
        "whole_plan_us": microseconds(lambda: whole.run(given, None)),
        "remembered_plan_us": microseconds(lambda: whole.decide(given, None)),
    }


def main() -> int:
    """Prints the results as JSON, and writes them with --output."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--output")
    arguments = parser.parse_args()
    times = measure()
    results: dict[str, Any] = {
        "machine": {
            "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "processor": platform.processor() or platform.machine(),
            "python": f"{platform.python_implementation()} {platform.python_version()}",
            "tilewright": tilewright.__version__,
            "command": "python -m benchmarks.guards " + " ".join(sys.argv[1:]),
        },
        "budget_us": BUDGET_US,
        "times": {name: round(value, 3) for name, value in times.items()},
    }
    text = json.dumps(results, indent=1)
    print(text)
    if arguments.output:
        with open(arguments.output, "w", encoding="utf-8") as file:
            file.write(text + "\n")
    return 1 if times["bind_and_8_predicates_us"] > BUDGET_US else 0


if __name__ == "__main__":
    raise SystemExit(main())
