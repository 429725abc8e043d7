import { useEffect, useRef } from "react";
import { NO_FRAMES, useStudio } from "../store";
import type { Frame } from "../types";

type Pen = CanvasRenderingContext2D;

function ink(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function cartpole(pen: Pen, w: number, h: number, [x = 0, , angle = 0]: number[]): void {
  const ground = h * 0.74;
  const scale = w / 5.4;
  const cx = w / 2 + x * scale;
  pen.strokeStyle = ink("--line");
  pen.lineWidth = 2;
  pen.beginPath();
  pen.moveTo(w / 2 - 2.4 * scale, ground);
  pen.lineTo(w / 2 + 2.4 * scale, ground);
  pen.stroke();
  for (const edge of [-2.4, 2.4]) {
    pen.beginPath();
    pen.moveTo(w / 2 + edge * scale, ground - 6);
    pen.lineTo(w / 2 + edge * scale, ground + 6);
    pen.stroke();
  }
  pen.fillStyle = ink("--c-world");
  pen.beginPath();
  pen.roundRect(cx - 20, ground - 11, 40, 20, 5);
  pen.fill();
  const length = Math.min(h * 0.55, w * 0.3);
  pen.strokeStyle = Math.abs(angle) > 0.15 ? ink("--bad") : ink("--c-policy");
  pen.lineWidth = 7;
  pen.lineCap = "round";
  pen.beginPath();
  pen.moveTo(cx, ground - 10);
  pen.lineTo(cx + Math.sin(angle) * length, ground - 10 - Math.cos(angle) * length);
  pen.stroke();
  dot(pen, cx, ground - 10, 4);
}

function pendulum(pen: Pen, w: number, h: number, [cos = 1, sin = 0]: number[]): void {
  const length = Math.min(w, h) * 0.38;
  pen.strokeStyle = ink("--c-policy");
  pen.lineWidth = 10;
  pen.lineCap = "round";
  pen.beginPath();
  pen.moveTo(w / 2, h / 2);
  pen.lineTo(w / 2 - sin * length, h / 2 - cos * length);
  pen.stroke();
  dot(pen, w / 2, h / 2, 5);
}

function acrobot(pen: Pen, w: number, h: number, [c1 = 1, s1 = 0, c2 = 1, s2 = 0]: number[]): void {
  const length = Math.min(w, h) * 0.22;
  const x1 = w / 2 + s1 * length;
  const y1 = h / 2 + c1 * length;
  const s12 = s1 * c2 + c1 * s2;
  const c12 = c1 * c2 - s1 * s2;
  pen.strokeStyle = ink("--c-policy");
  pen.lineWidth = 8;
  pen.lineCap = "round";
  pen.beginPath();
  pen.moveTo(w / 2, h / 2);
  pen.lineTo(x1, y1);
  pen.lineTo(x1 + s12 * length, y1 + c12 * length);
  pen.stroke();
  dot(pen, w / 2, h / 2, 5);
  dot(pen, x1, y1, 5);
}

function mountain(pen: Pen, w: number, h: number, [x = 0]: number[]): void {
  const to = (p: number): [number, number] => [((p + 1.2) / 1.8) * w, h * 0.85 - (Math.sin(3 * p) * 0.45 + 0.55) * h * 0.6];
  pen.strokeStyle = ink("--line");
  pen.lineWidth = 3;
  pen.beginPath();
  for (let p = -1.2; p <= 0.61; p += 0.03) pen.lineTo(...to(p));
  pen.stroke();
  const [cx, cy] = to(x);
  pen.fillStyle = ink("--c-world");
  pen.beginPath();
  pen.arc(cx, cy - 8, 8, 0, 7);
  pen.fill();
}

function dot(pen: Pen, x: number, y: number, r: number): void {
  pen.fillStyle = ink("--text");
  pen.beginPath();
  pen.arc(x, y, r, 0, 7);
  pen.fill();
}

const DRAW: Record<string, (pen: Pen, w: number, h: number, state: number[]) => void> = { CartPole: cartpole, Pendulum: pendulum, Acrobot: acrobot, MountainCar: mountain };

function Scene({ frame, copy }: { frame: Frame; copy: number }) {
  const place = useRef<HTMLCanvasElement>(null);
  const theme = useStudio((s) => s.theme);
  useEffect(() => {
    const canvas = place.current;
    const pen = canvas?.getContext("2d");
    if (!canvas || !pen) return;
    const w = canvas.clientWidth;
    const h = canvas.clientHeight;
    const dense = devicePixelRatio || 1;
    if (canvas.width !== w * dense) {
      canvas.width = w * dense;
      canvas.height = h * dense;
    }
    pen.setTransform(dense, 0, 0, dense, 0, 0);
    pen.clearRect(0, 0, w, h);
    DRAW[frame.kind]?.(pen, w, h, frame.states[copy] ?? []);
  }, [frame, copy, theme]);
  return (
    <figure className="scene">
      {frame.pictures ? <img src={frame.pictures[copy]} alt={`${frame.env_id}, copy ${copy}`} data-testid={`scene-${copy}`} /> : <canvas ref={place} role="img" aria-label={`${frame.env_id}, copy ${copy}`} data-testid={`scene-${copy}`} />}
      <figcaption>
        {frame.env_id.replace(/^surefoot\//, "")} · {copy}
      </figcaption>
    </figure>
  );
}

export function World({ most = 4 }: { most?: number }) {
  const frames = useStudio((s) => (s.session?.doc === s.doc?.doc ? s.frames : NO_FRAMES));
  if (frames.length === 0) return <p className="quiet pad">Environments are shown here during a run: drawn from their observations, or as they render themselves. Set a lower pace to follow the motion.</p>;
  return (
    <div className="scenes">
      {frames.filter((frame) => frame.why).map((frame) => <p key={frame.step} className="quiet">{frame.why}</p>)}
      {frames.flatMap((frame) => (frame.pictures ?? frame.states).slice(0, most).map((_, copy) => <Scene key={`${frame.step}${copy}`} frame={frame} copy={copy} />))}
    </div>
  );
}
