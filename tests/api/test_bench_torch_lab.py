"""The lab of a GPU with torch, on a torch that NumPy plays: what it calls, and what it says of the results."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.api.test_bench_measure import FakeTorch
from tilewright.api.bench import lab, torch_lab
from tilewright.api.bench.records import OURS
from tilewright.api.bench.shapes import Item, Shape
from tilewright.api.bench.torch_lab import EAGER, PLAIN, TorchLab
from tilewright.diagnostics import TilewrightError
from tilewright.runtime.erf import erf


class Tensor(np.ndarray[Any, Any]):
    """An array with the methods of torch that the lab uses."""

    def to(self, dtype: Any) -> Tensor:
        return self.astype(dtype).view(Tensor)

    def double(self) -> Tensor:
        return self.to(np.float64)

    def square(self) -> Tensor:
        return (self * self).view(Tensor)

    def fill_(self, value: float) -> None:
        self[...] = value

    def element_size(self) -> int:
        return self.itemsize


class NumpyTorch(FakeTorch):
    """torch's functions; `broken` says what `mm` does wrong."""

    float32, float64 = np.dtype(np.float32), np.dtype(np.float64)
    float16, bfloat16 = np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)
    __version__ = "0.0"

    def __init__(self, broken: str = "") -> None:
        super().__init__()
        self.broken, self.dead = broken, False
        self.backends = SimpleNamespace(cuda=SimpleNamespace(matmul=SimpleNamespace(allow_tf32=True)))
        self.nn = SimpleNamespace(functional=SimpleNamespace(gelu=self.gelu))
        self.version = SimpleNamespace(cuda="0.0")

    def synchronize(self) -> None:
        if self.dead:
            raise RuntimeError("an illegal memory access\nwas encountered")
        super().synchronize()

    def is_available(self) -> bool:
        return True

    def get_device_name(self) -> str:
        return "NumPy"

    def Generator(self, device: str) -> Any:
        return SimpleNamespace(manual_seed=np.random.default_rng)

    def randn(self, *sizes: int, device: str, generator: np.random.Generator) -> Tensor:
        return generator.standard_normal(sizes).astype(np.float32).view(Tensor)

    def empty(self, size: Any, dtype: Any = None, device: str = "") -> Any:
        return super().empty(size) if dtype == "int8" else np.zeros(size, dtype).view(Tensor)

    def mm(self, a: Tensor, b: Tensor, out: Tensor) -> Tensor:
        if self.broken == "mm kills":
            self.dead = True
            raise RuntimeError("launch failed")
        if self.broken == "mm fails":
            raise RuntimeError("CUBLAS_STATUS_NOT_SUPPORTED")
        if self.broken != "mm writes nothing":
            out[...] = a.to(np.float32) @ b.to(np.float32)
        return out

    def addmm(self, bias: Tensor, a: Tensor, b: Tensor) -> Tensor:
        return (a.to(np.float32) @ b.to(np.float32) + bias.to(np.float32)).view(Tensor).to(a.dtype)

    def gelu(self, x: Tensor) -> Tensor:
        wide = x.to(np.float64)
        return (wide / 2 * (1 + erf(wide / np.sqrt(2)))).view(Tensor).to(x.dtype)


def slow_and_quick(torch: NumpyTorch) -> Any:
    """Triton's part: three configurations, of which one does not fit."""

    def launcher(seconds: float) -> Callable[..., Tensor]:
        def launch(a: Tensor, b: Tensor, out: Tensor) -> Tensor:
            if seconds < 0:
                raise ValueError("out of resource: shared memory")
            torch.queue(seconds)
            return torch.mm(a, b, out)

        return launch

    ways = {"too large": launcher(-1), "slow": launcher(5e-3), "quick": launcher(1e-3)}
    return SimpleNamespace(configurations=lambda bits, tf32: ways, version=lambda: "0.0")


@pytest.fixture
def make_lab(monkeypatch: pytest.MonkeyPatch) -> Callable[..., TorchLab]:
    def make(broken: str = "", peers: tuple[str, ...] = ("cublas", "triton")) -> TorchLab:
        torch = NumpyTorch(broken)
        modules = {"torch": torch}
        modules |= {f"tilewright.api.bench.{peer}_peer": slow_and_quick(torch) for peer in torch_lab.COMPILED}
        monkeypatch.setattr(torch_lab, "cuda_unavailable_reason", lambda: None)
        monkeypatch.setattr(torch_lab, "import_module", modules.__getitem__)
        monkeypatch.setattr(torch_lab, "Programs", lambda _: lab.Programs("sim"))
        return TorchLab(peers)

    return make


@pytest.mark.parametrize("dtype", ["bf16", "f16", "f32", "tf32"])
def test_all_systems_agree(make_lab: Callable[..., TorchLab], dtype: str) -> None:
    item = Item("table", dtype, Shape(33, 24, 40))
    prepared = make_lab().prepare(item)
    assert list(prepared.calls) == [OURS, "cublas", "triton"]
    assert all(error <= lab.bound_of(item) for error in prepared.errors.values())
    assert set(prepared.errors) == set(prepared.calls)
    assert prepared.notes == {"triton": "quick"}, "the configuration that took least time"
    assert prepared.compile_seconds > 0


