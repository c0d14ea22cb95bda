"""Pure functions and solver doors: arrays in, arrays out; no state, no domain nouns.

Compiled kernels are cached on disk. numba looks only at a kernel's own file to see whether its cache is fresh, but kernels
call each other across files, so the cache lives in a folder named after the text of all of them.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path


def _cache_folder() -> Path:
    here = Path(__file__).parent
    digest = hashlib.sha256()
    for path in sorted(here.glob("*.py")):
        digest.update(path.name.encode() + path.read_bytes())
    return here / "__pycache__" / f"kernels-{digest.hexdigest()[:16]}"


def _choose_cache() -> None:
    """Sets numba's cache folder before numba is imported; leaves a user's own choice and read-only installations alone."""
    if "NUMBA_CACHE_DIR" in os.environ:
        return
    folder = _cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return
    if os.access(folder, os.W_OK):
        os.environ["NUMBA_CACHE_DIR"] = str(folder)


_choose_cache()
