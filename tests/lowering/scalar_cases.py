"""One kernel for each scalar op and type: three operands in, one result out, 64 threads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

FLOATS = ("f16", "bf16", "f32", "f64")
INTEGERS = ("i1", "i8", "i16", "i32", "i64")
WIDE = ("i32", "i64")
_FLOAT_BINARY = ("addf", "subf", "mulf", "divf", "maximumf", "minimumf", "maxnumf", "minnumf")
_INTEGER_BINARY = (
    *("addi", "subi", "muli", "divsi", "divui", "remsi", "remui", "floordivsi", "ceildivsi", "ceildivui"),
    *("andi", "ori", "xori", "shli", "shrsi", "shrui", "maxsi", "minsi", "maxui", "minui"),
)
_FLOAT_UNARY = (
    *("absf", "acos", "acosh", "asin", "asinh", "atan", "atanh", "cbrt", "ceil", "cos", "cosh", "erf", "exp", "exp2"),
    *("expm1", "floor", "log", "log10", "log1p", "log2", "roundeven", "round", "rsqrt", "sin", "sinh", "sqrt", "tan"),
    *("tanh", "trunc"),
)
INTEGER_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
FLOAT_PREDICATES = (
    *("oeq", "ogt", "oge", "olt", "ole", "one", "ord"),
    *("ueq", "ugt", "uge", "ult", "ule", "une", "uno"),
)


@dataclass(frozen=True)
class Case:
    """`text` defines %z of type `result` from %a, %b and %c of type `source`."""

    op: str
    text: str
    source: str
    result: str

    @property
    def name(self) -> str:
        return f"{self.text} [{self.source}]"


def _cases() -> Iterator[Case]:
    for t in FLOATS:
        for name in _FLOAT_BINARY:
            yield Case(f"arith.{name}", f"arith.{name} %a, %b : {t}", t, t)
        for name in ("atan2", "copysign", "powf"):
            yield Case(f"math.{name}", f"math.{name} %a, %b : {t}", t, t)
        for name in _FLOAT_UNARY:
            yield Case(f"math.{name}", f"math.{name} %a : {t}", t, t)
        for predicate in FLOAT_PREDICATES:
            yield Case("arith.cmpf", f"arith.cmpf {predicate}, %a, %b : {t}", t, "i1")
        yield Case("arith.negf", f"arith.negf %a : {t}", t, t)
        yield Case("math.fma", f"math.fma %a, %b, %c : {t}", t, t)
        for i in INTEGERS:
            yield Case("arith.sitofp", f"arith.sitofp %a : {i} to {t}", i, t)
            yield Case("arith.uitofp", f"arith.uitofp %a : {i} to {t}", i, t)
            if i != "i1":
                yield Case("arith.fptosi", f"arith.fptosi %a : {t} to {i}", t, i)
                yield Case("arith.fptoui", f"arith.fptoui %a : {t} to {i}", t, i)
    for narrow, wide in (("f16", "f32"), ("bf16", "f32"), ("f16", "f64"), ("bf16", "f64"), ("f32", "f64")):
        yield Case("arith.extf", f"arith.extf %a : {narrow} to {wide}", narrow, wide)
        yield Case("arith.truncf", f"arith.truncf %a : {wide} to {narrow}", wide, narrow)
    for t in INTEGERS:
        for name in _INTEGER_BINARY:
            yield Case(f"arith.{name}", f"arith.{name} %a, %b : {t}", t, t)
        for predicate in INTEGER_PREDICATES:
            yield Case("arith.cmpi", f"arith.cmpi {predicate}, %a, %b : {t}", t, "i1")
        for wide in INTEGERS[INTEGERS.index(t) + 1 :]:
            yield Case("arith.extsi", f"arith.extsi %a : {t} to {wide}", t, wide)
            yield Case("arith.extui", f"arith.extui %a : {t} to {wide}", t, wide)
            yield Case("arith.trunci", f"arith.trunci %a : {wide} to {t}", wide, t)
    for t in WIDE:
        for name in ("absi", "ctlz", "cttz", "ctpop"):
            yield Case(f"math.{name}", f"math.{name} %a : {t}", t, t)
        yield Case("math.ipowi", f"math.ipowi %a, %b : {t}", t, t)
    for source, result in (("f32", "i32"), ("i64", "f64"), ("f16", "i16"), ("i16", "bf16")):
        yield Case("arith.bitcast", f"arith.bitcast %a : {source} to {result}", source, result)


CASES = tuple(_cases())


def kernel_text(number: int, case: Case) -> str:
    """A kernel @case_<number>: thread i reads elements i, i + 64 and i + 128 of %x and writes element i of %y."""
    return f"""
simt.kernel @case_{number}(
  %x : !simt.global<{case.source}>, %y : !simt.global<{case.result}>
) threads 64 smem 0 grid [1] {{
  %t = simt.tid
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c64 = arith.constant 64 : i32
  %i = arith.addi %t, %c64 : i32
  %j = arith.addi %i, %c64 : i32
  %r = simt.regs.alloc : !simt.regs<[3], {case.source}>
  simt.load %x[%t] into %r[%c0] width 1
  simt.load %x[%i] into %r[%c1] width 1
  simt.load %x[%j] into %r[%c2] width 1
  %a = simt.regs.load %r[%c0]
  %b = simt.regs.load %r[%c1]
  %c = simt.regs.load %r[%c2]
  %z = {case.text}
  %o = simt.regs.alloc : !simt.regs<[], {case.result}>
  simt.regs.store %z to %o
  simt.store %o to %y[%t] width 1
}}
"""
