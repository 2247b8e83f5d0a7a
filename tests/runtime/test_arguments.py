"""Argument intake: layouts are read exactly, nothing is copied, and what does not fit is named."""

from __future__ import annotations

import ctypes
import gc
import struct
import sys
import weakref
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tilewright.diagnostics import TilewrightError, TilewrightWarning
from tilewright.runtime import dlpack, dtypes
from tilewright.runtime.arguments import intake
from tilewright.runtime.streams import current_stream_of, stream_handle
from tilewright.runtime.tensor_argument import TensorArgument, check_shape, contiguous_strides, normalised_strides


class CudaArray:
    """An object with `__cuda_array_interface__`; nothing may read its memory."""

    def __init__(self, **interface: Any) -> None:
        self.__cuda_array_interface__ = {"version": 3, "data": (4096, False), **interface}


class DLPackProducer:
    """Shares memory through DLPack with a layout and a device of choice, and notes what the consumer asked for."""

    def __init__(
        self,
        pointer: int,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        dtype: tuple[int, int],
        device: tuple[int, int] = (dlpack.CPU, 0),
        *,
        readonly: bool = False,
        old: bool = False,
    ) -> None:
        self.layout = (pointer, shape, strides, dtype, device)
        self.readonly = readonly
        self.old = old
        self.asked: list[dict[str, Any]] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.layout[4]

    def __dlpack__(self, **options: Any) -> Any:
        self.asked.append(options)
        if self.old and "max_version" in options:
            raise TypeError("__dlpack__() got an unexpected keyword argument 'max_version'")
        return dlpack.make_capsule(self, *self.layout, readonly=self.readonly, max_version=options.get("max_version"))


def buffer_of(data: bytes) -> tuple[Any, int]:
    """A ctypes buffer with `data` and its address; the caller keeps the buffer alive."""
    buffer = (ctypes.c_char * len(data)).from_buffer_copy(data)
    return buffer, ctypes.addressof(buffer)


BASE = np.arange(4 * 6 * 5, dtype=np.float32).reshape(4, 6, 5)

VIEWS = {
    "contiguous": BASE,
    "transposed": BASE.transpose(2, 0, 1),
    "fortran": np.asfortranarray(BASE),
    "stepped": BASE[1::2, ::3, 1:4],
    "reversed": BASE[::-1, :, ::-2],
    "broadcast": np.broadcast_to(BASE[:, :1, :], BASE.shape),
    "one wide": BASE[1:2, :, 3:4],
    "empty": BASE[:, 2:2],
    "rank 0": BASE[1, 2, 3, ...],
}


def element_at(argument: TensorArgument, place: tuple[int, ...]) -> float:
    """Reads a float through the record's address and strides alone."""
    offset = sum(i * stride for i, stride in zip(place, argument.strides, strict=True)) * 4
    assert argument.span[0] <= offset <= argument.span[1] - 4
    assert argument.array is not None
    raw = ctypes.string_at(argument.pointer + offset, 4)
    return struct.unpack("<f", raw)[0]


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS.keys())
def test_numpy_views_are_read_without_a_copy(view: np.ndarray[Any, Any]) -> None:
    argument = intake(view, "f32", "x")
    assert argument.shape == view.shape
    assert argument.array is view
    assert argument.pointer == view.ctypes.data
    assert (argument.device, argument.kind, argument.dtype) == ("host", "numpy", "f32")
    assert argument.readonly == (not view.flags.writeable)
    for place in np.ndindex(view.shape):
        assert element_at(argument, place) == view[place]
    assert argument.span == ((0, 0) if view.size == 0 else _span_by_enumeration(view))


def _span_by_enumeration(view: np.ndarray[Any, Any]) -> tuple[int, int]:
    offsets = [sum(i * s for i, s in zip(place, view.strides, strict=True)) for place in np.ndindex(view.shape)]
    return min(offsets), max(offsets) + 4


def test_dlpack_views_of_numpy_agree_with_numpy() -> None:
    class OnlyDLPack:
        def __init__(self, array: np.ndarray[Any, Any]) -> None:
            self.array = array

        def __dlpack__(self, **options: Any) -> Any:
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self) -> tuple[int, int]:
            return self.array.__dlpack_device__()

    for name, view in VIEWS.items():
        argument = intake(OnlyDLPack(view), "f32", "x")
        direct = intake(view, "f32", "x")
        assert (argument.shape, argument.strides, argument.readonly) == (
            direct.shape,
            direct.strides,
            direct.readonly,
        ), name
        if view.size:
            assert argument.pointer == direct.pointer
        assert argument.kind == "dlpack"
        assert argument.array is not None
        np.testing.assert_array_equal(argument.array, view)


