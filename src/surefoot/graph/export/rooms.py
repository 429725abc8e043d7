"""The text of a program that stands alone with two levels: a maze of rooms, sub-goals in it, who sets them, who walks."""

from __future__ import annotations

MAZE = '''# [node {id}]: the maze, row by row; a cell has the number of its room, a door that of the room behind it
MAZE = """
{drawing}
""".split()
ROWS, COLUMNS = {rows}, {columns}
LANDMARKS = np.stack([ROWS, COLUMNS], axis=1)  # the middle of each room, and the way out
SCALE, LIMIT = float(np.ptp(LANDMARKS, axis=0).max()), {limit}  # of distances; steps of an episode
'''

MANAGER = '''class Manager:
    """Sets sub-goals and keeps what came of each: a step of its own lasts as long as the sub-goal does."""

    def __init__(self, config: Config, policy: Policy) -> None:
        self.config, self.policy = config, policy
        self.generator = torch.Generator().manual_seed(seed_for("act-manager", config.seed))

    def decide(self, obs: np.ndarray, allowed: np.ndarray) -> dict[str, np.ndarray]:
        """What is seen, chosen and thought of it, [n, …]."""
        said = self.policy.act(torch.from_numpy(obs), torch.from_numpy(allowed), self.generator)
        made = {{name: x.numpy() for name, x in zip(("action", "log_prob", "value"), said)}}
        return made | {{"obs": obs, "allowed": allowed}}

    def first(self, obs: np.ndarray, allowed: np.ndarray) -> np.ndarray:
        """A choice for every walker, and an empty tape."""
        count, self.open = len(obs), self.decide(obs, allowed)
        parts = self.open | {{name: np.zeros(count, np.float32) for name in ("reward", "next_value")}}
        parts |= {{name: np.zeros(count, bool) for name in ("terminated", "ended")}}
        self.tape = {{name: np.zeros((self.config.{horizon_length}, *x.shape), x.dtype) for name, x in parts.items()}}
        self.gain, self.spent, self.rows = np.zeros(count), np.zeros(count, int), np.zeros(count, int)
        return self.open["action"]

    def step(self, obs, after, out: np.ndarray, late: np.ndarray, over: np.ndarray, allowed: np.ndarray) -> np.ndarray:
        """Count a step of all walkers, paid 1 for getting out; a choice for those whose sub-goal is over."""
        self.gain += self.config.{gamma}**self.spent * out
        self.spent += 1
        who = np.flatnonzero(over)
        if not len(who):
            return who
        made, cut = self.decide(obs[who], allowed[who]), late[who]
        ahead = made["value"].copy()
        if cut.any():
            ahead[cut] = self.policy.value(torch.from_numpy(after[who[cut]])).numpy()
        self.close(who, ahead, out[who], cut)
        for name, x in made.items():
            self.open[name][who] = x
        self.gain[who], self.spent[who] = 0.0, 0
        return made["action"]

    def close(self, who: np.ndarray, ahead: np.ndarray, out: np.ndarray, late: np.ndarray) -> None:
        """Write down what is open for some walkers; `ahead` says what their next step is worth."""
        # It is discounted by gamma ** steps_per_goal when it is learned from, so after fewer steps it counts for more.
        ahead = ahead * self.config.{gamma} ** (self.spent[who] - self.config.{steps_per_goal})
        closed = {{"reward": self.gain[who], "next_value": ahead, "terminated": out, "ended": out | late}}
        for name, x in (closed | {{name: x[who] for name, x in self.open.items()}}).items():
            self.tape[name][self.rows[who], who] = x
        self.rows[who] += 1

    def rollout(self, obs: np.ndarray) -> dict[str, Tensor]:
        """All that was decided since `first`, [T, N]; what is open is closed where it is."""
        who, ahead = np.flatnonzero(self.spent > 0), self.policy.value(torch.from_numpy(obs)).numpy()
        self.close(who, ahead[who], *np.zeros((2, len(who)), bool))
        kept = {{name: torch.from_numpy(x[: self.rows.max()]) for name, x in self.tape.items()}}
        return kept | {{"valid": torch.arange(len(kept["value"]))[:, None] < torch.from_numpy(self.rows)}}
'''

