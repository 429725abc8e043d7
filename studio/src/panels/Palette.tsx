import { useMemo, useState } from "react";
import { addNode, addSaved } from "../canvas/Canvas";
import { CATEGORY } from "../ports";
import { ask, useStudio } from "../store";
import type { Kind } from "../types";

export function matchingKinds(kinds: Record<string, Kind>, words: string): Kind[] {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  const score = (kind: Kind) => (kind.name.toLowerCase().startsWith(wanted[0] ?? "") ? 0 : kind.name.toLowerCase().includes(wanted[0] ?? "") ? 1 : 2);
  return Object.values(kinds)
    .filter((kind) => wanted.every((word) => `${kind.name} ${kind.category} ${kind.summary}`.toLowerCase().includes(word)))
    .sort((a, b) => score(a) - score(b) || a.name.localeCompare(b.name));
}

/** Return a name that may wrap between its words. */
function humps(name: string): React.ReactNode[] {
  return name.split(/(?<=[a-z])(?=[A-Z])/).flatMap((word, n) => (n ? [<wbr key={n} />, word] : [word]));
}

export function Palette() {
  const kinds = useStudio((s) => s.kinds);
  const saved = useStudio((s) => s.savedNodes);
  const [words, setWords] = useState("");
  const mine = saved.filter((node) => node.name.toLowerCase().includes(words.toLowerCase()));
  const groups = useMemo(() => {
    const order = ["RL/PPO", "World", "Flow", "Look", "Values", "RL/Hierarchy", "Town", "Tools", "Language"];
    const by = new Map<string, Kind[]>();
    for (const kind of matchingKinds(kinds, words)) by.set(kind.category, [...(by.get(kind.category) ?? []), kind]);
    return [...by].sort((a, b) => (order.indexOf(a[0]) + 99) % 99 - ((order.indexOf(b[0]) + 99) % 99));
  }, [kinds, words]);
  return (
    <nav className="palette" aria-label="nodes">
      <input type="search" placeholder="search nodes" aria-label="search nodes" value={words} onChange={(e) => setWords(e.target.value)} onKeyDown={(e) => {
        const first = matchingKinds(kinds, words)[0];
        if (e.key === "Enter" && first) void addNode(first.name);
      }} />
      <div className="palette-list" tabIndex={0} role="region" aria-label="all nodes">
        {mine.length > 0 && (
          <section>
            <h2>Saved</h2>
            {mine.map((node) => (
              <div key={node.name} className="saved-node">
                <button type="button" className="kind" style={{ "--accent": "var(--c-any)" } as React.CSSProperties} title={`in: ${node.inputs.join(", ")}\nout: ${node.outputs.join(", ")}`} draggable onDragStart={(e) => e.dataTransfer.setData("text/surefoot-saved", node.name)} onClick={() => void addSaved(node.name)}>
                  <b>{node.name}</b>
                  <small>{node.inputs.length} in, {node.outputs.length} out</small>
                </button>
                <button type="button" className="cross" aria-label={`forget ${node.name}`} title="graphs that use it keep their copy" onClick={() => void ask("forget_node", { name: node.name })}>✕</button>
              </div>
            ))}
          </section>
        )}
        {groups.map(([category, list]) => (
          <section key={category}>
            <h2>{category}</h2>
            {list.map((kind) => (
              <button type="button" key={kind.name} className="kind" style={{ "--accent": CATEGORY[category] ?? "var(--c-any)" } as React.CSSProperties} title={`${kind.summary}${kind.calls ? `\nCalls ${kind.calls}.` : ""}`} draggable onDragStart={(e) => e.dataTransfer.setData("text/surefoot-node", kind.name)} onClick={() => void addNode(kind.name)}>
                <b>{humps(kind.name.replace(/Node$/, ""))}</b>
                <small>{kind.summary}</small>
              </button>
            ))}
          </section>
        ))}
        {groups.length === 0 && <p className="quiet">No node matches the search.</p>}
      </div>
    </nav>
  );
}
