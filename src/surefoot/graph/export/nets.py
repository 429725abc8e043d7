"""The network of a program that stands alone: layers, pictures, memory, and the distributions of actions."""

from __future__ import annotations

NORMALIZER = '''class Normalizer(nn.Module):
    """Running mean and deviation of observations; they move after an update, never during one."""

    def __init__(self, size: int, clip: float = 10.0) -> None:
        super().__init__()
        self.clip = clip
        for name, first in (("mean", torch.zeros(size)), ("var", torch.ones(size)), ("count", torch.zeros(()))):
            self.register_buffer(name, first.double())
        self.register_buffer("shift", torch.zeros(size))
        self.register_buffer("scale", torch.ones(size))

    def forward(self, x: Tensor) -> Tensor:
        return ((x - self.shift) * self.scale).clamp(-self.clip, self.clip)

    def update(self, rows: np.ndarray) -> None:
        mean, var, count = torch.from_numpy(rows.mean(axis=0)), torch.from_numpy(rows.var(axis=0)), float(len(rows))
        total, delta = self.count + count, mean - self.mean
        squares = self.var * self.count + var * count + delta.square() * (self.count * count / total)
        self.mean += delta * (count / total)
        self.var.copy_(squares / total)
        self.count.copy_(total)
        self.shift.copy_(self.mean)
        self.scale.copy_(self.var.clamp(min=1e-8).rsqrt())
'''

LAYER = """def layer(inputs: int, outputs: int, gain: float, ortho_init: bool) -> nn.Linear:
    linear = nn.Linear(inputs, outputs)
    if ortho_init:
        nn.init.orthogonal_(linear.weight, gain)
        nn.init.zeros_(linear.bias)
    return linear


def mlp(inputs: int, hidden: tuple[int, ...], activation: str, ortho_init: bool) -> nn.Sequential:
    kinds = {"tanh": nn.Tanh, "relu": nn.ReLU, "elu": nn.ELU, "silu": nn.SiLU, "leaky_relu": nn.LeakyReLU}
    modules: list[nn.Module] = []
    for width in hidden:
        modules += [layer(inputs, width, math.sqrt(2.0), ortho_init), kinds[activation]()]
        inputs = width
    return nn.Sequential(*modules)
"""

IMAGES = '''LAYERS = {plan}  # channels, side, stride and edge of each
FEATURES = {features}


class Images(nn.Sequential):
    """Convolutions over pictures{bytes}."""

    def __init__(self, shape: tuple[int, ...], ortho_init: bool) -> None:
        {unpack}
        modules: list[nn.Module] = []
        for outputs, side, stride, edge in LAYERS:
            convolution = nn.Conv2d(channels, outputs, side, stride, edge)
            if ortho_init:
                nn.init.orthogonal_(convolution.weight, math.sqrt(2.0))
                nn.init.zeros_(convolution.bias)
            modules += [convolution, nn.ReLU()]
            channels = outputs
            height, width = ((n + 2 * edge - side) // stride + 1 for n in (height, width))
        modules += [nn.Flatten(), layer(channels * height * width, FEATURES, math.sqrt(2.0), ortho_init), nn.ReLU()]
        super().__init__(*modules)
        self.to(memory_format=torch.channels_last)  # a third faster on a CPU

    def forward(self, x: Tensor) -> Tensor:
        x = {turned}.contiguous(memory_format=torch.channels_last)
        first, *rest = self
        x = F.conv2d(x.float(), {weight}, first.bias, first.stride, first.padding)
        for module in rest:
            x = module(x)
        return x
'''

MEMORY = '''class Memory(nn.Module):
    """One recurrent layer; what a stream remembers is passed in and out, never kept."""

    def __init__(self, inputs: int, size: int, ortho_init: bool) -> None:
        super().__init__()
        self.inward, self.onward = (layer(n, {gates} * size, 1.0, ortho_init) for n in (inputs, size))

    def forward(self, x: Tensor, carry: Tensor, start: Tensor | None) -> tuple[Tensor, Tensor]:
        """[T, B, inputs] → [T, B, size], and what is carried on; where `start` is True an episode begins, with nothing."""
        fresh = None if start is None or not bool(start.any()) else start
        return {unroll}(self.inward(x), carry, fresh, self.onward.weight, self.onward.bias)
'''

POLICY = '''class Policy(nn.Module):
    """{about}"""

    def __init__(self, config: Config) -> None:
        super().__init__()
        torch.manual_seed(seed_for("weights", config.seed))
        inputs, hidden, ortho = config.{input_size}, config.{hidden_sizes}, config.{ortho_init}
        self.shared = config.{shared}
{first}        self.actor = mlp(inputs, hidden, config.{activation}, ortho)
        self.critic = nn.Sequential() if self.shared else mlp(inputs, hidden, config.{activation}, ortho)
        self.value_out = layer(hidden[-1] if hidden else inputs, 1, 1.0, ortho)
        self.policy_out = layer(hidden[-1] if hidden else inputs, config.{output_size}, 0.01, ortho)
{extra}'''