WORLD = '''class World:
    """N walkers, each on its way to a landmark: the worker sees the way that is left, and getting there pays."""

    def __init__(self, config: Config, manager: Manager) -> None:
        self.config, self.manager, self.count, cells = config, manager, config.{num_envs}, np.array([*map(list, MAZE)])
        (height, width), here, walls = cells.shape, np.arange(cells.size), cells.ravel() == "#"
        there = (here[:, None] + [-width, 1, width, -1]).clip(0, len(here) - 1)  # up, right, down, left
        self.after = np.where(walls[there], here[:, None], there)
        room, (row, column) = np.where(walls, "0", cells.ravel()).astype(int), np.divmod(here, width)
        self.first, self.exit = int(walls.argmin()), int(room.argmax())
        self.place = np.stack([row, column], axis=1).astype(float)
        self.look = np.hstack([np.eye(height, dtype=np.float32)[row], np.eye(width, dtype=np.float32)[column]])
        may = np.abs(room[:, None] - np.arange(len(LANDMARKS))) <= 1  # landmarks of this room and of those next to it
        may &= np.abs(self.place[:, None] - LANDMARKS).max(axis=2) > config.{near}
        self.allowed = may | ~may.any(axis=1, keepdims=True)
        self.cell, self.age, self.recent = np.full(self.count, self.first), np.zeros(self.count, int), deque(maxlen=100)

    def begin(self) -> np.ndarray:
        """Set all sub-goals anew, where the walkers are; what they see then."""
        self.target = LANDMARKS[self.manager.first(self.look[self.cell], self.allowed[self.cell])]
        self.spent = np.zeros(self.count, int)
        return self.seen(self.cell)

    def seen(self, cell: np.ndarray) -> np.ndarray:
        return np.hstack([((self.target - self.place[cell]) / SCALE).astype(np.float32), self.look[cell]])

    def step(self, action: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """(what to act on next, reward, terminated, truncated, where the step really led); an episode is a sub-goal."""
        cell, far = self.after[self.cell, action], np.abs(self.place[self.cell] - self.target).sum(axis=1) / SCALE
        out, left = cell == self.exit, np.abs(self.place[cell] - self.target)
        self.age, self.spent = self.age + 1, self.spent + 1
        late, reached = (self.age >= LIMIT) & ~out, left.max(axis=1) <= self.config.{near}
        reward = reached + self.config.{env_share} * out + self.config.{progress} * (far - left.sum(axis=1) / SCALE)
        terminated, ended = out | reached, out | late
        truncated = (late | (self.spent >= self.config.{steps_per_goal})) & ~terminated
        self.recent += [(float(out[i]), int(self.age[i])) for i in np.flatnonzero(ended)]
        over, after = terminated | truncated, self.seen(cell)
        self.cell, self.age = np.where(ended, self.first, cell), np.where(ended, 0, self.age)
        choice = self.manager.step(self.look[self.cell], self.look[cell], out, late, over, self.allowed[self.cell])
        self.target[over], self.spent[over] = LANDMARKS[choice], 0
        return self.seen(self.cell), reward, terminated, truncated, after
'''

POLICY = '''class Policy(nn.Module):
    """Actor and critic; one of several choices, some of which may be forbidden."""

    def __init__(self, seed: int, inputs: int, outputs: int, net: tuple[tuple[int, ...], str, bool, bool]) -> None:
        super().__init__()
        hidden, activation, self.shared, ortho = net
        torch.manual_seed(seed_for("weights", seed))
        features = hidden[-1] if hidden else inputs
        self.actor = mlp(inputs, hidden, activation, ortho)
        self.critic = nn.Sequential() if self.shared else mlp(inputs, hidden, activation, ortho)
        self.value_out, self.policy_out = (layer(features, n, gain, ortho) for n, gain in ((1, 1.0), (outputs, 0.01)))

    def forward(self, obs: Tensor, allowed: Tensor | None) -> tuple[Tensor, Tensor]:
        """The logarithm of each choice's probability, and the value."""
        features = self.actor(obs)
        raw, judged = self.policy_out(features), features if self.shared else self.critic(obs)
        if allowed is not None:
            raw = raw.masked_fill(~allowed, torch.finfo(raw.dtype).min / 2)
        return F.log_softmax(raw, dim=-1, dtype=torch.float32), self.value_out(judged).squeeze(-1)

    def value(self, obs: Tensor) -> Tensor:
        return self.value_out((self.actor if self.shared else self.critic)(obs)).squeeze(-1)

    def act(self, obs: Tensor, allowed: Tensor | None, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
        """(action, log-prob, value): the race of exponentials, argmin E/p, is distributed as p."""
        log_probs, value = self(obs, allowed)
        race = torch.empty_like(log_probs).exponential_(generator=generator)
        action = (log_probs - race.log_()).argmax(dim=-1)
        return action, log_probs.gather(-1, action.unsqueeze(-1)).squeeze(-1), value

    def evaluate(self, obs: Tensor, action: Tensor, allowed: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """(log-prob, entropy, value) of stored steps, with gradients."""
        log_probs, value = self(obs, allowed)
        return log_probs.gather(-1, action.unsqueeze(-1)).squeeze(-1), -(log_probs.exp() * log_probs).sum(dim=-1), value
'''

