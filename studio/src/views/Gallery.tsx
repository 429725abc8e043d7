import { useState } from "react";
import { ask, enter, newDoc, openDoc, set, toast, useStudio } from "../store";
import type { Doc } from "../types";
import { ago } from "../words";
import { Thumb } from "./Thumb";

export function Gallery() {
  const templates = useStudio((s) => s.templates);
  const documents = useStudio((s) => s.documents);
  const session = useStudio((s) => s.session);
  const [renaming, setRenaming] = useState("");
  const folderOf = (name: string) => (name.includes("/") ? name.slice(0, name.indexOf("/")) : "");
  const folders = [...new Set(documents.map((d) => folderOf(d.name)))].sort();
  return (
    <main className="gallery">
      <header>
        <h1>Draw a training loop, run it, export it as Python.</h1>
        <p className="quiet">Every template runs without changes. The exported program is readable Python and computes the same numbers.</p>
        <div className="row">
          <button type="button" className="go" onClick={() => void newDoc({ name: "untitled" })}>New graph</button>
          <button type="button" onClick={() => set({ dialog: "import" })}>Import…</button>
          <button type="button" onClick={() => set({ dialog: "trash" })}>Trash…</button>
          <button type="button" onClick={() => set({ tour: 0 })}>Guided tour</button>
        </div>
      </header>
      {documents.length > 0 && (
        <section aria-labelledby="yours">
          <h2 id="yours">Your graphs</h2>
          {folders.map((folder) => (
          <div key={folder}>
          {folder && <h3>{folder}</h3>}
          <ul className="documents">
            {documents.filter((d) => folderOf(d.name) === folder).map((d) => (
              <li key={d.name}>
                {renaming === d.name ? (
                  <form onSubmit={(e) => {
                    e.preventDefault();
                    setRenaming("");
                    const name = String(new FormData(e.currentTarget).get("name") ?? "");
                    if (name && name !== d.name) void ask("rename", { doc: d.name, name });
                  }}>
                    <input name="name" autoFocus aria-label={`new name of ${d.name}`} defaultValue={d.name} onKeyDown={(e) => e.key === "Escape" && setRenaming("")} />
                  </form>
                ) : (
                  <button type="button" onClick={() => void openDoc(d.name)}>
                    {d.graph && <Thumb graph={{ ...d.graph, run: { seed: 0, total_steps: 0, path: "" } }} />}
                    <b>{d.name.slice(folder ? folder.length + 1 : 0)}</b>
                    <small>
                      {session?.doc === d.name && ["running", "paused"].includes(session.state) ? session.state : `changed ${ago(d.changed)}`}
                    </small>
                  </button>
                )}
                <div className="acts">
                  <button type="button" aria-label={`rename ${d.name}`} title="folder/name moves it into a folder" onClick={() => setRenaming(d.name)}>Rename</button>
                  <button type="button" aria-label={`duplicate ${d.name}`} onClick={() => void ask<Doc>("duplicate", { doc: d.name }).then((doc) => doc && enter(doc))}>Duplicate</button>
                  <button type="button" aria-label={`move ${d.name} to the trash`} title="moves the file to graphs/.trash" onClick={() => void ask("put_away", { doc: d.name }).then((done) => done !== null && toast(`${d.name} is in the trash; Trash… restores it`))}>Trash</button>
                </div>
              </li>
            ))}
          </ul>
          </div>
          ))}
        </section>
      )}
      <section aria-labelledby="templates">
        <h2 id="templates">Templates</h2>
        <ul className="templates">
          {templates.map((t) => (
            <li key={t.name}>
              <button type="button" onClick={() => void newDoc({ template: t.name })} data-testid={`template-${t.name}`}>
                <Thumb graph={t.graph} />
                <b>{t.graph.name || t.name}</b>
                <small>{t.about}</small>
              </button>
            </li>
          ))}
        </ul>
      </section>
    </main>
  );
}
