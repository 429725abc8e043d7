"""Maps around each agent: planes of a window with the agent in its centre."""

from __future__ import annotations

import numpy as np

from surefoot.town.sim.layout import Layout
from surefoot.town.sim.state import State

# Less than half the cells of the default window of 11: a smaller network, but a shorter view.
COMPACT_WINDOW = 7


def channels(layout: Layout, variant: str) -> list[str]:
    """Return the names of the planes; none for a variant without a map."""
    if variant == "features":
        return []
    four = ["self", "agents", "objects", "reservations"]
    if variant == "full":
        return [*four, "path_dx", "path_dy"]
    return four if variant == "hybrid" else [*four, "walkable", *(f"object:{kind}" for kind in layout.scenario.types)]


class MapMaker:
    """Cuts windows out of padded sheets; sheets that never change are computed once."""

    def __init__(self, layout: Layout, variant: str) -> None:
        self.layout, self.variant = layout, variant
        self.channels = channels(layout, variant)
        self.window = COMPACT_WINDOW if variant == "compact" else layout.scenario.window
        half = self.half = self.window // 2
        self.sheet_width = layout.width + 2 * half
        self.sheet = self.sheet_width * (layout.height + 2 * half)
        y, x = np.divmod(np.arange(layout.width * layout.height), layout.width)
        self.place = (y + half) * self.sheet_width + x + half
        """[cells]: the index of each cell on a padded sheet."""
        dy, dx = np.mgrid[-half : half + 1, -half : half + 1]
        self.offsets = (dy * self.sheet_width + dx).ravel()
        self.fixed = {name: self._fixed(name) for name in self.channels if name[:6] in ("object", "walkab", "path_d")}

    def maps(self, state: State) -> np.ndarray:
        """Return the maps, [B, A, C, W, W] float32; zeros for agents that are not in town."""
        towns, agents = state.present.shape
        w = self.window
        out = np.zeros((towns, agents, len(self.channels), w * w), np.float32)
        index = self.place[state.cell][:, :, None] + self.offsets
        town = (np.arange(towns) * self.sheet)[:, None, None]
        for c, name in enumerate(self.channels):
            if name == "self":
                out[:, :, c, w * w // 2] = 1.0
            elif name == "agents":
                b, agent = np.nonzero(state.present)
                key = b * self.sheet + self.place[state.cell[b, agent]]
                out[:, :, c] = np.bincount(key, minlength=towns * self.sheet)[town + index]
                out[:, :, c, w * w // 2] -= 1.0
            elif name == "reservations":
                sheet = np.zeros(towns * self.sheet, np.float32)
                b, thing = np.nonzero(state.user >= 0)
                sheet[b * self.sheet + self.place[self.layout.object_cell[thing]]] = 1.0
                out[:, :, c] = sheet[town + index]
            else:
                out[:, :, c] = self.fixed[name][index]
        out *= state.present[:, :, None, None]
        return out.reshape(towns, agents, len(self.channels), w, w)

    def _fixed(self, name: str) -> np.ndarray:
        layout, sheet = self.layout, np.zeros(self.sheet, np.float32)
        if name == "walkable":
            sheet[self.place[layout.floor]] = 1.0
        elif name == "objects":
            sheet[self.place[layout.object_cell]] = 1.0
        elif name.startswith("object:"):
            kind = layout.scenario.types.index(name.partition(":")[2])
            sheet[self.place[layout.object_cell[layout.kind == kind]]] = 1.0
        elif layout.objects:
            # The direction of the next step to the nearest object.
            nearest = layout.distance[:-1].argmin(axis=0)
            step = layout.toward[nearest, np.arange(len(nearest))]
            steps = {"path_dx": {2: 1.0, 4: -1.0}, "path_dy": {1: -1.0, 3: 1.0}}[name]
            sheet[self.place] = [steps.get(int(s), 0.0) for s in step]
        return sheet
