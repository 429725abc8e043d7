import { Handle, type NodeProps, Position, useStore, useUpdateNodeInternals } from "@xyflow/react";
import { memo, useEffect, useRef } from "react";
import { CATEGORY, colourOf } from "../ports";
import { flatId, set, useStudio } from "../store";
import type { CheckFinding, Port } from "../types";
import { Spark } from "../panels/Spark";
import { level, shapeOf, short } from "../words";

export interface CardData extends Record<string, unknown> {
  id: string;
  type: string;
  category: string;
  summary: string;
  inputs: Port[];
  outputs: Port[];
  wired: string[];
  feeds: string[];
  params: [string, unknown][];
  findings: CheckFinding[];
}

/** What goes out now, where it goes out: on the edge itself it would hide what lies behind. */
function Live({ end }: { end: string }) {
  const seen = useStudio((s) => (s.session?.doc === s.doc?.doc ? s.values[end] : undefined));
  const ring = useStudio((s) => s.rings[end]);
  if (!seen) return null;
  const now = level(seen);
  const shape = shapeOf(seen);
  return (
    <span className="live" data-testid={`live-${end}`} title={shape}>
      {ring && ring.length > 2 && <Spark values={ring.slice(-40).map(level)} width={34} height={13} />}
      {now !== null && <b>{short(now)}</b>}
      {seen.kind === "array" && <i>{shape}</i>}
    </span>
  );
}

/** From afar only what an edge hangs on: a graph of hundreds of nodes has thousands of ports. */
function FarPort({ port, side, wired }: { port: Port; side: "in" | "out"; wired: boolean }) {
  return (
    <div className={`port ${side}`}>
      {wired && <Handle id={port.name} type={side === "in" ? "target" : "source"} position={side === "in" ? Position.Left : Position.Right} />}
    </div>
  );
}

function PortRow({ port, side, wired, end = "" }: { port: Port; side: "in" | "out"; wired: boolean; end?: string }) {
  const text = `${port.name}: ${port.type.text}${port.help ? `. ${port.help}` : ""}`;
  return (
    <div className={`port ${side} ${wired || side === "out" ? "" : port.optional ? "optional" : "missing"}`} title={text}>
      <Handle
        id={port.name}
        type={side === "in" ? "target" : "source"}
        position={side === "in" ? Position.Left : Position.Right}
        style={{ background: wired || side === "out" ? colourOf(port.type.kind) : "var(--panel)", borderColor: colourOf(port.type.kind) }}
      />
      {end && <Live end={end} />}
      <span>{port.name}</span>
    </div>
  );
}

export const NodeCard = memo(function NodeCard({ data, selected }: NodeProps & { data: CardData }) {
  const flat = useStudio((s) => flatId(s, data.id));
  const inside = (name: string) => name === flat || name.startsWith(`${flat}__`);
  const share = useStudio((s) => {
    if (!s.session || s.session.doc !== s.doc?.doc) return 0;
    let sum = 0;
    for (const [name, part] of Object.entries(s.shares)) if (inside(name)) sum += part;
    return Math.round(sum * 100);
  });
  const failed = useStudio((s) => (s.session?.doc === s.doc?.doc && s.session?.error && inside(s.session.error.node) ? s.session.error : null));
  const next = useStudio((s) => s.session?.state === "paused" && s.session.doc === s.doc?.doc && inside(s.session.next ?? ""));
  const told = useStudio((s) => (s.session?.doc === s.doc?.doc ? s.findings.filter((f) => f.status === "open" && f.node === data.id).length : 0));
  const far = useStore((s) => s.transform[2] < 0.35);
  const measure = useUpdateNodeInternals();
  const before = useRef(far);
  useEffect(() => {
    if (before.current !== far) measure(data.id);
    before.current = far;
  }, [far, data.id, measure]);
  const errors = data.findings.filter((f) => f.level === "error");
  const lints = data.findings.filter((f) => f.level === "lint");
  const worst = failed ? "failed" : errors.length ? "wrong" : "";
  const message = failed?.message ?? errors[0]?.message ?? "";
  return (
    <div className={`card ${far ? "far" : ""} ${selected ? "chosen" : ""} ${worst} ${next ? "next" : ""}`} style={{ "--accent": CATEGORY[data.category] ?? "var(--c-any)" } as React.CSSProperties} data-testid={`node-${data.id}`}>
      <div className="card-head" title={data.summary}>
        <b>{data.id}</b>
        <small>{data.type.replace(/Node$/, "")}</small>
        <span className="badges">
          {told > 0 && (
            <button type="button" className="badge doctor nodrag" title="what the doctor found here" onClick={() => set({ drawer: "doctor" })}>
              ✚ {told}
            </button>
          )}
          {lints.length > 0 && <span className="badge lint" title={lints.map((f) => f.message).join("\n")}>!</span>}
          {share > 0 && <span className="badge share" title="share of the time">{share}%</span>}
        </span>
      </div>
      {share > 0 && <div className="heat" style={{ width: `${share}%` }} />}
      <div className="ports">
        {data.inputs.map((port) => {
          const wired = data.wired.includes(port.name);
          return far ? <FarPort key={`i${port.name}`} port={port} side="in" wired={wired} /> : <PortRow key={`i${port.name}`} port={port} side="in" wired={wired} />;
        })}
        {data.outputs.map((port) =>
          far ? <FarPort key={`o${port.name}`} port={port} side="out" wired={data.feeds.includes(port.name)} /> : <PortRow key={`o${port.name}`} port={port} side="out" wired end={`${flat}.${port.name}`} />,
        )}
      </div>
      {!far && data.params.length > 0 && (
        <div className="facts">
          {data.params.slice(0, 3).map(([name, value]) => (
            <span key={name}>
              {name} <b>{short(value).slice(0, 26)}</b>
            </span>
          ))}
        </div>
      )}
      {message && !far && (
        <div className="trouble" role={failed ? "alert" : undefined}>
          {message.length > 150 ? `${message.slice(0, 150)}…` : message}
        </div>
      )}
    </div>
  );
});