KNOBS = '''def knobs(config: Config, progress: float) -> tuple[SimpleNamespace, SimpleNamespace]:
    """What manager and worker learn with, as far as the run has come."""
    # [node {high_id}]: what it does not say is the library's default
    high = SimpleNamespace(
        {high}
    )
    # [node {low_id}]
    low = SimpleNamespace(
        {low}
    )
    return high, low
'''

ROWS = """    keep = rollout["valid"].flatten() if "valid" in rollout else slice(None)
    names = [name for name in ("obs", "action", "log_prob", "value", "allowed") if name in rollout]
    rows = {name: rollout[name].flatten(0, 1)[keep] for name in names}
    rows |= {"advantage": advantage.flatten()[keep], "target": (advantage + rollout["value"]).flatten()[keep]}
"""

EVALUATE = """            log_prob, entropy, value = policy.evaluate(part["obs"], part["action"], part.get("allowed"))
"""

BATCH = """    if knobs.normalize == "batch":
        rows["advantage"] = standardize(rows["advantage"])
"""

SAVE = '''def state(learners: dict[str, tuple]) -> dict[str, Tensor]:
    """All that is learned, by name."""
    learned: dict[str, Tensor] = {}
    for who, (policy, optimizer, _) in learners.items():
        learned |= {f"{who}.{name}": x for name, x in policy.state_dict().items()}
        for name, slots in (("mean", optimizer.means), ("square", optimizer.squares), ("step", optimizer.steps)):
            learned |= {f"adam.{who}.{i}.{name}": x for i, x in enumerate(slots)}
    return learned


def save(folder: Path, config: Config, learned: dict[str, Tensor], told: dict) -> None:
    """weights.npz and state.json, each replaced whole; no pickle in either."""
    np.savez(folder / "weights.part.npz", **{name: x.detach().numpy() for name, x in learned.items()})
    (folder / "weights.part.npz").replace(folder / "weights.npz")
    (folder / "state.part.json").write_text(json.dumps({"config": asdict(config), **told}, indent=1))
    (folder / "state.part.json").replace(folder / "state.json")
'''

TRAIN = '''@torch.no_grad()
def train(config: Config, out: Path | None = None, resume: Path | None = None) -> nn.ModuleDict:
    """The whole run; the record goes to out/telemetry.ndjson, one line an update."""
    torch.set_num_threads(1)
    seeds, cells = {{"high": seed_for("manager", config.seed), "low": config.seed}}, len(MAZE) + len(MAZE[0])
    net = {high_net}
    high = Policy(seeds["high"], cells, len(LANDMARKS), net)
    net = {low_net}
    low = Policy(seeds["low"], LANDMARKS.shape[1] + cells, config.{output_size}, net)
    learners = {{}}  # the network, its optimiser, and who shuffles its minibatches
    for who, policy in (("high", high), ("low", low)):
        shuffling = torch.Generator().manual_seed(seed_for("shuffle", seeds[who]))
        learners[who] = policy, Adam(list(policy.parameters())), shuffling
    if resume is not None:
        with np.load(resume / "weights.npz", allow_pickle=False) as arrays:  # the walkers begin anew
            for name, x in state(learners).items():
                x.copy_(torch.from_numpy(arrays[name]))
    acting, world = torch.Generator().manual_seed(seed_for("act", config.seed)), World(config, Manager(config, high))
    obs, steps, updates, begin = world.begin(), 0, 0, time.perf_counter()
    while steps < config.total_steps:
        above, below = knobs(config, min(1.0, steps / config.total_steps))
        rollout, obs = collect(config, world, low, acting, obs)
        told = update(below, *learners["low"], rollout)
        steps, updates = steps + config.{horizon_length} * world.count, updates + 1
        last = steps >= config.total_steps
        if not last:  # the manager learns before the next rollout, for which all sub-goals are set anew
            managed = update(above, *learners["high"], world.manager.rollout(world.look[world.cell]))
            told |= {{f"high_{{name}}": x for name, x in managed.items()}}
            obs = world.begin()
        told = {{"update": updates, "env_steps": steps, "seconds": time.perf_counter() - begin}} | told
        if world.recent:
            told |= dict(zip(("return", "length"), np.mean(world.recent, axis=0).tolist()))
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
            with open(out / "telemetry.ndjson", "a") as file:
                file.write(json.dumps(told) + "\\n")
            if last or updates % {save_every} == 0:
                save(out, config, state(learners), told)
        if last or updates % {print_every} == 0:
            shown = (f"{{n}} {{told[n]:.6g}}" for n in ("update", "env_steps", "return", "approx_kl", "loss") if n in told)
            print(*shown, sep="  ", flush=True)
    return nn.ModuleDict({{"high": high, "low": low}})
'''
