import { lazy, Suspense, useEffect } from "react";
import { addNode, Canvas, openInside, removeSelected, setMode, tidy } from "./canvas/Canvas";
import { copy, paste } from "./canvas/clipboard";
import { CodePane } from "./panels/Code";
import { Dialogs } from "./panels/Dialogs";
import { comment, Menu } from "./panels/Menu";
import { Resizer } from "./panels/Resizer";
import { Tour } from "./panels/Tour";
import { Drawer, Strip } from "./panels/Drawer";
import { Inspector } from "./panels/Inspector";
import { Palette } from "./panels/Palette";
import { ask, command, get, graphOf, leave, op, redo, run, running, set, setPanels, setTheme, show, undo, useStudio } from "./store";
import { openFile } from "./share";
import { Gallery } from "./views/Gallery";

const Runs = lazy(() => import("./views/Runs").then((m) => ({ default: m.Runs })));

function ungroupSelected(): void {
  const s = get();
  const id = s.selected[0];
  if (id && s.doc && graphOf(s)?.nodes[id]?.type === "SubGraph") void ask("ungroup", { doc: s.doc.doc, id, inside: s.inside }).then(() => set({ selected: [] }));
}

function onKey(e: KeyboardEvent): void {
  const s = get();
  const inField = (e.target as HTMLElement).closest("input,select,textarea");
  const ctrl = e.ctrlKey || e.metaKey;
  if (s.dialog || s.menu || s.view !== "canvas" || !s.doc) return;
  if (ctrl && e.key === "Enter") {
    void run();
  } else if (inField) {
    if (e.key === "Escape") {
      (e.target as HTMLElement).blur();
      document.querySelector<HTMLElement>(`.react-flow__node[data-id="${s.selected[0]}"]`)?.focus();
    }
    return;
  } else if (ctrl && e.key.toLowerCase() === "z") {
    e.shiftKey ? redo() : undo();
  } else if (ctrl && e.key.toLowerCase() === "y") {
    redo();
  } else if (ctrl && e.key.toLowerCase() === "c") {
    copy(s.selected);
  } else if (ctrl && e.key.toLowerCase() === "v") {
    void paste();
  } else if (ctrl && e.key.toLowerCase() === "d") {
    copy(s.selected);
    void paste();
  } else if (ctrl && e.key.toLowerCase() === "a") {
    set({ selected: Object.keys(graphOf(s)?.nodes ?? {}), edge: "" });
  } else if (ctrl && e.key.toLowerCase() === "o") {
    set({ dialog: "open" });
  } else if (ctrl || e.altKey) {
    return;
  } else if (e.key === "Delete" || e.key === "Backspace") {
    removeSelected();
  } else if (e.key === "Escape") {
    if (s.inside && !s.selected.length && !s.edge) leave(s.trail.length - 1);
    else set({ selected: [], edge: "" });
  } else if (e.key === "Enter" && s.selected.length === 1) {
    const id = s.selected[0] as string;
    if (graphOf(s)?.nodes[id]?.type === "SubGraph") openInside(id);
    else document.querySelector<HTMLElement>(".inspector .field input, .inspector .field select")?.focus();
  } else if (e.key === "/") set({ dialog: "find" });
  else if (e.key === "a") set({ dialog: "add" });
  else if (e.key === "c" && s.selected.length === 1) set({ dialog: "connect", dialogNode: s.selected[0] as string });
  else if (e.key === "g" && s.selected.length > 0) set({ dialog: "group" });
  else if (e.key === "u") ungroupSelected();
  else if (e.key === "m") setMode("mute");
  else if (e.key === "b") setMode("bypass");
  else if (e.key === "k") void comment();
  else if (e.key === "l") tidy();
  else if (e.key === "f") window.dispatchEvent(new Event("studio:fit"));
  else if (e.key === "e") set({ code: !s.code });
  else if (e.key === "?") set({ dialog: "keys" });
  else if (e.key === "t" && running(s)) command("tick");
  else if (e.key === "n" && running(s)) command("node");
  else if (e.key === "j" && running(s)) command("update");
  else return;
  e.preventDefault();
}

/** Select the node that receives keyboard focus, so that Tab moves the selection. */
function followFocus(e: React.FocusEvent<HTMLElement>): void {
  const id = e.target.classList.contains("react-flow__node") && e.target.matches(":focus-visible") ? e.target.dataset.id : undefined;
  if (id && !get().selected.includes(id)) set({ selected: [id], edge: "" });
}

