import { useEffect, useRef } from "react";
import { openInside, removeSelected, reroute, setMode, tidy } from "../canvas/Canvas";
import { addComment } from "../canvas/marks";
import { copy, paste } from "../canvas/clipboard";
import { ask, FRAME, get, graphOf, type Menu as Place, op, set, useStudio } from "../store";
import { endsOf } from "../words";

type Item = [words: string, act: () => void, keys?: string];

export async function comment(at?: { x: number; y: number }): Promise<void> {
  const id = await addComment(at);
  if (id) set({ selected: [id], edge: "" });
}

function itemsOf({ node, edge, at }: Place): Item[] {
  const s = get();
  if (node.startsWith(FRAME)) return [["Remove", removeSelected, "Delete"]];
  const graph = graphOf(s);
  if (node) {
    const chosen = s.selected;
    const wires = graph?.edges.filter((e) => chosen.includes(endsOf(e.to)[0]) || chosen.includes(endsOf(e.from)[0])) ?? [];
    return [
      ["Connect…", () => set({ dialog: "connect", dialogNode: node }), "C"],
      ["Duplicate", () => {
        copy(chosen);
        void paste();
      }, "Ctrl+D"],
      ["Copy", () => copy(chosen), "Ctrl+C"],
      ["Group…", () => set({ dialog: "group" }), "G"],
      ...(graph?.nodes[node]?.type === "SubGraph" ? ([["Open", () => openInside(node)], ["Ungroup", () => void ask("ungroup", { doc: s.doc?.doc, id: node, inside: s.inside })]] as Item[]) : []),
      ["Mute", () => setMode("mute"), "M"],
      ["Bypass", () => setMode("bypass"), "B"],
      ["Comment", () => void comment(), "K"],
      ...(chosen.length > 1 ? ([["Align left", () => align(0)], ["Align top", () => align(1)], ["Spread evenly", spread]] as Item[]) : []),
      ...(wires.length ? ([["Disconnect all", () => void op({ op: "batch", ops: wires.map((e) => ({ op: "disconnect", to: e.to })) })]] as Item[]) : []),
      ["Remove", removeSelected, "Delete"],
    ];
  }
  if (edge) return [["Add a reroute", () => void reroute(edge, at)], ["Disconnect", removeSelected, "Delete"]];
  return [
    ["Add a node…", () => set({ dialog: "add" }), "A"],
    ["Paste", () => void paste(), "Ctrl+V"],
    ["Comment", () => void comment(at), "K"],
    ["Select all", () => set({ selected: Object.keys(graph?.nodes ?? {}), edge: "" }), "Ctrl+A"],
    ["Tidy", tidy, "L"],
    ["Fit to the screen", () => window.dispatchEvent(new Event("studio:fit")), "F"],
  ];
}

/** Put the selected nodes into one column (axis 0) or row (axis 1). */
export function align(axis: 0 | 1): void {
  const s = get();
  const layout = graphOf(s)?.layout ?? {};
  const places = s.selected.flatMap((id) => (layout[id] ? [[id, layout[id]] as const] : []));
  const to = Math.min(...places.map(([, at]) => at[axis]));
  if (places.length) void op({ op: "batch", ops: places.map(([id, at]) => ({ op: "move", id, at: axis === 0 ? [to, at[1]] : [at[0], to] })) });
}

/** Give the selected nodes equal distances along the longer side of their box. */
export function spread(): void {
  const s = get();
  const layout = graphOf(s)?.layout ?? {};
  const places = s.selected.flatMap((id) => (layout[id] ? [[id, layout[id]] as const] : []));
  const extent = (axis: 0 | 1) => Math.max(...places.map(([, at]) => at[axis])) - Math.min(...places.map(([, at]) => at[axis]));
  if (places.length < 3) return;
  const axis = extent(0) >= extent(1) ? 0 : 1;
  const ordered = [...places].sort((a, b) => a[1][axis] - b[1][axis]);
  const first = ordered[0]?.[1][axis] ?? 0;
  const step = extent(axis) / (places.length - 1);
  void op({ op: "batch", ops: ordered.map(([id, at], n) => ({ op: "move", id, at: axis === 0 ? [Math.round(first + n * step), at[1]] : [at[0], Math.round(first + n * step)] })) });
}

export function Menu() {
  const menu = useStudio((s) => s.menu);
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!menu) return;
    place.current?.querySelector("button")?.focus();
    const close = (e: Event) => {
      if (e instanceof KeyboardEvent ? e.key === "Escape" : !place.current?.contains(e.target as Node)) set({ menu: null });
    };
    window.addEventListener("pointerdown", close);
    window.addEventListener("keydown", close);
    return () => {
      window.removeEventListener("pointerdown", close);
      window.removeEventListener("keydown", close);
    };
  }, [menu]);
  if (!menu) return null;
  const items = itemsOf(menu);
  const move = (e: React.KeyboardEvent) => {
    const step = e.key === "ArrowDown" ? 1 : e.key === "ArrowUp" ? -1 : 0;
    if (!step) return;
    e.preventDefault();
    const buttons = [...(place.current?.querySelectorAll("button") ?? [])];
    buttons[(buttons.indexOf(document.activeElement as HTMLButtonElement) + step + buttons.length) % buttons.length]?.focus();
  };
  return (
    <div ref={place} className="menu" role="menu" aria-label={menu.node || menu.edge || "canvas"} onKeyDown={move} style={{ left: Math.min(menu.x, innerWidth - 210), top: Math.min(menu.y, innerHeight - 30 * items.length - 20) }}>
      {items.map(([words, act, keys]) => (
        <button type="button" key={words} role="menuitem" onClick={() => {
          set({ menu: null });
          act();
        }}>
          {words} {keys && <kbd>{keys}</kbd>}
        </button>
      ))}
    </div>
  );
}
