"""A run's evaluations as [[env steps, mean return], …]. Prints JSON."""

from __future__ import annotations

import json
import sys

from surefoot.telemetry.reader import read_records
from surefoot.telemetry.schema import EvaluationRecord

print(json.dumps([[r.env_steps, r.return_mean] for r in read_records(sys.argv[1]) if isinstance(r, EvaluationRecord)]))
