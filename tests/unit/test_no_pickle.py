"""Loading must not run code, so nothing in the package may be able to."""

import ast
from pathlib import Path

import pytest

import surefoot.errors

PACKAGE = Path(surefoot.errors.__file__).parent
MODULES = {"pickle", "_pickle", "cPickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}
BUILTINS = {"eval", "exec"}
CALLS = {"torch.load", "torch.serialization.load", "yaml.load", "yaml.unsafe_load", "yaml.full_load"}
CALLS |= {f"builtins.{name}" for name in BUILTINS}


def dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else "?"


def imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [f"{node.module}.{alias.name}" for alias in node.names]
    return []


def offences(source: str) -> list[str]:
    """What in this source could run code from data, with its line."""
    tree = ast.parse(source)
    aliases = {
        alias.asname: alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.asname
    }
    found = []
    for node in ast.walk(tree):
        found += [f"{node.lineno}: {name}" for name in imported(node) if name.split(".")[0] in MODULES or name in CALLS]
        if isinstance(node, ast.Name) and node.id in BUILTINS:
            found.append(f"{node.lineno}: {node.id}")
        if isinstance(node, ast.Attribute):
            head, _, rest = dotted(node).partition(".")
            if f"{aliases.get(head, head)}.{rest}" in CALLS:
                found.append(f"{node.lineno}: {dotted(node)}")
        if isinstance(node, ast.keyword) and node.arg == "allow_pickle" and not _is_false(node.value):
            found.append(f"{node.value.lineno}: allow_pickle")
        if isinstance(node, ast.Constant) and node.value in MODULES:
            found.append(f"{node.lineno}: {node.value!r}")  # import_module("pickle")
    return found


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


EXECUTES = PACKAGE / "graph" / "run" / "execute.py"
"""Runs programs that were written from a checked graph, and code nodes that were trusted; nothing else may."""


@pytest.mark.parametrize(
    "path", sorted(set(PACKAGE.rglob("*.py")) - {EXECUTES}), ids=lambda path: str(path.relative_to(PACKAGE))
)
def test_no_file_of_the_package_can_run_code_from_data(path):
    assert offences(path.read_text()) == []


def test_the_one_file_that_executes_is_used_by_the_compiled_engine_and_by_code_nodes_alone():
    assert [line.partition(": ")[2] for line in offences(EXECUTES.read_text())] == ["exec"]
    users = [path for path in PACKAGE.rglob("*.py") if "graph.run.execute" in path.read_text()]
    assert sorted(str(path.relative_to(PACKAGE)) for path in users) == [
        "graph/run/compiled.py",
        "graph/runtime/flow.py",
    ]


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "import pickle as p",
        "from pickle import loads",
        "import cloudpickle",
        "import joblib",
        "from joblib import load",
        "import marshal",
        "import torch\ntorch.load('x')",
        "import torch as t\nt.load('x')",
        "from torch import load",
        "eval('1')",
        "f = exec",
        "import builtins\nbuiltins.eval('1')",
        "import yaml\nyaml.load('x', yaml.SafeLoader)",
        "from yaml import unsafe_load",
        "import numpy as np\nnp.load('x', allow_pickle=True)",
        "import importlib\nimportlib.import_module('pickle')",
    ],
)
def test_each_way_to_run_code_from_data_is_seen(source):
    assert len(offences(source)) == 1


@pytest.mark.parametrize(
    "source",
    [
        "import yaml\nyaml.safe_load('x')",
        "net.eval()",
        "import numpy as np\nnp.load('x', allow_pickle=False)",
        "import json\njson.load(file)",
        '"""No pickle here."""',
    ],
)
def test_what_cannot_run_code_is_left_alone(source):
    assert offences(source) == []
