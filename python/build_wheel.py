"""Builds the wheel: the Python package, the installed program, and the library.

    python3 python/build_wheel.py --prefix DIR --version 0.1.0 --glibc 2.28 --machine x86_64 --strip strip --licences DIR --out dist

The prefix is where `make install` put the program and libbertc, which hold every library that they need but the system's own, and
the licences are those of these libraries. Nothing of the package is compiled against Python, so one wheel is for every version of
Python 3.

The same inputs give the same bytes."""

from __future__ import annotations

import argparse
import base64
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

SOURCE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(SOURCE)
# What every Linux has; PEP 600's list, as far as it concerns us.
OF_THE_SYSTEM = re.compile(r"^(linux-vdso|ld-linux[^/]*|libc|libm|libdl|librt|libpthread)\.so")

METADATA = """\
Metadata-Version: 2.4
Name: bertc
Version: {version}
Summary: BERT from raw text to a model you can ship: tokenizer, embeddings, predictions, and the program bertc
License-Expression: Apache-2.0
License-File: LICENSE
Keywords: BERT,tokenizer,embeddings,WordPiece,NLP
Classifier: Intended Audience :: Developers
Classifier: Intended Audience :: Science/Research
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: Python :: 3
Classifier: Topic :: Scientific/Engineering :: Artificial Intelligence
Classifier: Typing :: Typed
Requires-Python: >=3.9
Requires-Dist: numpy>=1.21
Description-Content-Type: text/markdown

"""
WHEEL = """\
Wheel-Version: 1.0
Generator: bertc
Root-Is-Purelib: false
Tag: py3-none-{platform}
"""
ENTRY_POINTS = """\
[console_scripts]
bertc = bertc.__main__:main
"""


def is_elf(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def stage(prefix: str, folder: str, strip: str) -> None:
    """The package as it is installed: its modules, and program, library, and recipes below it."""
    package = os.path.join(folder, "bertc")
    shutil.copytree(os.path.join(SOURCE, "bertc"), package, ignore=shutil.ignore_patterns("__pycache__"))
    for part in ("bin", "lib", "share/bertc"):
        if os.path.isdir(os.path.join(prefix, part)):
            shutil.copytree(os.path.join(prefix, part), os.path.join(package, part), symlinks=True)
    # A wheel has no symbolic links: of the names of a library, the one that the package loads stays.
    library = os.path.join(package, "lib")
    shutil.rmtree(os.path.join(library, "pkgconfig"), ignore_errors=True)
    for name in sorted(os.listdir(library)):
        path = os.path.join(library, name)
        if os.path.islink(path):
            target = os.path.realpath(path)
            os.unlink(path)
            if re.fullmatch(r"libbertc\.so\.\d+", name):
                os.rename(target, path)
    for path in all_files(package):
        if is_elf(path):
            subprocess.run([strip, "--strip-unneeded", path], check=True)


def all_files(folder: str) -> list[str]:
    return sorted(os.path.join(at, name) for at, _, names in os.walk(folder) for name in names)


def check_libraries(folder: str) -> None:
    """Nothing that a program or library in the folder loads may be missing on another Linux."""
    for path in all_files(folder):
        if not is_elf(path):
            continue
        for line in subprocess.run(["readelf", "-d", path], check=True, capture_output=True, text=True).stdout.splitlines():
            match = re.search(r"\(NEEDED\).*\[(.+)\]", line)
            if match and not OF_THE_SYSTEM.match(match[1]):
                sys.exit(f"build_wheel: {path} needs {match[1]}, which not every Linux has")


def write_metadata(folder: str, version: str, tag: str) -> str:
    info = os.path.join(folder, f"bertc-{version}.dist-info")
    os.makedirs(os.path.join(info, "licenses"), exist_ok=True)
    shutil.copyfile(os.path.join(ROOT, "LICENSE"), os.path.join(info, "licenses", "LICENSE"))
    with open(os.path.join(SOURCE, "README.md"), encoding="utf-8") as file:
        readme = file.read()
    for name, text in (
        ("METADATA", METADATA.format(version=version) + readme),
        ("WHEEL", WHEEL.format(platform=tag)),
        ("entry_points.txt", ENTRY_POINTS),
    ):
        with open(os.path.join(info, name), "w", encoding="utf-8") as file:
            file.write(text)
    return info


def pack(folder: str, info: str, wheel: str) -> None:
    """The folder as a wheel: RECORD last, the same bytes for the same files."""
    record = os.path.join(info, "RECORD")
    if os.path.exists(record):
        os.unlink(record)
    lines = []
    for path in all_files(folder):
        with open(path, "rb") as file:
            digest = base64.urlsafe_b64encode(hashlib.sha256(file.read()).digest()).rstrip(b"=").decode()
        lines.append(f"{os.path.relpath(path, folder)},sha256={digest},{os.path.getsize(path)}")
    lines.append(f"{os.path.relpath(record, folder)},,")
    with open(record, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    files = [path for path in all_files(folder) if path != record] + [record]
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path in files:
            entry = zipfile.ZipInfo(os.path.relpath(path, folder), (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if os.access(path, os.X_OK) else 0o100644) << 16
            with open(path, "rb") as file:
                archive.writestr(entry, file.read())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prefix", required=True)
    parser.add_argument("--version", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--glibc", required=True, help="the oldest that program and library run with")
    parser.add_argument("--machine", required=True, help="the processor that they are for, in the words of uname -m")
    parser.add_argument("--strip", required=True, help="the program that strips files for this processor")
    parser.add_argument("--licences", required=True)
    options = parser.parse_args()
    os.makedirs(options.out, exist_ok=True)
    with tempfile.TemporaryDirectory() as room:
        folder = os.path.realpath(os.path.join(room, "wheel"))
        os.makedirs(folder)
        stage(options.prefix, folder, options.strip)
        check_libraries(folder)
        tag = f"manylinux_{options.glibc.replace('.', '_')}_{options.machine}"
        info = write_metadata(folder, options.version, tag)
        shutil.copytree(options.licences, os.path.join(info, "licenses", "libraries"))
        wheel = os.path.join(room, f"bertc-{options.version}-py3-none-{tag}.whl")
        pack(folder, info, wheel)
        for old in os.listdir(options.out):
            if old.startswith("bertc-") and old.endswith(".whl"):
                os.unlink(os.path.join(options.out, old))
        target = os.path.join(options.out, os.path.basename(wheel))
        shutil.copyfile(wheel, target)
    print(target)


if __name__ == "__main__":
    main()