def test_strides_of_dims_of_size_one_are_what_contiguous_would_have() -> None:
    wide = np.zeros((8, 100), np.float32)
    assert intake(wide[3:4, :7], "f32", "x").strides == (7, 1)
    assert intake(wide[:, 3:4], "f32", "x").strides == (100, 1)
    assert intake(wide[:0, ::2], "f32", "x").strides == (50, 1)
    assert normalised_strides((2, 1, 3), (60, 999, 20)) == (60, 60, 20)
    assert contiguous_strides((2, 3, 4)) == (12, 4, 1)
    assert contiguous_strides((2, 0, 4)) == (4, 4, 1)


def test_byte_strides_that_do_not_fit_are_copied_with_a_warning() -> None:
    table = np.zeros(5, dtype=np.dtype([("key", "i1"), ("value", "<f4")]))
    table["value"] = [1, 2, 3, 4, 5]
    with pytest.warns(TilewrightWarning, match=r"argument 2 \('w'\): copied"):
        argument = intake(table["value"], "f32", "w", index=2)
    assert argument.array is not None
    assert argument.strides == (1,)
    assert argument.array.tolist() == [1, 2, 3, 4, 5]
    with pytest.raises(TilewrightError, match="multiples of 4"):
        intake(table["value"], "f32", "w", writable=True)


def test_an_unaligned_base_is_copied_too() -> None:
    raw = bytearray(b"\0" + np.arange(3, dtype="<f4").tobytes())
    view = np.frombuffer(raw, "<f4", offset=1)
    assert view.ctypes.data % 4 == 1
    with pytest.warns(TilewrightWarning, match="copied"):
        assert intake(view, "f32", "x").pointer % 4 == 0


def test_bf16_in_every_form() -> None:
    array = np.array([1.5, -2, 3], ml_dtypes.bfloat16)
    assert intake(array, "bf16", "x").array is array
    opaque = intake(array.view("V2"), "bf16", "x")  # as np.load gives it
    assert opaque.array is not None
    np.testing.assert_array_equal(opaque.array, array)
    buffer, address = buffer_of(array.tobytes())
    shared = intake(DLPackProducer(address, (3,), (1,), (4, 16)), "bf16", "x")
    assert shared.array is not None
    np.testing.assert_array_equal(shared.array, array)
    shared.array[0] = 7
    assert bytes(buffer)[:2] == struct.pack("<f", 7.0)[2:]
    with pytest.raises(TilewrightError, match="expected element type f16, got bf16"):
        intake(array, "f16", "x")


@pytest.mark.parametrize(
    ("value", "expected"),
    [(3, "i32"), (-(2**31), "i32"), (2**40, "index"), (2**40, "i64"), (2.5, "f32"), (3, "f32"), (True, "i1")],
)
def test_numbers_by_value(value: float, expected: str) -> None:
    argument = intake(value, expected, "n", rank=0)
    assert argument.array is not None
    assert argument.array[()] == value
    assert argument.array.dtype == dtypes.element_type(expected).numpy_dtype()
    assert (argument.kind, argument.shape, argument.span) == ("scalar", (), (0, argument.element_bytes))


def test_a_float_beyond_the_range_is_infinity() -> None:
    argument = intake(1e300, "f32", "n")
    assert argument.array is not None
    assert argument.array[()] == np.inf


@pytest.mark.parametrize(
    ("value", "expected", "message"),
    [
        (2**31, "i32", "expected a value that i32 can hold, got 2147483648"),
        (2.0, "i32", "expected element type i32, got the float 2.0"),
        (True, "i32", "got the bool True"),
        (1, "i1", "got the int 1"),
        (np.float64(2), "f32", "expected element type f32, got float64"),
        (np.int64(2), "i32", "expected element type i32, got i64"),
        (np.zeros(2, ">f4"), "f32", "expected element type f32, got >f4"),
        (np.zeros(2, np.int32), "f32", "expected element type f32, got i32"),
        (np.zeros(2, np.uint32), "i32", "got uint32"),
        (np.ma.masked_array([1.0, 2.0]), "f32", "without a mask"),
        ([1.0, 2.0], "f32", "got list"),
        (None, "f32", "got NoneType"),
        (CudaArray(shape=(2,), typestr="<f8"), "f32", "expected element type f32, got float64"),
        (CudaArray(shape=(2,), typestr="<f4", mask=1), "f32", "without a mask"),
        (CudaArray(shape=(2,), typestr="<f4", strides=(6,)), "f32", "dim 0: expected a stride in multiples of 4"),
        (CudaArray(shape=(2,), typestr="<f4", data=(4098, False)), "f32", "multiple of 4, got 0x1002"),
        (CudaArray(shape=(2,), typestr="<f4", stream=0), "f32", "expected stream None or a handle"),
        (CudaArray(shape=(2,)), "f32", "complete __cuda_array_interface__, got KeyError"),
        (DLPackProducer(64, (2,), (1,), (1, 8)), "f32", r"DLPack code, bits, lanes \(1, 8, 1\)"),
        (DLPackProducer(64, (2,), (1,), (2, 32), (10, 0)), "f32", "got DLPack device type 10"),
    ],
)
def test_what_does_not_fit_is_named(value: object, expected: str, message: str) -> None:
    with pytest.raises(TilewrightError, match=message) as caught:
        intake(value, expected, "x", index=1)
    assert caught.value.message.startswith("argument 1 ('x'): ") or "__cuda_array_interface__" in caught.value.message
    assert "\n" not in caught.value.message


