"""Packs a wheel around a library that cargo has built, and installs it: pack.py LIBRARY FOLDER.

`maturin build` would do the same, but compiles everything once more, with the features of this crate alone.
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile

library, site = map(pathlib.Path, sys.argv[1:])
here = pathlib.Path(__file__).parent
python = [sys.executable, "-m"]
with tempfile.TemporaryDirectory() as scratch:
    content = pathlib.Path(scratch, "content")
    shutil.copytree(
        here / "python" / "ironbloom",
        content / "ironbloom",
        ignore=shutil.ignore_patterns("__pycache__", "*.so"),
    )
    shutil.copy(library, content / "ironbloom" / "_native.abi3.so")
    maturin = pathlib.Path(sys.executable).with_name("maturin")
    subprocess.run(
        [maturin, "pep517", "write-dist-info", "--metadata-directory", content],
        cwd=here,
        check=True,
    )
    subprocess.run([*python, "wheel", "pack", content, "--dest-dir", scratch], check=True)
    (wheel,) = pathlib.Path(scratch).glob("*.whl")
    print(wheel.name)
    shutil.rmtree(site, ignore_errors=True)
    # Kept beside it, for environments of other interpreters.
    wheels = site.with_name("wheels")
    shutil.rmtree(wheels, ignore_errors=True)
    wheels.mkdir(parents=True)
    shutil.copy(wheel, wheels)
    install = ["pip", "install", "--quiet", "--no-deps", "--no-index", "--disable-pip-version-check"]
    subprocess.run([*python, *install, "--target", site, wheel], check=True)
