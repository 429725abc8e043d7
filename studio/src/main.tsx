import { createRoot } from "react-dom/client";
import "@xyflow/react/dist/style.css";
import "./theme.css";
import { App } from "./app";
import { begin } from "./store";

begin();
const root = document.getElementById("root");
if (root) createRoot(root).render(<App />);