def test_rank_and_shape_and_writability() -> None:
    with pytest.raises(TilewrightError, match=r"expected 2 dims, got 1: shape \(3,\)"):
        intake(np.zeros(3, np.float32), "f32", "x", rank=2)
    argument = intake(np.zeros((3, 4), np.float32), "f32", "x")
    check_shape(argument, (3, None), "x")
    with pytest.raises(TilewrightError, match=r"argument 'x': dim 1: expected 5, got 4"):
        check_shape(argument, (3, 5), "x")
    with pytest.raises(TilewrightError, match="expected 1 dims, got 2"):
        check_shape(argument, (3,), "x")
    with pytest.raises(TilewrightError, match="read-only"):
        intake(np.broadcast_to(np.float32(1), (3,)), "f32", "x", writable=True)
    with pytest.raises(TilewrightError, match="got a number"):
        intake(1.0, "f32", "x", writable=True)


def test_cuda_array_interface() -> None:
    obj = CudaArray(shape=(3, 4), typestr="<f2", strides=(2, 6), stream=1)
    argument = intake(obj, "f16", "x")
    assert (argument.shape, argument.strides, argument.pointer) == ((3, 4), (1, 3), 4096)
    assert (argument.device, argument.kind, argument.stream, argument.array) == ("cuda", "cuda_array", 0, None)
    assert argument.owner is obj
    assert argument.span == (0, 24)
    assert intake(CudaArray(shape=(3, 4), typestr="<f4", strides=None), "f32", "x").strides == (4, 1)
    assert intake(CudaArray(shape=(3, 4), typestr="<f4"), "f32", "x").stream is None
    assert intake(CudaArray(shape=(), typestr="<i8", stream=77), "index", "x").stream == 77
    assert intake(CudaArray(shape=(2,), typestr="<f4", data=(4096, True)), "f32", "x").readonly
    assert intake(CudaArray(shape=(0,), typestr="|b1", data=(0, False)), "i1", "x").span == (0, 0)


def test_dlpack_on_a_gpu_tells_the_producer_the_stream() -> None:
    producer = DLPackProducer(4096, (3, 4), (4, 1), (4, 16), (dlpack.CUDA, 1))
    argument = intake(producer, "bf16", "x", consumer_stream=0)
    assert producer.asked == [{"stream": 1, "max_version": (1, 0)}]
    assert (argument.device, argument.device_index, argument.stream) == ("cuda", 1, None)
    intake(producer, "bf16", "x", consumer_stream=99)
    assert producer.asked[-1]["stream"] == 99


def test_an_old_dlpack_producer_and_a_read_only_one() -> None:
    buffer, address = buffer_of(struct.pack("<4f", 1, 2, 3, 4))
    old = DLPackProducer(address, (4,), (1,), (2, 32), old=True)
    argument = intake(old, "f32", "x")
    assert [sorted(options) for options in old.asked] == [["max_version"], []]
    assert argument.array is not None
    assert argument.array.tolist() == [1, 2, 3, 4]
    fixed = intake(DLPackProducer(address, (4,), (1,), (2, 32), readonly=True), "f32", "x")
    assert fixed.readonly
    assert fixed.array is not None
    assert not fixed.array.flags.writeable
    with pytest.raises(TilewrightError, match=r"read-only memory needs a consumer of DLPack 1\.0"):
        intake(DLPackProducer(address, (4,), (1,), (2, 32), readonly=True, old=True), "f32", "x")
    assert len(buffer) == 16


def test_a_producer_that_refuses_is_quoted() -> None:
    class NeedsGradient:
        def __dlpack_device__(self) -> tuple[int, int]:
            return (1, 0)

        def __dlpack__(self, **options: Any) -> Any:
            raise BufferError("Can't export tensors that require gradient, use tensor.detach()")

    with pytest.raises(TilewrightError, match=r"argument 'x': .*use tensor\.detach\(\)"):
        intake(NeedsGradient(), "f32", "x")


