// Paths of edges that avoid cards: a curve if nothing is in its way, else straight segments between the cards.

export interface Box {
  id: string;
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface Ends {
  id: string;
  source: string;
  target: string;
  x1: number;
  y1: number;
  x2: number;
  y2: number;
  /** Whether it has a label, which must not cover another one. */
  labelled: boolean;
}

export interface Route extends Ends {
  path: string;
  /** Where a label may be placed. */
  x: number;
  y: number;
  /** Points between which it runs: the view must show all of them. */
  points: Point[];
}

type Point = [number, number];

// Distance between a card and the first lane, and between two lanes.
const CLEAR = 14;
const LANE = 7;
const LANES = 7;
/** Width and height that a label needs. */
const LABEL: Point = [170, 26];

/** Return a path for each edge. Edges of one output share their lanes, so that they look like one wire that branches. */
export function routes(edges: Ends[], boxes: Box[]): Map<string, Route> {
  const result = new Map<string, Route>();
  const lanes = new Map<number, string[]>();
  // Lanes are counted beside each column of cards, so that no edge turns further away from it than it must.
  const laneOf = (column: number, key: string): number => {
    const keys = lanes.get(column) ?? [];
    if (!keys.includes(key)) lanes.set(column, [...keys, key]);
    return (lanes.get(column) ?? []).indexOf(key) % LANES;
  };
  const used = new Map<number, number>();
  const bands = freeBands(boxes);
  const free: [Ends, Point[]][] = [];
  const bent: [Ends, Point[]][] = [];
  for (const edge of edges) {
    const key = `${edge.source} ${edge.y1}`;
    const curve = curved(edge);
    if (edge.x2 > edge.x1 + 30 && !curve.samples.some((p) => hits(p, boxes, edge))) {
      // From the middle to the ends.
      const places = [...curve.samples].sort((a, b) => Math.abs(a[0] - curve.middle[0]) + Math.abs(a[1] - curve.middle[1]) - Math.abs(b[0] - curve.middle[0]) - Math.abs(b[1] - curve.middle[1]));
      result.set(edge.id, { ...edge, path: curve.path, x: curve.middle[0], y: curve.middle[1], points: curve.samples });
      free.push([edge, places]);
      continue;
    }
    const points = straight(edge, boxes, bands, [laneOf(edge.x1, key), laneOf(edge.x2, key)], used);
    const places = placesOf(points);
    result.set(edge.id, { ...edge, path: rounded(points), x: places[0]?.[0] ?? edge.x1, y: places[0]?.[1] ?? edge.y1, points });
    bent.push([edge, places]);
  }
  // A curve has more places for its label than straight segments have, so it comes later.
  const labels: Point[] = [];
  for (const [edge, places] of [...bent, ...free].filter(([each]) => each.labelled)) {
    const place = places.find(([x, y]) => !labels.some((other) => Math.abs(other[0] - x) < LABEL[0] && Math.abs(other[1] - y) < LABEL[1])) ?? places[0];
    if (!place) continue;
    labels.push(place);
    result.set(edge.id, { ...(result.get(edge.id) as Route), x: place[0], y: place[1] });
  }
  return result;
}

function curved(e: Ends): { path: string; samples: Point[]; middle: Point } {
  const bend = Math.max(30, (e.x2 - e.x1) * 0.45);
  const at = (t: number): Point => {
    const [a, b, c, d] = [(1 - t) ** 3, 3 * (1 - t) ** 2 * t, 3 * (1 - t) * t * t, t ** 3];
    return [a * e.x1 + b * (e.x1 + bend) + c * (e.x2 - bend) + d * e.x2, (a + b) * e.y1 + (c + d) * e.y2];
  };
  return { path: `M${e.x1},${e.y1} C${e.x1 + bend},${e.y1} ${e.x2 - bend},${e.y2} ${e.x2},${e.y2}`, samples: Array.from({ length: 23 }, (_, i) => at((i + 1) / 24)), middle: at(0.5) };
}

function hits([x, y]: Point, boxes: Box[], e: Ends): boolean {
  return boxes.some((b) => {
    // The ends lie on the borders of their own cards.
    const slack = b.id === e.source || b.id === e.target ? 10 : -4;
    return x > b.x + slack && x < b.x + b.width - slack && y > b.y + slack && y < b.y + b.height - slack;
  });
}

/** Return the horizontal bands [top, bottom] without cards: above, between and below the rows. */
function freeBands(boxes: Box[]): Point[] {
  const spans = boxes.map((b): Point => [b.y, b.y + b.height]).sort((a, b) => a[0] - b[0]);
  const bands: Point[] = [];
  let bottom = Number.NEGATIVE_INFINITY;
  for (const [top, end] of spans) {
    if (bottom > Number.NEGATIVE_INFINITY && top - bottom > 2 * CLEAR) bands.push([bottom, top]);
    bottom = Math.max(bottom, end);
  }
  const first = spans[0]?.[0] ?? 0;
  return [...bands, [bottom, bottom + 400], [first - 400, first]];
}

function straight(e: Ends, boxes: Box[], bands: Point[], lanes: Point, used: Map<number, number>): Point[] {
  const out = e.x1 + CLEAR + lanes[0] * LANE;
  const into = e.x2 - CLEAR - lanes[1] * LANE;
  // One turn in the space between two columns, if nothing is in the way.
  if (e.x2 - e.x1 > 2 * CLEAR) {
    const direct: Point[] = [[e.x1, e.y1], [out, e.y1], [out, e.y2], [e.x2, e.y2]];
    if (out < e.x2 - 6 && cost(direct, boxes, e) === length(direct)) return direct;
  }
  let best: Point[] = [];
  let least = Number.POSITIVE_INFINITY;
  let chosen = -1;
  bands.forEach(([top, bottom], n) => {
    // The lanes of a band begin at its upper border; those above all cards at its lower one.
    const taken = used.get(n) ?? 0;
    const offset = CLEAR + (taken * LANE) % Math.max(LANE, bottom - top - 2 * CLEAR);
    const y = n === bands.length - 1 ? bottom - offset : top + offset;
    const path: Point[] = [[e.x1, e.y1], [out, e.y1], [out, y], [into, y], [into, e.y2], [e.x2, e.y2]];
    const price = cost(path, boxes, e);
    if (price < least) [best, least, chosen] = [path, price, n];
  });
  used.set(chosen, (used.get(chosen) ?? 0) + 1);
  return best;
}

const length = (points: Point[]): number => points.slice(1).reduce((sum, p, i) => sum + Math.abs(p[0] - (points[i] as Point)[0]) + Math.abs(p[1] - (points[i] as Point)[1]), 0);

/** Return the length of a path; cards in the way cost more than any detour. */
function cost(points: Point[], boxes: Box[], e: Ends): number {
  let crossed = 0;
  for (let i = 1; i < points.length; i++) {
    const [a, b] = [points[i - 1] as Point, points[i] as Point];
    const [left, right, top, bottom] = [Math.min(a[0], b[0]), Math.max(a[0], b[0]), Math.min(a[1], b[1]), Math.max(a[1], b[1])];
    for (const box of boxes) {
      const end = (box.id === e.source && i === 1) || (box.id === e.target && i === points.length - 1);
      const slack = end ? 10 : -2;
      if (right > box.x + slack && left < box.x + box.width - slack && bottom > box.y + slack && top < box.y + box.height - slack) crossed++;
    }
  }
  return length(points) + crossed * 10_000;
}

/** Return an SVG path with round corners. */
function rounded(points: Point[]): string {
  let path = `M${points[0]?.[0]},${points[0]?.[1]}`;
  for (let i = 1; i < points.length - 1; i++) {
    const [a, b, c] = [points[i - 1] as Point, points[i] as Point, points[i + 1] as Point];
    const radius = Math.min(10, Math.hypot(b[0] - a[0], b[1] - a[1]) / 2, Math.hypot(c[0] - b[0], c[1] - b[1]) / 2);
    const near = (from: Point): Point => {
      const size = Math.hypot(b[0] - from[0], b[1] - from[1]) || 1;
      return [b[0] + ((from[0] - b[0]) * radius) / size, b[1] + ((from[1] - b[1]) * radius) / size];
    };
    const [before, after] = [near(a), near(c)];
    path += ` L${before[0]},${before[1]} Q${b[0]},${b[1]} ${after[0]},${after[1]}`;
  }
  const last = points.at(-1) as Point;
  return `${path} L${last[0]},${last[1]}`;
}

/** Return places for a label on the horizontal segments, where it covers no card: the middle of the longest one first. */
function placesOf(points: Point[]): Point[] {
  const segments = points.slice(1).map((b, i): [Point, Point] => [points[i] as Point, b]).filter(([a, b]) => a[1] === b[1]);
  segments.sort(([a, b], [c, d]) => Math.abs(d[0] - c[0]) - Math.abs(b[0] - a[0]));
  const long = segments.filter(([a, b], n) => n === 0 || Math.abs(b[0] - a[0]) > LABEL[0]);
  return long.flatMap(([a, b]) => [0.5, 0.25, 0.75].map((t): Point => [a[0] + (b[0] - a[0]) * t, a[1]]));
}
