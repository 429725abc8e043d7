"""`python -m surefoot` is the `surefoot` command."""

import sys

from surefoot.cli.main import main

sys.exit(main())