function Top() {
  const view = useStudio((s) => s.view);
  const doc = useStudio((s) => s.doc);
  const inside = useStudio((s) => s.inside);
  const trail = useStudio((s) => s.trail);
  const theme = useStudio((s) => s.theme);
  const code = useStudio((s) => s.code);
  const session = useStudio((s) => s.session);
  const panels = useStudio((s) => s.panels);
  return (
    <header className="top">
      <span className="logo" aria-hidden="true">◣◥</span>
      <b className="brand">Surefoot</b>
      <nav aria-label="views">
        <button type="button" aria-current={view === "gallery"} onClick={() => show("gallery")}>Graphs</button>
        <button type="button" aria-current={view === "canvas"} disabled={!doc} onClick={() => show("canvas")}>Canvas</button>
        <button type="button" aria-current={view === "runs"} onClick={() => show("runs")}>Runs</button>
      </nav>
      {view === "canvas" && doc && (
        <>
          <h1 className="crumbs">
            {trail.map((graph, n) => (
              <span key={graph.through}>
                <button type="button" className="link" onClick={() => leave(n)}>{graph.inside || doc.doc}</button> /{" "}
              </span>
            ))}
            {inside ? <span>{inside}</span> : <button type="button" className="link" onClick={() => set({ selected: [], edge: "" })}>{doc.doc}</button>}
          </h1>
          <span className="saved quiet" title="every change is saved to disk before it is shown">saved · {doc.done} change{doc.done === 1 ? "" : "s"}</span>
          <span className="grow" />
          <div className="tools" role="toolbar" aria-label="canvas tools">
            <button type="button" aria-pressed={panels.left > 0} aria-label="node list" title="show or hide the list of nodes" onClick={() => setPanels({ left: panels.left ? 0 : 172 })}>◧</button>
            <button type="button" aria-pressed={panels.right > 0} aria-label="inspector panel" title="show or hide the inspector" onClick={() => setPanels({ right: panels.right ? 0 : 276 })}>◨</button>
            <button type="button" onClick={() => set({ dialog: "add" })}>+ Node</button>
            <button type="button" disabled={doc.done === 0} onClick={undo} aria-label="undo" title="Ctrl+Z">↶</button>
            <button type="button" disabled={doc.undone === 0} onClick={redo} aria-label="redo" title="Ctrl+Shift+Z">↷</button>
            <button type="button" onClick={tidy} title="L">Tidy</button>
            <button type="button" aria-pressed={code} onClick={() => set({ code: !code })} title="E">Code</button>
            <button type="button" onClick={() => set({ dialog: "share" })}>Share</button>
          </div>
        </>
      )}
      {view !== "canvas" && <span className="grow" />}
      {session && view !== "canvas" && ["running", "paused"].includes(session.state) && <span className={`state ${session.state}`}>{session.doc}: {session.state}</span>}
      <button type="button" aria-label={theme === "dark" ? "light colours" : "dark colours"} onClick={() => setTheme(theme === "dark" ? "light" : "dark")}>{theme === "dark" ? "☀" : "☾"}</button>
      <button type="button" aria-label="keyboard shortcuts" onClick={() => set({ dialog: "keys" })}>?</button>
    </header>
  );
}

function Toasts() {
  const toasts = useStudio((s) => s.toasts);
  return (
    <div className="toasts" role="status" aria-live="polite">
      {toasts.map((t) => (
        <div key={t.id} className={`toast ${t.kind}`}>
          <span>{t.text}</span>
          <button type="button" aria-label="dismiss" onClick={() => set({ toasts: get().toasts.filter((x) => x.id !== t.id) })}>✕</button>
        </div>
      ))}
    </div>
  );
}

export function App() {
  const view = useStudio((s) => s.view);
  const online = useStudio((s) => s.online);
  const doc = useStudio((s) => s.doc);
  const code = useStudio((s) => s.code);
  const offline = useStudio((s) => s.offline);
  const unsent = useStudio((s) => s.unsent);
  const panels = useStudio((s) => s.panels);
  const columns = { "--left": `${panels.left}px`, "--right": `${panels.right}px`, "--bottom": `${panels.bottom || 236}px` } as React.CSSProperties;
  useEffect(() => {
    const over = (e: DragEvent) => e.dataTransfer?.types.includes("Files") && e.preventDefault();
    const drop = (e: DragEvent) => {
      const file = e.dataTransfer?.files[0];
      if (!file) return;
      e.preventDefault();
      void openFile(file);
    };
    window.addEventListener("keydown", onKey);
    window.addEventListener("dragover", over);
    window.addEventListener("drop", drop);
    return () => {
      window.removeEventListener("keydown", onKey);
      window.removeEventListener("dragover", over);
      window.removeEventListener("drop", drop);
    };
  }, []);
  return (
    <div className="app">
      <Top />
      {!online && offline && (
        <p className="offline" role="alert">
          {offline} {unsent > 0 && `${unsent} change${unsent > 1 ? "s" : ""} of this tab will be sent then; do not close it.`}
        </p>
      )}
      {view === "gallery" && <Gallery />}
      {view === "canvas" && doc && (
        <main className={`desk ${code ? "with-code" : ""}`} aria-label={doc.doc} style={columns}>
          {panels.left > 0 && !code ? <Palette /> : <span />}
          <Resizer panel="left" />
          <div className="middle">
            <div className="stage" onFocus={followFocus}>
              <Canvas />
            </div>
            <Strip />
            <Drawer />
          </div>
          <Resizer panel="right" />
          {code ? <CodePane /> : panels.right > 0 ? <Inspector /> : <span />}
          <Menu />
        </main>
      )}
      {view === "runs" && (
        <Suspense fallback={<p className="quiet pad">…</p>}>
          <Runs />
        </Suspense>
      )}
      <Dialogs />
      <Tour />
      <Toasts />
    </div>
  );
}

/** Stop the current run and wait until it has ended, at most 30 seconds. */
async function halt(): Promise<void> {
  const ended = () => !["running", "paused", "starting"].includes(get().session?.state ?? "");
  if (!ended()) command("stop");
  for (let n = 0; n < 600 && !ended(); n++) await new Promise((resolve) => setTimeout(resolve, 50));
}

// For browser tests and benchmarks; the page itself does not use it.
Object.assign(window, { studio: { get, op, ask, addNode, halt } });