SEES = """        self.torso = Images(inputs, ortho)
        inputs = FEATURES
"""

REMEMBERS = """        self.size = config.{memory_size}
        self.memories = nn.ModuleList(Memory(inputs, self.size, ortho) for _ in range(1 if self.shared else 2))
        inputs = self.size
"""

FORWARD = '''
    def forward(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        """What the distribution needs, and the value."""
{before}        features = self.actor(obs)
        judged = features if self.shared else self.critic(obs)
        return self.policy_out(features), self.value_out(judged).squeeze(-1)

    def value(self, obs: Tensor) -> Tensor:
{before}        return self.value_out((self.actor if self.shared else self.critic)(obs)).squeeze(-1)
'''

FORWARD_WITH_MEMORY = '''
    def nothing(self, streams: int) -> list[Tensor]:
        """What streams carry before their first step: one memory, or two where the critic has its own."""
        return [torch.zeros(streams, {width}self.size) for _ in self.memories]

    def forward(self, obs: Tensor, carry: list[Tensor], start: Tensor) -> tuple[Tensor, Tensor, list[Tensor]]:
        """What the distribution needs, the value, and what is carried on; rows are [T · B, …], `start` is [T, B]."""
{before}        seen = obs.unflatten(0, start.shape)
        walked = [memory(seen, carried, start) for memory, carried in zip(self.memories, carry)]
        features = self.actor(walked[0][0].flatten(0, 1))
        judged = features if self.shared else self.critic(walked[1][0].flatten(0, 1))
        return self.policy_out(features), self.value_out(judged).squeeze(-1), [carried for _, carried in walked]

    def value(self, obs: Tensor, carry: list[Tensor]) -> Tensor:
{before}        hidden, _ = self.memories[-1](obs.unsqueeze(0), carry[-1], None)
        return self.value_out((self.actor if self.shared else self.critic)(hidden.flatten(0, 1))).squeeze(-1)
'''

DISCRETE = '''
    def act(self, obs: Tensor, {given}generator: torch.Generator) -> {gives}:
        """(action, log-prob, value{told}): the race of exponentials, argmin E/p, is distributed as p."""
        raw, value{carry} = self(obs{handed})
        log_probs = F.log_softmax(raw, dim=-1, dtype=torch.float32)
        race = torch.empty_like(log_probs).exponential_(generator=generator)
        action = (log_probs - race.log_()).argmax(dim=-1)
        return action, log_probs.gather(-1, action.unsqueeze(-1)).squeeze(-1), value{carry}

    def evaluate(self, obs: Tensor, action: Tensor{also}) -> tuple[Tensor, Tensor, Tensor]:
        """(log-prob, entropy, value) of stored steps, with gradients."""
        raw, value{rest} = self(obs{handed})
        log_probs = F.log_softmax(raw, dim=-1, dtype=torch.float32)
        return log_probs.gather(-1, action.unsqueeze(-1)).squeeze(-1), -(log_probs.exp() * log_probs).sum(dim=-1), value
'''

GAUSSIAN = '''
    def act(self, obs: Tensor, {given}generator: torch.Generator) -> {gives}:
        """(action, log-prob, value{told}); the action is stored as drawn and clipped only for the world."""
        mean, value{carry} = self(obs{handed})
        log_std = self.log_std[0].clamp(-20.0, 2.0)
        std = log_std.exp()
        noise = torch.empty_like(mean).normal_(generator=generator)
        action = torch.addcmul(mean, std.expand_as(mean), noise)
        return action, self.log_prob(mean, log_std, std, action), value{carry}

    def evaluate(self, obs: Tensor, action: Tensor{also}) -> tuple[Tensor, Tensor, Tensor]:
        """(log-prob, entropy, value) of stored steps, with gradients."""
        mean, value{rest} = self(obs{handed})
        log_std = self.log_std[0].clamp(-20.0, 2.0)
        log_prob = self.log_prob(mean, log_std, log_std.exp(), action)
        entropy = (log_std + (0.5 + 0.5 * math.log(2.0 * math.pi))).sum(dim=-1).expand(mean.shape[:-1])
        return log_prob, entropy, value

    def log_prob(self, mean: Tensor, log_std: Tensor, std: Tensor, action: Tensor) -> Tensor:
        z = (action - mean) / std
        return -(0.5 * z.square() + log_std + 0.5 * math.log(2.0 * math.pi)).sum(dim=-1)
'''

PLAIN: dict[str, str] = {
    "gives": "tuple[Tensor, Tensor, Tensor]",
    **dict.fromkeys(("given", "told", "carry", "handed", "also", "rest"), ""),
}
CARRYING = {
    "given": "carry: list[Tensor], start: Tensor, ",
    "gives": "tuple",
    "told": ", what is carried on",
    "carry": ", carry",
    "handed": ", carry, start",
    "also": ", carry: list[Tensor], start: Tensor",
    "rest": ", _",
}
"""What a policy that remembers is given and gives besides."""
