"""`python -m surefoot` is the `surefoot` command; `main(["train", "CartPole-v1"])` runs it inside a program."""

import sys

from surefoot.cli.main import main as main

if __name__ == "__main__":
    sys.exit(main())
