#!/bin/sh
# The service among clients that hang up, send garbage, send slowly, read slowly or ask for too much: every valid request gets
# the same bytes as before they came, memory does not grow, and SIGTERM ends the service with exit code 0.
#   sh tests/long/rude_clients.sh        BERTC names the program, SECONDS_LONG is the duration (600), MODEL a folder to serve
#                                        instead of a tiny new one; exit code 77 without Python
set -u
bertc=${BERTC:-build/bertc}
command -v python3 >/dev/null || { echo "no python3"; exit 77; }
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
model=${MODEL:-$work/run}
if [ ! -d "$model" ]; then
	awk 'BEGIN {
		srand(3)
		for (document = 0; document < 60; document++) {
			for (sentence = 0; sentence < 6; sentence++)
				printf "the important cat sees %d dogs and likes %d of them.\n", rand() * 100, rand() * 10
			print ""
		}
	}' >"$work/text"
	"$bertc" pretrain --quiet --corpus "$work/text" --model tiny --vocab_size 200 --out "$model" --num_train_steps 2 \
		--train_batch_size 4 --max_seq_length 64 || exit 1
fi
python3 - "$bertc" "$model" "${SECONDS_LONG:-600}" <<'PYTHON'
import http.client, json, os, random, re, signal, socket, subprocess, sys, threading, time

bertc, model, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
service = subprocess.Popen([bertc, "serve", "--model", model, "--listen", "127.0.0.1:0", "--request_timeout", "5", "--max_connections",
                            "200", "--max_body_bytes", "100000"], stderr=subprocess.PIPE, text=True)
port = None
for line in service.stderr:
    found = re.search(r"127\.0\.0\.1:(\d+)", line)
    if "serving at" in line and found:
        port = int(found.group(1))
        break
if port is None:
    sys.exit("the service did not start")
threading.Thread(target=lambda: [None for _ in service.stderr], daemon=True).start()
words = "the cat sees dogs and likes 12 of them important . , 7 3 99".split()
random.seed(1)
texts = [" ".join(random.choices(words, k=random.randint(1, 40))) for _ in range(200)]
end = time.monotonic()
counts, wrong, lock = {}, [], threading.Lock()


def count(what, n=1):
    with lock:
        counts[what] = counts.get(what, 0) + n


def ask(connection, batch):
    connection.request("POST", "/embed", json.dumps({"inputs": batch}), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    return answer.status, answer.read()


def connect():
    return http.client.HTTPConnection("127.0.0.1", port, timeout=60)


expected = {}
for text in texts:
    status, body = ask(connect(), [text])
    assert status == 200, (status, body)
    expected[text] = json.loads(body)[0]


def right(generator):
    """A client as one wishes them: waits when it is asked to, and compares every number."""
    connection = connect()
    while time.monotonic() < end:
        batch = generator.choices(texts, k=generator.randint(1, 4))
        try:
            status, body = ask(connection, batch)
        except (OSError, http.client.HTTPException):
            count("right requests whose connection had to wait too long")
            connection = connect()
            continue
        if status == 429:
            count("told to come back (429)")
            time.sleep(0.2)
        elif status == 200 and json.loads(body) == [expected[text] for text in batch]:
            count("right answers")
        else:
            wrong.append((status, body[:200]))


def raw():
    return socket.create_connection(("127.0.0.1", port), timeout=10)


def request(body, extra=""):
    return f"POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n{extra}\r\n".encode() + body


def hangs_up(generator):
    with raw() as s:
        message = request(json.dumps({"inputs": generator.choices(texts, k=8)}).encode())
        s.sendall(message[:generator.randint(1, len(message))])


def sends_garbage(generator):
    with raw() as s:
        s.sendall(bytes(generator.randrange(256) for _ in range(generator.randint(1, 3000))))
        s.settimeout(1)
        s.recv(1000)


def sends_slowly(generator):
    with raw() as s:
        for byte in request(b'{"inputs": "cat"}'):
            s.sendall(bytes([byte]))
            time.sleep(generator.choice([0, 0.05, 0.3]))
        s.recv(1000)


def reads_slowly(generator):
    with raw() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        s.sendall(request(json.dumps({"inputs": generator.choices(texts, k=64)}).encode()))
        while s.recv(200):
            time.sleep(0.05)


def sends_wrong_json(generator):
    body = json.dumps({"inputs": generator.choices(texts, k=3)}).encode()
    at = generator.randrange(len(body))
    with raw() as s:
        s.sendall(request(body[:at] + bytes([generator.randrange(256)]) + body[at + generator.randint(0, 3):]))
        s.settimeout(2)
        s.recv(1000)


def asks_for_too_much(generator):
    with raw() as s:
        s.sendall(generator.choice([
            b"POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n",
            b"POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
            b"POST /embed HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFF\r\n",
            b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\n\r\n",
            b"POST /embed HTTP/1.1\r\n" + b"X: y\r\n" * 5000,
            request(b"[" * 90000),
            request(json.dumps({"inputs": ["cat"] * 5000}).encode()),
        ]))
        s.settimeout(2)
        s.recv(1000)


def says_nothing(generator):
    with raw() as s:
        time.sleep(generator.uniform(0, 8))


def rude(behavior, generator):
    while time.monotonic() < end:
        try:
            behavior(generator)
        except OSError:
            pass  # the service hangs up on clients like these
        count(behavior.__name__.replace("_", " "))
        time.sleep(0.01)


def resident():
    return int(re.search(r"VmRSS:\s+(\d+)", open(f"/proc/{service.pid}/status").read()).group(1)) / 1000


end = time.monotonic() + seconds
threads = [threading.Thread(target=right, args=(random.Random(i),)) for i in range(8)]
behaviors = [hangs_up, sends_garbage, sends_slowly, reads_slowly, sends_wrong_json, asks_for_too_much, says_nothing]
threads += [threading.Thread(target=rude, args=(behavior, random.Random(100 * i + k))) for i, behavior in enumerate(behaviors)
            for k in range(3)]
for thread in threads:
    thread.start()
memory = []
while time.monotonic() < end and service.poll() is None:
    time.sleep(min(5, seconds / 10))
    memory.append(resident())
for thread in threads:
    thread.join()
print("; ".join(f"{what}: {n:,}" for what, n in counts.items()))
if service.poll() is not None:
    sys.exit(f"the service ended with status {service.returncode}")
early, late = memory[min(len(memory) - 1, len(memory) // 5)], memory[-1]
print(f"resident: {early:.1f} MB after a fifth of the time, {late:.1f} MB at the end; descriptors: {len(os.listdir(f'/proc/{service.pid}/fd'))}")
status, body = ask(connect(), texts[:1])
if status != 200 or json.loads(body) != [expected[texts[0]]]:
    wrong.append((status, body[:200]))
service.send_signal(signal.SIGTERM)
code = service.wait(30)
if wrong or code != 0 or late > 1.1 * early + 5 or counts.get("right answers", 0) == 0:
    sys.exit(f"{len(wrong)} wrong answers {wrong[:3]}, status {code}, memory from {early:.1f} to {late:.1f} MB")
PYTHON
