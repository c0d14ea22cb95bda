"""The colours of light and dark pages and figures; nothing is drawn here, so that nothing large is imported."""

from __future__ import annotations

from dataclasses import dataclass

FONTS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, 'Liberation Sans', sans-serif"


@dataclass(frozen=True, slots=True, kw_only=True)
class Theme:
    """Colours by role: text, faint text, grid, surface, policies (8), types of cost (4), heat (one hue, by opacity)."""

    ink: str
    muted: str
    grid: str
    panel: str
    series: tuple[str, ...]
    costs: tuple[str, ...]
    heat: str

    def policy(self, number: int) -> str:
        """Colour of the policy with this number."""
        return self.series[number % len(self.series)]


LIGHT = Theme(
    ink="#1d242b", muted="#5a6570", grid="#e2e6e9", panel="#ffffff", heat="#1f6fb2",
    series=("#1f6fb2", "#c65a11", "#12836f", "#8a4fbf", "#b5316b", "#7b6d00", "#4d5f73", "#a23b2a"),
    costs=("#33608c", "#7fa8cf", "#d39a3c", "#8b7a6b"),
)  # fmt: skip
DARK = Theme(
    ink="#e7ebef", muted="#9aa6b2", grid="#2d353d", panel="#171c21", heat="#6fb1ee",
    series=("#6fb1ee", "#f2965b", "#4fc3ac", "#bf97ee", "#ee83b0", "#d1c04f", "#a6b6c8", "#e58876"),
    costs=("#7fb0e0", "#4a7196", "#e0b05e", "#a8998b"),
)  # fmt: skip
THEMED = Theme(
    ink="#fe0a00", muted="#fe0a01", grid="#fe0a02", panel="#fe0a03", heat="#fe0a04",
    series=tuple(f"#fe0b{i:02x}" for i in range(8)),
    costs=tuple(f"#fe0c{i:02x}" for i in range(4)),
)  # fmt: skip


def variables(theme: Theme) -> dict[str, str]:
    """CSS variable -> colour."""
    found = {f"--{role}": getattr(theme, role) for role in ("ink", "muted", "grid", "panel", "heat")}
    found.update({f"--c{i}": colour for i, colour in enumerate(theme.series)})
    found.update({f"--k{i}": colour for i, colour in enumerate(theme.costs)})
    return found
