import { useEffect, useMemo, useRef, useState } from "react";
import { ask, set, toast, useStudio } from "../store";

const MARK = /#\s*\[?node ([A-Za-z0-9_]+)/;
const WORDS = /(#.*$)|("""[\s\S]*?"""|"[^"\n]*"|'[^'\n]*')|\b(def|class|return|if|elif|else|for|in|while|import|from|as|with|not|and|or|is|None|True|False|lambda|yield|raise|try|except|finally|assert|pass|break|continue)\b|\b(\d[\d_.e-]*)\b/g;

/** Return for each line whether it is part of a triple-quoted string. */
function inText(lines: string[]): boolean[] {
  let inside = false;
  return lines.map((line) => {
    const marks = line.split('"""').length - 1;
    const part = inside || marks > 0;
    if (marks % 2) inside = !inside;
    return part;
  });
}

/** Return the node that each line belongs to: a comment names the node of the lines below it, up to the next one or an empty line. */
function ownersOf(lines: string[]): string[] {
  let owner = "";
  let indent = 0;
  return lines.map((line) => {
    const named = MARK.exec(line)?.[1] ?? "";
    const text = line.trimStart();
    const depth = line.length - text.length;
    if (named && text.startsWith("#")) [owner, indent] = [named, depth];
    else if (!text || depth < indent) owner = "";
    return owner || named;
  });
}

function coloured(line: string): React.ReactNode[] {
  const parts: React.ReactNode[] = [];
  let at = 0;
  for (const hit of line.matchAll(WORDS)) {
    if (hit.index > at) parts.push(line.slice(at, hit.index));
    const kind = hit[1] ? "k-comment" : hit[2] ? "k-text" : hit[3] ? "k-word" : "k-number";
    parts.push(
      <span key={hit.index} className={kind}>
        {hit[0]}
      </span>,
    );
    at = hit.index + hit[0].length;
  }
  parts.push(line.slice(at));
  return parts;
}

export function Program({ text, chosen, onPick }: { text: string; chosen?: string; onPick?: (id: string) => void }) {
  const lines = useMemo(() => text.split("\n"), [text]);
  const texts = useMemo(() => inText(lines), [lines]);
  const owners = useMemo(() => ownersOf(lines), [lines]);
  const first = useRef<HTMLDivElement>(null);
  useEffect(() => {
    first.current?.scrollIntoView({ block: "center" });
  }, [chosen, text]);
  let met = false;
  return (
    <pre className="program" role="region" tabIndex={0} aria-label="exported program">
      {lines.map((line, i) => {
        const node = owners[i];
        const current = !!chosen && node === chosen;
        const ref = current && !met ? first : undefined;
        if (current) met = true;
        return (
          <div key={i} ref={ref} className={`line ${current ? "here" : ""}`} onClick={() => node && onPick?.(node)}>
            <i aria-hidden="true">{i + 1}</i>
            <code>{texts[i] ? <span className="k-text">{line}</span> : coloured(line)}</code>
          </div>
        );
      })}
    </pre>
  );
}

export function download(name: string, text: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/x-python" }));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

export function CodePane() {
  const doc = useStudio((s) => s.doc);
  const chosen = useStudio((s) => s.selected[0] ?? "");
  const [style, setStyle] = useState("script");
  const [text, setText] = useState("");
  const [why, setWhy] = useState("");
  useEffect(() => {
    if (!doc) return;
    if (!doc.check.ok) {
      setWhy("The graph has errors. Fix them to see its program.");
      return;
    }
    let cancelled = false;
    void ask<{ text: string }>("export", { doc: doc.doc, style }).then((result) => {
      if (cancelled) return;
      setWhy(result ? "" : "This graph cannot be exported in this style.");
      if (result) setText(result.text);
    });
    return () => {
      cancelled = true;
    };
  }, [doc?.doc, doc?.version, style, doc?.check.ok]);
  if (!doc) return null;
  const file = `${doc.doc.replace(/[^A-Za-z0-9_-]/g, "_")}.py`;
  return (
    <aside className="code" aria-label="program">
      <div className="code-head">
        <div role="group" aria-label="style">
          {["script", "standalone"].map((each) => (
            <button type="button" key={each} aria-pressed={style === each} onClick={() => setStyle(each)}>
              {each}
            </button>
          ))}
        </div>
        <span className="quiet">{text.split("\n").length} lines; {style === "script" ? "imports surefoot" : "needs only torch, numpy, gymnasium"}</span>
        <button type="button" onClick={() => void navigator.clipboard.writeText(text).then(() => toast("copied"))}>Copy</button>
        <button type="button" onClick={() => download(file, text)}>Download</button>
        <button type="button" aria-label="close the program" onClick={() => set({ code: false })}>✕</button>
      </div>
      {why ? <p className="quiet pad">{why}</p> : <Program text={text} chosen={chosen} onPick={(id) => id in doc.graph.nodes && set({ selected: [id], edge: "" })} />}
    </aside>
  );
}
