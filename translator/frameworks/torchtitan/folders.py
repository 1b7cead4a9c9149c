"""Folders that torchtitan puts inside its dump folder, as the paths they are.

``dump_folder`` stands before the folders of checkpoints and TensorBoard (``components/checkpoint.py:264``,
``components/metrics.py:291`` at 0.2.2); an absolute path stays what it is. Other frameworks know no such folder.
"""

from __future__ import annotations

import posixpath
from typing import Any

from translator.catalogue import load
from translator.ledger import Entry
from translator.mapping.views import NativeView, Sink, SpecView

# The name of the TOML versions, and that of 0.3.0.
_DUMPS = ("job.dump_folder", "dump_folder")
_LEAVES = ("checkpoint.save", "logging.tensorboard_dir")


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


def write(spec: SpecView, sink: Sink, address: str, leaf: str) -> None:
    """State the folder of ``leaf``, a path from the working folder, at ``address``.

    Relative folders outside the dump folder make the working folder the dump folder, unless the source, a
    configuration of torchtitan itself, has set that.
    """
    path = spec(leaf)
    given = next((found for name in _DUMPS if isinstance(found := spec.extras.get(name), str)), None)
    dump = posixpath.normpath(given or _default(sink.version))
    if _whole(path):
        sink.put(address, path)
        return
    if path != posixpath.normpath(path):
        sink.short(leaf, Entry.ADAPTED, "the same folder, written without what changes nothing")
    if all(_inside(spec(each), dump) for each in _LEAVES if spec(each) and not _whole(spec(each))):
        sink.put(address, posixpath.normpath(path)[len(dump) + 1 :])
    elif given is None:
        any(sink.put(name, ".", "relative folders begin in the working folder") for name in _DUMPS)
        sink.put(address, path)
    else:
        sink.put(address, path if dump == "." or _whole(dump) else posixpath.relpath(path, dump))


def _inside(path: str, folder: str) -> bool:
    return posixpath.normpath(path).startswith(f"{folder}/")
