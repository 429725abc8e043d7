"""The design that the service is measured against: FastAPI, pydantic, a torch network in the same process, no log."""

from __future__ import annotations

import itertools
import sys

import torch
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel
from torch import nn

torch.set_num_threads(1)
SIZE, ACTIONS = int(sys.argv[2]), 5


def tower(out: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    sizes = (SIZE, 256, 256, 128)
    for a, b in itertools.pairwise(sizes):
        layers += [nn.Linear(a, b), nn.BatchNorm1d(b), nn.ReLU(), nn.Dropout(0.1)]
    return nn.Sequential(*layers, nn.Linear(128, out)).eval()


policy, value = tower(ACTIONS), tower(1)
app = FastAPI()


class Select(BaseModel):
    embedding: list[float]
    deterministic: bool = False


@app.post("/select_action")
def select(asked: Select) -> dict[str, float | int | str]:
    with torch.no_grad():
        row = torch.tensor(asked.embedding).unsqueeze(0)
        chances = torch.distributions.Categorical(torch.softmax(policy(row), -1))
        action = chances.sample()
        return {
            "action": int(action),
            "mutation_type": "expansion",
            "log_prob": float(chances.log_prob(action)),
            "value": float(value(row)),
        }


uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="error", access_log=False)
