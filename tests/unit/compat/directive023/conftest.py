"""The service of the server's tests, for the endpoints on top of it."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from server.conftest import serving

__all__ = ["serving"]
