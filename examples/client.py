#!/usr/bin/env python3
"""Asks a served tagger for the entities of texts, with nothing but Python's standard library.

    python3 client.py http://127.0.0.1:8080 TEXT..."""

import json
import sys
import time
import urllib.request


def post(url: str, message: dict) -> object:
    request = urllib.request.Request(url, json.dumps(message).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def main() -> None:
    server, texts = sys.argv[1], sys.argv[2:]
    for _ in range(100):  # until the model is loaded
        try:
            urllib.request.urlopen(server + "/health")
            break
        except OSError:
            time.sleep(0.1)
    for text in texts:
        for entity in post(server + "/predict", {"inputs": text})["entities"]:
            print(f"{entity['label']:6} {entity['score']:.2f}  {entity['text']}")


main()
