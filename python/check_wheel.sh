#!/bin/sh
# Checks a wheel as a user meets it: in a fresh virtual environment that has the wheel and what it asks for, nothing else. Says how
# large it is and how long it takes from the install to the first result, and runs the tests of the package on it.
# usage: check_wheel.sh WHEEL
set -e
wheel=$(realpath "$1") tests=$(cd "$(dirname "$0")/tests" && pwd) room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
now() { date +%s.%N; }
since() { awk "BEGIN {printf \"%.2f s\", $(now) - $1}"; }
! command -v auditwheel >/dev/null || auditwheel show "$wheel"
echo "size: $(du -h --apparent-size "$wheel" | cut -f 1)B, installed $(python3 -c '
import sys, zipfile
print(round(sum(entry.file_size for entry in zipfile.ZipFile(sys.argv[1]).infolist()) / 2**20), "MiB")' "$wheel")"
"${PYTHON:-python3}" -m venv "$room/venv"
"$room/venv/bin/pip" -q --disable-pip-version-check install numpy
begin=$(now)
"$room/venv/bin/pip" -q --disable-pip-version-check install "$wheel"
echo "install: $(since "$begin")"
# What the wheel does not bring is what PEP 600 lets a manylinux wheel expect of every Linux.
for file in "$room"/venv/lib/python3*/site-packages/bertc/bin/bertc "$room"/venv/lib/python3*/site-packages/bertc/lib/libbertc.so.*; do
	ldd "$file"
done | grep -vE 'site-packages|linux-vdso|ld-linux|lib(c|m|dl|rt|pthread)\.so' && {
	echo "the wheel lacks these libraries"; exit 1; }
cd "$tests"
"$room/venv/bin/python" -c "import small_model; small_model.write_model('$room/model', 'BertForSequenceClassification', ['bad', 'good'])"
# Nothing of this machine is used that the wheel has.
cd "$room"
env -u LD_LIBRARY_PATH -u PYTHONPATH -u BERTC_LIBRARY "$room/venv/bin/python" - "$room/model" <<'END'
import sys, time
begin = time.perf_counter()
import bertc
print(bertc.Tokenizer(sys.argv[1]).encode(["a good film"])[0].tolist())
print(f"first ids after {time.perf_counter() - begin:.2f} s")
print(bertc.Model(sys.argv[1]).predict(["a good film"])[0])
print(f"first prediction after {time.perf_counter() - begin:.2f} s")
for line in sorted({line.split()[-1] for line in open("/proc/self/maps") if ".so" in line and "python3" not in line}):
    print("  loaded", line)
    if any(name in line for name in ("dnnl", "utf8proc", "zstd", "bertc.so")) and "site-packages" not in line:
        sys.exit(f"{line} is not the wheel's")
END
begin=$(now)
"$room/venv/bin/bertc" version
echo "the command: $(since "$begin")"
cd "$tests" && env -u LD_LIBRARY_PATH -u PYTHONPATH -u BERTC_LIBRARY -u BERTC_PROGRAM "$room/venv/bin/python" -m unittest -q test_bertc test_train
