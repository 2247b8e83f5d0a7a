"""Roles of a block, each a generator of its own over its threads, and regions that one thread of a group executes."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace

import numpy as np
from xdsl.ir import Operation

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.location import location_of
from tilewright.dialects.roles import WARPGROUP, Role
from tilewright.dialects.simt.clusters import ClusterBarrierOp
from tilewright.dialects.simt.roles import ElectOp, RolesOp
from tilewright.dialects.simt.sync import BarrierOp
from tilewright.runtime.numerics import Array
from tilewright.runtime.sim.async_copies import AsyncCopies
from tilewright.runtime.sim.compiler import Compiled, CompileFn, Compiler, around
from tilewright.runtime.sim.control import narrow
from tilewright.runtime.sim.state import WARP, Fork, State, Waiting
from tilewright.runtime.sim.tma import end_of_stores
from tilewright.runtime.sim.wgmma import end_of_matrix


def compile_roles(compiler: Compiler, op: RolesOp) -> Compiled:
    """`simt.roles`."""
    site = compiler.site(op)
    threads = compiler.kernel.threads.value.data
    if any(role.last * WARPGROUP > threads for role in op.roles) or threads != sum(r.threads for r in op.roles):
        raise TilewrightError(f"simt.roles: expected roles of all {threads} threads of the kernel", location_of(op))
    if op.next_op is not None and not isinstance(op.next_op, ClusterBarrierOp):
        raise TilewrightError("the simulator expects simt.roles to be the last op of its block", location_of(op))
    for inner in op.walk():
        if isinstance(inner, BarrierOp | ClusterBarrierOp):
            what = "block" if isinstance(inner, BarrierOp) else "cluster"
            raise TilewrightError(f"a {what} barrier inside of roles", location_of(inner))
    bodies = [compiler.block(body.block) for body in op.bodies]

    def run(state: State) -> Generator[Waiting, None, None]:
        children = [
            (role.name, _drive(body, role_state(state, role))) for role, body in zip(op.roles, bodies, strict=True)
        ]
        yield Fork(site, children, len(children))

    return Compiled(run, True)


def _drive(body: Compiled, state: State) -> Generator[Waiting, None, None]:
    yield from body.drive(state)
    end_of_role(state)


def end_of_role(state: State) -> None:
    """A role has nothing more to do: what it has started and not waited for is a fault."""
    if state.copies is not None and state.races is not None:
        state.copies.finish(state)
    end_of_stores(state)
    end_of_matrix(state)


def role_state(state: State, role: Role) -> State:
    """The state of a role: what its threads know so far, in storage of its own."""
    first, end = role.first * WARPGROUP, role.last * WARPGROUP

    def part(value: Array | None) -> Array | None:
        if value is not None and value.ndim > 1 and value.shape[-1] == state.threads:
            return np.ascontiguousarray(value[..., first:end])
        return value

    mask = state.mask
    if mask is not None and mask.shape[-1] == state.threads:
        mask = mask[..., first:end]
    return replace(
        state,
        env=[part(value) for value in state.env],
        threads=role.threads,
        first_thread=first,
        mask=mask,
        loops=dict(state.loops),
        poisoned={
            slot: (w[..., first:end] if w.shape[-1] == state.threads else w, site)
            for slot, (w, site) in state.poisoned.items()
        },
        copies=None if state.copies is None else AsyncCopies(state.copies.landing),
        matrix=None,
        stores=None,
        flying={},
        touched=set(state.touched),
    )


_PERIODS = {"warp": WARP, "warpgroup": WARPGROUP}


def compile_elect(compiler: Compiler, op: ElectOp) -> Compiled:
    """`simt.elect`: the first thread of each group."""
    scope = op.scope.data
    body = compiler.block(op.body.block)
    known: dict[tuple[int, int], Array] = {}

    def chosen(state: State) -> Array:
        key = state.first_thread, state.threads
        found = known.get(key)
        if found is None:
            threads = np.arange(state.threads)
            if scope == "block":
                found = threads + state.first_thread == 0
            elif scope == "role":
                found = threads == 0
            else:
                found = threads % _PERIODS[scope] == 0
            known[key] = found = found[None, :]
        return found

    def run(state: State) -> Generator[Waiting, None, None]:
        outer = state.mask
        any_active, state.mask = narrow(outer, chosen(state))
        if any_active:
            yield from body.drive(state)
        state.mask = outer

    return around(run, body.waits)


def role_table() -> dict[type[Operation], CompileFn]:
    """Entries of the compiler's table for roles."""
    return {ElectOp: compile_elect, RolesOp: compile_roles}
