import { Fragment, useEffect, useRef, useState } from "react";
import { toast } from "../store";
import type { Param } from "../types";
import { scheduleText } from "../words";

const text = (value: unknown): string => (value === null || value === undefined ? "" : typeof value === "string" ? value : scheduleText(value) || JSON.stringify(value));

/** One parameter. The input is sent to the server, which validates it and reports errors. */
export function Field({ param, value, onSet }: { param: Param; value: unknown; onSet: (value: unknown) => Promise<unknown> }) {
  const isSet = value !== undefined;
  const [typed, setTyped] = useState(text(value));
  const shown = text(value); // compare text, not values: a list is a new object after every change of the graph
  const before = useRef(shown);
  const sent = useRef("");
  useEffect(() => {
    const was = before.current;
    before.current = shown;
    // Another tab, undo or a fix changed the value; what was typed here and not sent is kept.
    if (typed === was || typed === sent.current) setTyped(shown);
    else if (typed !== shown) toast(`${param.name} was changed to ${shown || "its default"} elsewhere; your text is kept: Enter applies it, Escape drops it`);
  }, [shown]);
  const words = param.type.split(" | ");
  const id = `param-${param.name}`;
  const choice = words.length > 1 && param.legal.startsWith("one of");
  const type = (next: string) => {
    sent.current = "";
    setTyped(next);
  };
  const send = (next: unknown) => {
    // A refused value returns to the old one; the error message names the reason.
    void onSet(next).then((done) => {
      if (done === null) type(text(value));
    });
  };
  const commit = () => {
    // Enter and the loss of focus that follows are one change.
    if (typed === text(value) || typed === sent.current) return;
    sent.current = typed;
    send(typed.trim() === "" ? undefined : parsed(typed, param.type));
  };
  return (
    <div className={`field ${isSet ? "given" : ""}`}>
      <label htmlFor={id} title={param.help}>
        {param.name.split("_").map((word, n) => (n ? <Fragment key={word}>_<wbr />{word}</Fragment> : word))}
        {param.required && !isSet && <em> required</em>}
      </label>
      {param.type === "bool" ? (
        <input id={id} type="checkbox" checked={Boolean(isSet ? value : param.default)} onChange={(e) => send(e.target.checked)} />
      ) : choice ? (
        <select id={id} value={text(isSet ? value : param.default)} onChange={(e) => send(e.target.value)}>
          {words.map((word) => (
            <option key={word}>{word}</option>
          ))}
        </select>
      ) : param.name === "source" ? (
        <textarea id={id} rows={8} spellCheck={false} value={typed} onChange={(e) => type(e.target.value)} onBlur={commit} />
      ) : (
        <input id={id} type="text" spellCheck={false} autoComplete="off" value={typed} placeholder={text(param.default) || param.legal} onChange={(e) => type(e.target.value)} onBlur={commit} onKeyDown={(e) => {
          if (e.key === "Enter") commit();
          if (e.key === "Escape") type(text(value));
        }} />
      )}
      {isSet && !param.required ? (
        <button type="button" className="reset" aria-label={`reset ${param.name} to its default`} title={`default: ${text(param.default) || "none"}`} onClick={() => send(undefined)}>
          ↺
        </button>
      ) : (
        <span />
      )}
      <small>{param.help}</small>
    </div>
  );
}

function parsed(typed: string, type: string): unknown {
  if (type === "text") return typed;
  try {
    return JSON.parse(typed);
  } catch {
    return typed;
  }
}
