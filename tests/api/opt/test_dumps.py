"""IR between passes: which dumps come, under which banner, and as which files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.api.opt.support import TWO, one_line_of, run

MARK_G = "func.func(test-misbehave{only=g})"


def banners(*argv: str, text: str = TWO) -> list[str]:
    """Run the tool and return what stands between `IR Dump` and the end of each banner."""
    _, out, err = run(*argv, text=text)
    assert "// -----//" not in out
    return [line.split("IR Dump ")[1].removesuffix(" //----- //") for line in err.splitlines() if "IR Dump" in line]


def test_banners_are_those_that_people_grep_for() -> None:
    err = run("-p", "func.func(cse),cse", "--print-ir-after-all", text=TWO)[2]
    assert "// -----// IR Dump After cse ('func.func' operation: @f) //----- //\nfunc.func @f(" in err
    assert "// -----// IR Dump After cse //----- //\nbuiltin.module {\n" in err


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--print-ir-before=cse",), ["Before cse"]),
        (("--print-ir-after=cse,canonicalize",), ["After cse", "After canonicalize"]),
        (("--print-ir-after=cse", "--print-ir-after", "canonicalize"), ["After cse", "After canonicalize"]),
        (("--print-ir-before=cse", "--print-ir-after=canonicalize"), ["Before cse", "After canonicalize"]),
        (("--print-ir-after-all",), ["After cse", "After test-misbehave", "After canonicalize"]),
        (("--print-ir-before-all",), ["Before cse", "Before test-misbehave", "Before canonicalize"]),
        (("--print-ir-after-change",), ["After test-misbehave"]),
        (("--print-ir-after-all", "--print-ir-after-change"), ["After test-misbehave"]),
        (("--print-ir-after=cse", "--print-ir-after-change"), []),
        (("--print-ir-after-failure",), []),
        (("--print-ir-after-all", "--print-ir-after-failure"), []),
        ((), []),
    ],
)
def test_which_dumps_come(options: tuple[str, ...], expected: list[str]) -> None:
    assert banners("-p", "cse,test-misbehave,canonicalize", *options) == expected


def test_only_the_function_that_changed_is_dumped() -> None:
    assert banners("-p", MARK_G, "--print-ir-after-change") == ["After test-misbehave ('func.func' operation: @g)"]
    assert "@f" not in run("-p", MARK_G, "--print-ir-after-change", text=TWO)[2]


def test_module_scope_shows_all_functions() -> None:
    _, _, err = run("-p", MARK_G, "--print-ir-after-change", "--print-ir-module-scope", text=TWO)
    assert "('func.func' operation: @g) //----- //\nbuiltin.module {\n  sym.symbol @N\n  func.func @f(" in err


@pytest.mark.parametrize(
    "options", [("--print-ir-after-failure",), ("--print-ir-after-all",), ("--print-ir-after=cse",)]
)
def test_dumps_after_failure(options: tuple[str, ...]) -> None:
    code, _, err = run("-p", "cse,func.func(test-misbehave{how=crash only=g})", *options, text=TWO)
    assert code == 1
    failed = "// -----// IR Dump After test-misbehave Failed ('func.func' operation: @g) //----- //"
    assert (failed in err) == (options[0] != "--print-ir-after=cse")
    assert ("After cse //" in err) == (options[0] != "--print-ir-after-failure")


# --- as files


def files(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def test_a_tree_of_files_as_mlir_opt_makes_it(tmp_path: Path) -> None:
    tree = tmp_path / "new" / "tree"
    pipeline = "cse,func.func(canonicalize,cse),canonicalize"
    code, out, err = run("-p", pipeline, f"--print-ir-tree-dir={tree}", "--print-ir-after-all", text=TWO)
    assert (code, err) == (0, "")
    assert files(tree) == [
        "builtin_module_no-symbol-name/0_cse.mlir",
        "builtin_module_no-symbol-name/1_canonicalize.mlir",
        "builtin_module_no-symbol-name/func_func_f/0_0_canonicalize.mlir",
        "builtin_module_no-symbol-name/func_func_f/0_1_cse.mlir",
        "builtin_module_no-symbol-name/func_func_g/0_0_canonicalize.mlir",
        "builtin_module_no-symbol-name/func_func_g/0_1_cse.mlir",
    ]
    text = (tree / "builtin_module_no-symbol-name" / "1_canonicalize.mlir").read_text(encoding="utf-8")
    assert text == f"// -----// IR Dump After canonicalize //----- //\n{out}\n"


def test_a_tree_alone_means_after_all_and_is_overwritten(tmp_path: Path) -> None:
    for _ in range(2):
        assert run("-p", "cse", "--print-ir-tree-dir", str(tmp_path), text=TWO)[::2] == (0, "")
    assert files(tmp_path) == ["builtin_module_no-symbol-name/0_cse.mlir"]
    run("-p", "cse,canonicalize", f"--print-ir-tree-dir={tmp_path}", "--print-ir-before=canonicalize", text=TWO)
    assert files(tmp_path)[1:] == ["builtin_module_no-symbol-name/0_cse.mlir"]


def test_parts_of_a_file_have_trees_of_their_own(tmp_path: Path) -> None:
    text = f"{TWO}// -----\n{TWO}"
    assert run("-p", "cse", "--split-input-file", f"--print-ir-tree-dir={tmp_path}", text=text)[0] == 0
    assert files(tmp_path) == [
        "builtin_module_no-symbol-name/0_cse.mlir",
        "part_1/builtin_module_no-symbol-name/0_cse.mlir",
    ]


def test_a_symbol_cannot_leave_the_tree(tmp_path: Path) -> None:
    text = 'func.func @"../../../x/y"() {\n  func.return\n}\nfunc.func @"' + "z" * 3000 + '"() {\n  func.return\n}\n'
    assert run("-p", "func.func(cse)", f"--print-ir-tree-dir={tmp_path / 'tree'}", text=text)[::2] == (0, "")
    made = files(tmp_path)
    assert made[0] == "tree/builtin_module_no-symbol-name/func_func_.._.._.._x_y/0_0_cse.mlir"
    assert len(made) == 2


def test_a_tree_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("", encoding="utf-8")
    for place in (blocked, blocked / "below", Path("/proc/nowhere"), Path(os.devnull)):
        code, out, err = run("-p", "cse", f"--print-ir-tree-dir={place}", text=TWO)
        assert (code, out) == (1, "")
        assert one_line_of(err).startswith(f"error: cannot write '{place}/builtin_module_no-symbol-name/0_cse.mlir': ")
