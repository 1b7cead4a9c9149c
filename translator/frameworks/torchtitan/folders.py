"""Folders that torchtitan puts inside its dump folder, as the paths they are.

``dump_folder`` stands before the folders of checkpoints and TensorBoard (``components/checkpoint.py:264``,
``components/metrics.py:291`` at 0.2.2); an absolute path stays what it is. Other frameworks know no such folder.
"""

from __future__ import annotations

import posixpath
from typing import Any

from translator.catalogue import load
from translator.mapping.views import NativeView, Sink, SpecView

# The name of the TOML versions, and that of 0.3.0.
_DUMPS = ("job.dump_folder", "dump_folder")


def _whole(path: str) -> bool:
    return path.startswith("/") or "://" in path


def _default(version: str) -> str:
    catalogue = load("torchtitan", version)
    return next(str(catalogue.default(name)) for name in _DUMPS if name in catalogue)


def read(native: NativeView, address: str) -> Any:
    """The path of the folder at ``address``."""
    path = native(address)
    if not isinstance(path, str) or _whole(path):
        return path
    dump = next((found for name in _DUMPS if isinstance(found := native(name), str)), _default(native.version))
    return posixpath.normpath(posixpath.join(dump, path)) if "://" not in dump else posixpath.join(dump, path)


def write(spec: SpecView, sink: Sink, address: str, path: str) -> None:
    """State ``path``, from the working folder, at ``address``.

    A relative path outside the dump folder makes the working folder the dump folder, unless the source, a
    configuration of torchtitan itself, has set that.
    """
    given = next((found for name in _DUMPS if isinstance(found := spec.extras.get(name), str)), None)
    dump = posixpath.normpath(given or _default(sink.version))
    if _whole(path):
        sink.put(address, path)
    elif posixpath.normpath(path).startswith(f"{dump}/") and sink.get(_DUMPS[0]) is None:
        sink.put(address, posixpath.normpath(path)[len(dump) + 1 :])
    elif given is not None:
        sink.put(address, path if dump == "." else posixpath.relpath(path, dump) if not _whole(dump) else path)
    else:
        any(sink.put(name, ".", "relative folders begin in the working folder") for name in _DUMPS)
        sink.put(address, path)
