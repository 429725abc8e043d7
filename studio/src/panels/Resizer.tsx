import { type Panels, setPanels, useStudio } from "../store";

const LIMITS: Record<keyof Panels, [least: number, most: number, usual: number]> = { left: [140, 340, 172], right: [220, 640, 276], bottom: [120, 520, 236] };

/** Drag the border of a panel to resize it; a double click or Enter collapses it and brings it back. */
export function Resizer({ panel }: { panel: keyof Panels }) {
  const size = useStudio((s) => s.panels[panel]);
  const [least, most, usual] = LIMITS[panel];
  const upright = panel !== "bottom";
  const change = (to: number) => setPanels({ [panel]: to < least / 2 ? 0 : Math.round(Math.min(most, Math.max(least, to))) });
  const toggle = () => setPanels({ [panel]: size ? 0 : usual });
  const drag = (e: React.PointerEvent) => {
    const [from, before] = [upright ? e.clientX : e.clientY, size];
    const sign = panel === "left" ? 1 : -1;
    const follow = (now: PointerEvent) => change(before + sign * ((upright ? now.clientX : now.clientY) - from));
    const end = () => {
      window.removeEventListener("pointermove", follow);
      window.removeEventListener("pointerup", end);
    };
    window.addEventListener("pointermove", follow);
    window.addEventListener("pointerup", end);
    e.preventDefault();
  };
  const words = { left: "nodes", right: "inspector", bottom: "drawer" }[panel];
  return (
    <div
      className={`resizer ${panel}`}
      role="separator"
      tabIndex={0}
      aria-orientation={upright ? "vertical" : "horizontal"}
      aria-label={`size of the ${words}`}
      aria-valuenow={size}
      aria-valuemin={0}
      aria-valuemax={most}
      title="drag to resize; double-click to collapse"
      onPointerDown={drag}
      onDoubleClick={toggle}
      onKeyDown={(e) => {
        const more = (upright ? (panel === "left" ? "ArrowRight" : "ArrowLeft") : "ArrowUp") === e.key;
        const less = (upright ? (panel === "left" ? "ArrowLeft" : "ArrowRight") : "ArrowDown") === e.key;
        if (e.key === "Enter") toggle();
        else if (more || less) change(size + (more ? 24 : -24));
        else return;
        e.preventDefault();
        e.stopPropagation();
      }}
    />
  );
}
