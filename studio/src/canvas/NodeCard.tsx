import { Handle, type NodeProps, Position } from "@xyflow/react";
import { memo } from "react";
import { CATEGORY, colourOf } from "../ports";
import { flatId, openDrawer, useStudio } from "../store";
import type { CheckFinding, Port } from "../types";
import { Spark } from "../panels/Spark";
import { brief, level, shapeOf, short } from "../words";
import { FACTS } from "./layout";

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
  mode: string;
  findings: CheckFinding[];
  /** Zoomed out: show only the name, because hundreds of nodes have thousands of ports to draw. */
  far: boolean;
  height: number;
  /** Height of the message of an error. */
  trouble: number;
}

/** Characters of a message that a card shows. */
export const TROUBLE = 110;

/** Beside a port name of this length two digits are shown. */
const LONG = 10;

/** Current value of an output, beside its port: a label on the edge would cover other nodes. */
function Live({ end, name }: { end: string; name: string }) {
  const summary = useStudio((s) => (s.session?.doc === s.doc?.doc ? s.values[end] : undefined));
  const ring = useStudio((s) => s.rings[end]);
  if (!summary) return null;
  const now = level(summary);
  const shape = shapeOf(summary);
  return (
    <span className="live" data-testid={`live-${end}`} title={shape}>
      {now !== null && <b>{name.length < LONG ? short(now) : brief(now)}</b>}
      {ring && ring.length > 2 && <Spark values={ring.slice(-40).map(level)} width={34} height={13} />}
    </span>
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
      {end && <Live end={end} name={port.name} />}
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
  const open = useStudio((s) => (s.session?.doc === s.doc?.doc ? s.findings.filter((f) => f.status === "open" && f.node === data.id).length : 0));
  const errors = data.findings.filter((f) => f.level === "error");
  const lints = data.findings.filter((f) => f.level === "lint");
  const worst = failed ? "failed" : errors.length ? "wrong" : "";
  const message = failed?.message ?? errors[0]?.message ?? "";
  return (
    <div className={`card ${data.far ? "far" : ""} ${selected ? "chosen" : ""} ${worst} ${next ? "next" : ""} ${data.mode}`} style={{ "--accent": CATEGORY[data.category] ?? "var(--c-any)", height: data.far ? data.height : undefined } as React.CSSProperties} data-testid={`node-${data.id}`}>
      <div className="card-head" title={data.summary}>
        <b>{data.id}</b>
        <small>{data.type.replace(/Node$/, "")}</small>
        <span className="badges">
          {open > 0 && (
            <button type="button" className="badge doctor nodrag" title="findings of the doctor for this node" onClick={() => openDrawer("doctor")}>
              ✚ {open}
            </button>
          )}
          {lints.length > 0 && <span className="badge lint" title={lints.map((f) => f.message).join("\n")}>!</span>}
          {data.mode && <span className="badge" title={data.mode === "mute" ? "left out of runs" : "runs pass its input on"}>{data.mode === "mute" ? "muted" : "bypassed"}</span>}
          {share > 0 && <span className="badge share" title="share of the computing time">{share}%</span>}
        </span>
      </div>
      {share > 0 && <div className="heat" style={{ width: `${share}%` }} />}
      {!data.far && (
        <div className="ports">
          {data.inputs.map((port) => (
            <PortRow key={`i${port.name}`} port={port} side="in" wired={data.wired.includes(port.name)} />
          ))}
          {data.outputs.map((port) => (
            <PortRow key={`o${port.name}`} port={port} side="out" wired end={`${flat}.${port.name}`} />
          ))}
        </div>
      )}
      {!data.far && data.params.length > 0 && (
        <div className="facts">
          {data.params.slice(0, FACTS).map(([name, value]) => (
            <span key={name}>
              {name} <b>{short(value).replace(/^surefoot\//, "").slice(0, 30)}</b>
            </span>
          ))}
        </div>
      )}
      {message && !data.far && (
        <div className="trouble" role={failed ? "alert" : undefined}>
          {message.length > TROUBLE ? `${message.slice(0, TROUBLE)}…` : message}
        </div>
      )}
    </div>
  );
});
