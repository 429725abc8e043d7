"""`python benchmarks/campaign` starts it."""

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])

from campaign.runner import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main())