@pytest.mark.parametrize("max_version", [None, (1, 0)])
def test_a_capsule_keeps_its_owner_until_it_is_gone(max_version: tuple[int, int] | None) -> None:
    class Owner:
        pass

    owner = Owner()
    gone = weakref.ref(owner)
    capsule = dlpack.make_capsule(owner, 4096, (2, 3), (3, 1), (2, 32), (dlpack.CPU, 0), max_version=max_version)
    view = dlpack.read_capsule(capsule)
    del owner, capsule
    gc.collect()
    assert gone() is not None
    assert (view.pointer, view.shape, view.strides, view.dtype) == (4096, (2, 3), (3, 1), (2, 32, 1))
    del view
    gc.collect()
    assert gone() is None


def test_numpy_takes_our_capsules_and_frees_them() -> None:
    buffer, address = buffer_of(struct.pack("<6f", *range(6)))
    producer = DLPackProducer(address, (2, 3), (1, 2), (2, 32))
    gone = weakref.ref(producer)
    array = np.from_dlpack(producer)
    assert array.tolist() == [[0, 2, 4], [1, 3, 5]]
    del producer
    gc.collect()
    assert gone() is not None
    del array
    gc.collect()
    assert gone() is None
    assert len(buffer) == 24


def test_a_used_capsule_is_refused() -> None:
    class Twice:
        def __init__(self) -> None:
            self.capsule = np.zeros(3, np.float32).__dlpack__()

        def __dlpack_device__(self) -> tuple[int, int]:
            return (1, 0)

        def __dlpack__(self, **options: Any) -> Any:
            return self.capsule

    obj = Twice()
    np.from_dlpack(obj)
    with pytest.raises(TilewrightError, match="fresh DLPack capsule"):
        intake(obj, "f32", "x")


class FakeTorch:
    """The part of torch that the runtime looks at."""

    class Tensor:
        def __init__(self, is_cuda: bool) -> None:
            self.is_cuda = is_cuda
            self.device = "cuda:0"
            self.asked: dict[str, Any] = {}

        def __dlpack_device__(self) -> tuple[int, int]:
            return (2, 0)

        def __dlpack__(self, **options: Any) -> Any:
            self.asked = options
            return dlpack.make_capsule(self, 8192, (2, 2), (2, 1), (4, 16), (2, 0), max_version=(1, 0))

    class cuda:
        @staticmethod
        def current_stream(device: str) -> Any:
            assert device == "cuda:0"
            return SimpleNamespace(cuda_stream=1234)


def test_torch_tensors_come_with_the_current_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", FakeTorch)
    tensor = FakeTorch.Tensor(is_cuda=True)
    argument = intake(tensor, "bf16", "x")
    assert (argument.kind, argument.stream, argument.pointer) == ("torch", 1234, 8192)
    assert tensor.asked["stream"] == -1
    assert current_stream_of(FakeTorch.Tensor(is_cuda=False)) is None


def test_stream_handles() -> None:
    foreign = [SimpleNamespace(cuda_stream=5), SimpleNamespace(ptr=6), SimpleNamespace(handle=7)]
    protocol = SimpleNamespace(__cuda_stream__=lambda: (0, 8))
    given = [None, 0, 1, 2, 4096, *foreign, protocol]
    assert [stream_handle(stream) for stream in given] == [0, 0, 0, 2, 4096, 5, 6, 7, 8]
    for wrong in (True, -1, "0", 1.0):
        with pytest.raises(TilewrightError, match="stream: expected a handle"):
            stream_handle(wrong)
    assert current_stream_of(CudaArray(stream=1)) == 0
    assert current_stream_of(CudaArray(stream=9)) == 9
    assert current_stream_of(np.zeros(3)) is None


@pytest.mark.parametrize("name", dtypes.NAMES)
def test_the_table_of_element_types_agrees_with_numpy(name: str) -> None:
    entry = dtypes.element_type(name)
    dtype = entry.numpy_dtype()
    assert dtype.itemsize == entry.bytes
    assert dtypes.same_memory(dtypes.name_of_numpy(dtype) or "", name)
    assert dtypes.same_memory(dtypes.name_of_dlpack(*entry.dlpack, 1) or "", name)
    if entry.typestr is not None:
        assert dtype.str == entry.typestr
    if entry.struct_format is not None:
        assert struct.calcsize("=" + entry.struct_format) == entry.bytes


def test_an_unknown_element_type() -> None:
    with pytest.raises(TilewrightError, match="expected one of f32, f16, bf16, i32, i64, index, i1, got 'f128'"):
        dtypes.element_type("f128")
