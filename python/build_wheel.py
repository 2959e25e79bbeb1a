"""Builds the wheel: the Python package, the installed program, and the libraries that both need.

    python3 python/build_wheel.py --prefix DIR --version 0.1.0 --out dist [--auditwheel PROGRAM]

DIR is where `make install` put the program and libbertc. Nothing of the package is compiled against Python, so one wheel is for
every version of Python 3. Bundled libraries: auditwheel puts them into the wheel under names of their own, so that they get along
with other packages' libraries, and names the oldest glibc that the wheel runs with. Without auditwheel they are put in under the
names that they have, found by the RPATH of program and library, and the wheel is tagged for this system's glibc.

The same inputs give the same bytes."""

from __future__ import annotations

import argparse
import base64
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

SOURCE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(SOURCE)
# What every Linux has; PEP 600's list, as far as it concerns us.
OF_THE_SYSTEM = re.compile(
    r"^(linux-vdso|ld-linux[^/]*|libc|libm|libdl|librt|libpthread|libutil|libresolv|libnsl|libgcc_s|libstdc\+\+)\.so"
)

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


def stage(prefix: str, folder: str) -> None:
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
            subprocess.run(["strip", "--strip-unneeded", path], check=True)


def all_files(folder: str) -> list[str]:
    return sorted(os.path.join(at, name) for at, _, names in os.walk(folder) for name in names)


def needed_libraries(folder: str) -> dict[str, str]:
    """Names and paths of what the programs and libraries in a folder load, and what these load, but for the system's own."""
    found: dict[str, str] = {}
    for path in all_files(folder):
        if not is_elf(path):
            continue
        for line in subprocess.run(["ldd", path], check=True, capture_output=True, text=True).stdout.splitlines():
            match = re.match(r"\s*(\S+) => (\S+)", line)
            if not match or OF_THE_SYSTEM.match(os.path.basename(match[1])):
                continue
            if match[2] == "not":
                sys.exit(f"build_wheel: {path} needs {match[1]}, which is not on this machine")
            if not os.path.realpath(match[2]).startswith(folder):
                found[match[1]] = match[2]
    return found


def licences(libraries: dict[str, str], folder: str) -> None:
    """The licences of the packages that bundled libraries come from, where the system has dpkg."""
    if not shutil.which("dpkg"):
        return
    for path in sorted(libraries.values()):
        for name in (path, os.path.realpath(path), os.path.realpath(path).removeprefix("/usr")):
            owner = subprocess.run(["dpkg", "-S", name], capture_output=True, text=True)
            if owner.returncode == 0:
                package = owner.stdout.split(":")[0]
                copyright = f"/usr/share/doc/{package}/copyright"
                if os.path.exists(copyright):
                    os.makedirs(folder, exist_ok=True)
                    shutil.copyfile(copyright, os.path.join(folder, f"{package}.txt"))
                break


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


def glibc_tag() -> str:
    version = platform.libc_ver()[1].split(".")
    return f"manylinux_{version[0]}_{version[1]}_{platform.machine()}"


def bundle(folder: str) -> None:
    """Without auditwheel: needed libraries beside the package's own, where the RPATH of program and library finds them."""
    target = os.path.join(folder, "bertc", "lib", "bertc")
    os.makedirs(target, exist_ok=True)
    for name, path in needed_libraries(folder).items():
        shutil.copyfile(path, os.path.join(target, name))


def unpack(wheel: str, folder: str) -> None:
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.infolist():
            path = archive.extract(entry, folder)
            if entry.external_attr >> 16 & 0o111:
                os.chmod(path, 0o755)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prefix", required=True)
    parser.add_argument("--version", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--auditwheel", help="the program auditwheel; patchelf must be found, too")
    options = parser.parse_args()
    os.makedirs(options.out, exist_ok=True)
    with tempfile.TemporaryDirectory() as room:
        folder = os.path.realpath(os.path.join(room, "wheel"))
        os.makedirs(folder)
        stage(options.prefix, folder)
        bundled = needed_libraries(folder)
        tag = f"linux_{platform.machine()}" if options.auditwheel else glibc_tag()
        if not options.auditwheel:
            bundle(folder)
        info = write_metadata(folder, options.version, tag)
        licences(bundled, os.path.join(info, "licenses", "libraries"))
        wheel = os.path.join(room, f"bertc-{options.version}-py3-none-{tag}.whl")
        pack(folder, info, wheel)
        if options.auditwheel:
            repaired = os.path.join(room, "repaired")
            subprocess.run([options.auditwheel, "repair", "--wheel-dir", repaired, wheel], check=True)
            (name,) = os.listdir(repaired)
            # Packed again, since auditwheel's bytes depend on the time.
            folder = os.path.join(room, "again")
            unpack(os.path.join(repaired, name), folder)
            wheel = os.path.join(room, name)
            pack(folder, os.path.join(folder, os.path.basename(info)), wheel)
        for old in os.listdir(options.out):
            if old.startswith("bertc-") and old.endswith(".whl"):
                os.unlink(os.path.join(options.out, old))
        target = os.path.join(options.out, os.path.basename(wheel))
        shutil.copyfile(wheel, target)
    print(target)


if __name__ == "__main__":
    main()