def test_torch_may_use_tf32_for_that_dtype_alone(make_lab: Callable[..., TorchLab]) -> None:
    made = make_lab()
    allowed: list[bool] = []
    for dtype in ("tf32", "f32"):
        made.prepare(Item("table", dtype, Shape(8, 8, 8)))
        allowed.append(torch_lab.import_module("torch").backends.cuda.matmul.allow_tf32)
    assert allowed == [True, False]


def test_fused_against_plain_and_eager(make_lab: Callable[..., TorchLab]) -> None:
    item = Item("fused", "bf16", Shape(16, 24, 40))
    prepared = make_lab().prepare(item)
    assert list(prepared.calls) == [OURS, PLAIN, EAGER]
    assert all(0 < error <= lab.bound_of(item) for error in prepared.errors.values())


def test_what_is_not_written_is_wrong(make_lab: Callable[..., TorchLab]) -> None:
    prepared = make_lab("mm writes nothing", ("cublas",)).prepare(Item("table", "bf16", Shape(8, 8, 8)))
    assert not prepared.errors["cublas"] <= 2e-3
    assert prepared.errors[OURS] <= 2e-3


def test_a_peer_that_fails_is_left_out_with_a_note(make_lab: Callable[..., TorchLab]) -> None:
    prepared = make_lab("mm fails").prepare(Item("table", "bf16", Shape(8, 8, 8)))
    assert list(prepared.calls) == [OURS]
    assert prepared.notes["cublas"] == "RuntimeError: CUBLAS_STATUS_NOT_SUPPORTED"
    assert "CUBLAS_STATUS_NOT_SUPPORTED" in prepared.notes["triton"]


def test_a_gpu_that_fails_ends_it(make_lab: Callable[..., TorchLab]) -> None:
    found = make_lab("mm kills", ("cublas",))
    message = r"the GPU failed \(an illegal memory access was encountered\) after cublas: RuntimeError: launch failed"
    with pytest.raises(TilewrightError, match=message):
        found.prepare(Item("table", "bf16", Shape(8, 8, 8)))


def test_the_reference_is_made_in_chunks(make_lab: Callable[..., TorchLab], monkeypatch: pytest.MonkeyPatch) -> None:
    item = Item("table", "bf16", Shape(33, 24, 40))
    whole = make_lab().prepare(item).errors
    monkeypatch.setattr(torch_lab, "reference_rows", lambda _: 5)
    chunked = make_lab().prepare(item).errors
    assert chunked == pytest.approx(whole, rel=1e-5)


def test_what_is_missing_is_said(make_lab: Callable[..., TorchLab], monkeypatch: pytest.MonkeyPatch) -> None:
    assert make_lab(peers=("cublas", "numpy")).skipped == {
        "numpy": "no peer on a GPU: expected one of cublas, triton, tilelang"
    }
    found = make_lab()
    assert found.machine()["gpu"]
    monkeypatch.setattr(torch_lab, "import_module", {"torch": NumpyTorch()}.__getitem__)

    def without_compilers(name: str) -> Any:
        if "peer" in name:
            raise ImportError(f"No module named '{name.split('.')[-1].removesuffix('_peer')}'")
        return NumpyTorch()

    monkeypatch.setattr(torch_lab, "import_module", without_compilers)
    assert TorchLab(("triton", "tilelang")).skipped == {
        "triton": "Triton does not load (No module named 'triton')",
        "tilelang": "TileLang does not load (No module named 'tilelang')",
    }


def test_tilelang_is_asked_for_by_name(make_lab: Callable[..., TorchLab]) -> None:
    found = make_lab(peers=("cublas", "tilelang"))
    assert found.machine()["tilelang"] == "0.0"
    prepared = found.prepare(Item("tilelang", "bf16", Shape(33, 24, 40)))
    assert list(prepared.calls) == [OURS, "cublas", "tilelang"]
    assert prepared.notes == {"tilelang": "quick"}


class FakeTile:
    """What `tilelang.language` is used for, as far as one thread can do it: the kernel's function is kept."""

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **kwargs: args[0] if name == "prim_func" else None


def test_the_kernel_of_tilelang_is_compiled_once_for_its_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[Any] = []

    def compile_(function: Any, target: str) -> Callable[..., None]:
        assert target == "cuda"
        compiled.append(function)

        def run(a: Tensor, b: Tensor, out: Tensor) -> None:
            out[...] = a.to(np.float32) @ b.to(np.float32)

        return run

    fake = SimpleNamespace(compile=compile_, language=FakeTile(), __version__="1.2")
    monkeypatch.setitem(sys.modules, "tilelang", fake)
    monkeypatch.setitem(sys.modules, "tilelang.language", fake.language)
    monkeypatch.delitem(sys.modules, "tilewright.api.bench.tilelang_peer", raising=False)
    peer: Any = import_module("tilewright.api.bench.tilelang_peer")
    ways = peer.configurations(16)
    assert peer.version() == "1.2"
    assert peer.configurations(32) == {}
    for shape in ((8, 16, 24), (8, 16, 24), (9, 16, 24)):
        m, n, k = shape
        a, b = (np.ones(s, ml_dtypes.bfloat16).view(Tensor) for s in ((m, k), (k, n)))
        for way in ways.values():
            out = np.zeros((m, n), ml_dtypes.bfloat16).view(Tensor)
            assert way(a, b, out) is out
            assert (out == k).all()
    assert len(compiled) == 2 * len(ways)
    monkeypatch.delitem(sys.modules, "tilewright.api.bench.tilelang_peer")
