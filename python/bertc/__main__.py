"""The command `bertc`: becomes the program that lies in this package."""

from __future__ import annotations

import os
import sys
from typing import NoReturn


def main() -> NoReturn:
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "bertc")
    try:
        os.execv(program, ["bertc", *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"bertc: cannot run '{program}': {error.strerror}")


if __name__ == "__main__":
    main()
