"""Runs every example and prints backend, shapes, errors against their bounds, and PASS or FAIL.

python -m examples.demo [auto|cuda|sim|reference]
"""

from __future__ import annotations

import sys
import time

import tilewright as tw
from examples import batch_matmul, digits, elementwise_chain, example, matmul_bias_relu, row_softmax, transpose

EXAMPLES = (matmul_bias_relu, row_softmax, transpose, batch_matmul, elementwise_chain)


def main() -> int:
    """0 when all examples pass."""
    target = sys.argv[1] if len(sys.argv) > 1 else "auto"
    started = time.perf_counter()
    try:
        results = [example.run(module.EXAMPLE, target) for module in EXAMPLES]
        results.append(digits.run(target))
    except tw.TilewrightError as error:
        print(error, file=sys.stderr)
        return 1
    passed = sum(results)
    print(f"{passed} of {len(results)} examples passed in {time.perf_counter() - started:.1f} s")
    return 0 if passed == len(results) else 1


if __name__ == "__main__":
    raise SystemExit(main())
