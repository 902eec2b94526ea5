"""Write ``kubernetes_pb2.py`` and ``kubernetes_pb2.pyi`` from ``kubernetes.proto``. Needs grpcio-tools."""

import importlib.resources
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
SCHEMA = HERE / "kubernetes.proto"
NAMES = ("kubernetes_pb2.py", "kubernetes_pb2.pyi")
_UNTOUCHED = "# ruff: noqa\n# fmt: off\n# mypy: ignore-errors\n"


def generated(schema: Path = SCHEMA) -> dict[str, str]:
    """What belongs into each file of :data:`NAMES`.

    Raises:
        RuntimeError: protoc does not take the schema.
    """
    from grpc_tools import protoc  # type: ignore[import-untyped]

    package = importlib.resources.files("grpc_tools") / "_proto"
    with tempfile.TemporaryDirectory() as directory:
        arguments = [
            "protoc",
            f"-I{schema.parent}",
            f"-I{package}",
            f"--python_out={directory}",
            f"--pyi_out={directory}",
        ]
        if protoc.main([*arguments, schema.name]) != 0:
            raise RuntimeError(f"protoc does not take {schema}")
        stem = f"{schema.stem}_pb2"
        return {
            f"{stem}{suffix}": _UNTOUCHED + (Path(directory) / f"{stem}{suffix}").read_text(encoding="utf-8")
            for suffix in (".py", ".pyi")
        }


if __name__ == "__main__":
    for name, text in generated().items():
        (HERE / name).write_text(text, encoding="utf-8")
