"""The folder of compiled kernels follows the text of all of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tradewind import maths


def test_the_cache_folder_is_named_after_the_kernels_and_set_before_numba() -> None:
    folder = maths._cache_folder()
    assert folder.parent == Path(maths.__file__).parent / "__pycache__"
    code = "import tradewind.maths, numba; print(numba.config.CACHE_DIR)"
    env = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert Path(done.stdout.strip()) == folder
    own = subprocess.run(
        [sys.executable, "-c", code],
        env=env | {"NUMBA_CACHE_DIR": "elsewhere"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert own.stdout.strip() == "elsewhere"
