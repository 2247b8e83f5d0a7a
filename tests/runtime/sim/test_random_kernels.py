"""Random kernels give, thread by thread and bit by bit, what an interpreter of single threads gives.

The interpreter below runs each thread as a Python generator that stops at barriers and shuffles, on scalars; it shares
with the simulator only the table of scalar ops.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects import scf
from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import Block, SSAValue

from tilewright.dialects.simt.memory import LoadOp, RegsAllocOp, RegsLoadOp, RegsStoreOp, SharedOp, StoreOp
from tilewright.dialects.simt.structure import BlockIdOp, KernelOp, TidOp, UnrollOp
from tilewright.dialects.simt.sync import BarrierOp, ShuffleOp
from tilewright.runtime.scalar_ops import evaluate

F32 = np.float32
THREADS, BLOCKS = 64, 3


@dataclass
class Thread:
    """One thread: its values, and what it wants to exchange."""

    tid: int
    block: int
    memory: dict[SSAValue, np.ndarray[Any, Any]]
    env: dict[SSAValue, Any] = field(default_factory=dict[SSAValue, Any])
    offered: Any = None
    received: Any = None

    def run(self, block: Block) -> Generator[Any, None, list[Any]]:
        env = self.env
        for op in block.ops:
            if isinstance(op, TidOp | BlockIdOp):
                env[op.res] = np.int32(self.tid if isinstance(op, TidOp) else self.block)
            elif isinstance(op, RegsAllocOp):
                env[op.res] = np.full(op.res.type.sizes, np.nan, F32)
            elif isinstance(op, SharedOp):
                pass
            elif isinstance(op, RegsLoadOp):
                env[op.res] = env[op.regs][tuple(int(env[i]) for i in op.indices)]
            elif isinstance(op, RegsStoreOp):
                env[op.regs][tuple(int(env[i]) for i in op.indices)] = env[op.value]
            elif isinstance(op, LoadOp | StoreOp):
                memory, at = self.memory[op.memory], int(env[op.index])
                *front, last = (int(env[i]) for i in op.indices)
                place = (*front, slice(last, last + op.width.value.data))
                active = op.mask is None or bool(env[op.mask])
                if isinstance(op, LoadOp):
                    assert isinstance(op.other, FloatAttr)
                    other = op.other.value.data
                    env[op.regs][place] = memory[at : at + op.width.value.data] if active else other
                elif active:
                    memory[at : at + op.width.value.data] = env[op.regs][place]
            elif isinstance(op, UnrollOp):
                for i in range(op.count.value.data):
                    env[op.variable] = np.int32(i)
                    yield from self.run(op.body.block)
            elif isinstance(op, scf.ForOp):
                carried = [env[v] for v in op.iter_args]
                for i in range(int(env[op.lb]), int(env[op.ub]), int(env[op.step])):
                    env.update(zip(op.body.block.args, [np.int32(i), *carried], strict=True))
                    carried = yield from self.run(op.body.block)
                env.update(zip(op.results, carried, strict=True))
            elif isinstance(op, scf.IfOp):
                region = op.true_region if env[op.cond] else op.false_region
                found = (yield from self.run(region.block)) if region.blocks else []
                env.update(zip(op.results, found, strict=True))
            elif isinstance(op, BarrierOp):
                yield None
            elif isinstance(op, ShuffleOp):
                self.offered = env[op.value]
                yield op
                env[op.res] = self.received
            elif isinstance(op, scf.YieldOp):
                return [env[v] for v in op.operands]
            else:
                env[op.results[0]] = evaluate(op, [np.asarray(env[o]) for o in op.operands], "typed")[()]
        return []


def run_threads(kernel: KernelOp, arrays: list[np.ndarray[Any, Any]]) -> None:
    """All blocks, one after the other; the threads of a block advance from one meeting point to the next."""
    shared_ops = [op for op in kernel.walk() if isinstance(op, SharedOp)]
    for b in range(BLOCKS):
        memory: dict[SSAValue, np.ndarray[Any, Any]] = dict(zip(kernel.pointers, arrays, strict=True))
        memory |= {op.res: np.full(op.res.type.count, np.nan, F32) for op in shared_ops}
        threads = [Thread(t, b, memory) for t in range(THREADS)]
        running = [t.run(kernel.body.block) for t in threads]
        while True:
            stops = [next(r, "end") for r in running]
            assert len({id(s) for s in stops if not isinstance(s, str)} | {s for s in stops if isinstance(s, str)}) == 1
            if stops[0] == "end":
                break
            if isinstance(stops[0], ShuffleOp):
                for t in threads:
                    lane, n = t.tid % 32, stops[0].amount.value.data
                    source = {"xor": lane ^ n, "down": lane + n if lane + n < 32 else lane, "index": n}
                    t.received = threads[t.tid - lane + source[stops[0].mode.data]].offered


@st.composite
def programs(draw: st.DrawFn) -> str:
    """Statements on integers, floats, registers and shared memory; each thread stores to shared elements of its own."""
    names = iter(range(10_000))
    floats = [["%tf", "%half"]]
    integers = [["%t", "%b", "%c1", "%c2", "%c3"]]
    conditions = [["%even", "%low"]]
    lines: list[str] = []

    def pick(scopes: list[list[str]]) -> str:
        return draw(st.sampled_from([v for scope in scopes for v in scope]))

    def fresh() -> str:
        return f"%v{next(names)}"

    def statement(depth: int, divergent: bool) -> None:
        kinds = ["float", "float", "integer", "compare", "select", "store", "load", "share", "global"]
        if depth < 3:
            kinds += ["if", "for", "unroll"]
        if not divergent:
            kinds += ["exchange", "shuffle"]
        kind = draw(st.sampled_from(kinds))
        if kind == "float":
            op = draw(st.sampled_from(["arith.addf", "arith.subf", "arith.mulf", "arith.maximumf"]))
            a, b, v = pick(floats), pick(floats), fresh()
            lines.append(f"{v} = {op} {a}, {b} : f32")
            floats[-1].append(v)
        elif kind == "integer":
            op = draw(st.sampled_from(["arith.addi", "arith.subi", "arith.muli", "arith.minsi", "arith.xori"]))
            a, b, v, w = pick(integers), pick(integers), fresh(), fresh()
            lines.append(f"{v} = {op} {a}, {b} : i32")
            lines.append(f"{w} = arith.andi {v}, %c3 : i32")
            integers[-1].append(w)
        elif kind == "compare":
            a, b, v = pick(integers), pick(integers), fresh()
            lines.append(f"{v} = arith.cmpi {draw(st.sampled_from(['slt', 'eq', 'sge']))}, {a}, {b} : i32")
            conditions[-1].append(v)
        elif kind == "select":
            c, a, b, v = pick(conditions), pick(floats), pick(floats), fresh()
            lines.append(f"{v} = arith.select {c}, {a}, {b} : f32")
            floats[-1].append(v)
        elif kind == "store":
            lines.append(f"simt.regs.store {pick(floats)} to %r[{draw(st.sampled_from(['%c0', '%c1', '%c3']))}]")
        elif kind == "load":
            v = fresh()
            lines.append(f"{v} = simt.regs.load %r[{draw(st.sampled_from(['%c0', '%c2', '%c3']))}]")
            floats[-1].append(v)
        elif kind == "share":
            width = draw(st.sampled_from([1, 2, 4]))
            guard = f" if {pick(conditions)}" if draw(st.booleans()) else ""
            if draw(st.booleans()):
                lines.append(f"simt.store %r[%c0] to %s[%t4] width {width}{guard}")
            else:
                guard += " else 2.5 : f32" if guard else ""
                lines.append(f"simt.load %s[%t4] into %r[%c0] width {width}{guard}")
        elif kind == "global":
            v, guard = fresh(), f" if {pick(conditions)} else -1.0 : f32" if draw(st.booleans()) else ""
            lines.append(f"{v} = arith.addi {pick(integers)}, %t : i32")
            lines.append(f"simt.load %x[{v}] into %r[{draw(st.sampled_from(['%c1', '%c2']))}] width 1{guard}")
        elif kind == "exchange":
            mirror = draw(st.sampled_from(["%mirror", "%next"]))
            lines.append("simt.store %r[%c1] to %s[%t4] width 1\nsimt.barrier")
            lines.append(f"simt.load %s[{mirror}] into %r[%c2] width 1\nsimt.barrier")
        elif kind == "shuffle":
            v, mode = fresh(), draw(st.sampled_from(["xor", "down", "index"]))
            lines.append(f"{v} = simt.shuffle {mode} {pick(floats)}, {draw(st.integers(0, 31))}")
            floats[-1].append(v)
        elif kind == "unroll":
            i = fresh()
            lines.append(f"simt.unroll {i} < {draw(st.integers(1, 4))} {{")
            body(depth, divergent, i)
            if draw(st.booleans()):
                lines.append(f"simt.regs.store {pick(floats)} to %r[{i}]")
            lines.append("}")
        elif kind == "for":
            uniform = draw(st.booleans())
            upper = "%c3" if uniform else pick(integers)
            i, v, a, w = fresh(), fresh(), fresh(), pick(floats)
            # At most three iterations, whatever the value.
            limit = fresh()
            lines.append(f"{limit} = arith.minsi {upper}, %c3 : i32")
            lines.append(f"{v} = scf.for {i} = %c0 to {limit} step %c1 iter_args({a} = {w}) -> (f32) : i32 {{")
            result = body(depth, divergent or not uniform, i, a)
            lines.append(f"scf.yield {result} : f32\n}}")
            floats[-1].append(v)
        else:
            v, c = fresh(), pick(conditions)
            lines.append(f"{v} = scf.if {c} -> (f32) {{")
            first = body(depth, True)
            lines.append(f"scf.yield {first} : f32\n}} else {{")
            second = body(depth, True)
            lines.append(f"scf.yield {second} : f32\n}}")
            floats[-1].append(v)

    def body(depth: int, divergent: bool, integer: str | None = None, carried: str | None = None) -> str:
        """A nested block; returns a float of it to yield."""
        for scopes in (floats, integers, conditions):
            scopes.append([])
        if integer is not None:
            integers[-1].append(integer)
        if carried is not None:
            floats[-1].append(carried)
        for _ in range(draw(st.integers(1, 3))):
            statement(depth + 1, divergent)
        result = pick(floats)
        for scopes in (floats, integers, conditions):
            scopes.pop()
        return result

    for _ in range(draw(st.integers(2, 8))):
        statement(0, False)
    lines.append(f"simt.regs.store {pick(floats)} to %r[%c3]")
    return "\n".join(lines)


HEAD = """
  %t = simt.tid
  %b = simt.block_id x
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c3 = arith.constant 3 : i32
  %c4 = arith.constant 4 : i32
  %c10 = arith.constant 10 : i32
  %c64 = arith.constant 64 : i32
  %c252 = arith.constant 252 : i32
  %half = arith.constant 0.5 : f32
  %tf0 = arith.sitofp %t : i32 to f32
  %tf = arith.mulf %tf0, %half : f32
  %t4 = arith.muli %t, %c4 : i32
  %mirror = arith.subi %c252, %t4 : i32
  %parity = arith.andi %t, %c1 : i32
  %even = arith.cmpi eq, %parity, %c0 : i32
  %low = arith.cmpi slt, %t, %c10 : i32
  %t1 = arith.addi %t4, %c4 : i32
  %next = arith.remsi %t1, %size : i32
  %s = simt.shared at 0 : !simt.smem<[256], f32>
  %r = simt.regs.alloc : !simt.regs<[4], f32>
  simt.unroll %i < 4 {
    simt.regs.store %tf to %r[%i]
  }
  simt.store %r[%c0] to %s[%t4] width 4
"""
TAIL = """
  %row = arith.muli %b, %size : i32
  %at = arith.addi %row, %t4 : i32
  simt.store %r[%c0] to %y[%at] width 4
"""
SIZE = "  %size = arith.constant 256 : i32\n"


@given(program=programs(), batch=st.sampled_from([1, 2, None]))
def test_simulated_threads_are_threads(sim: Any, program: str, batch: int | None) -> None:
    body = "\n" + SIZE + HEAD.lstrip("\n") + program + TAIL
    arguments = "%x : !simt.global<f32>, %y : !simt.global<f32>"
    x = np.random.default_rng(5).standard_normal(128).astype(F32)
    expected, got = np.zeros(256 * BLOCKS, F32), np.zeros(256 * BLOCKS, F32)
    kernel = sim.kernel(body, arguments, THREADS, 1024)
    run_threads(kernel, [x, expected])
    report = sim.run(body, arguments, [x, got], threads=THREADS, smem=1024, grid=BLOCKS, batch=batch)
    assert not report.diagnostics, str(report.diagnostics[0])
    np.testing.assert_array_equal(got, expected)
