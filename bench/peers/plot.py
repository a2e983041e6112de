# SPDX-License-Identifier: MIT
"""Draws bus bandwidth over size, one picture for all settings (matplotlib)."""

from . import report

PANEL = 6.4, 4.0  # inches
LEGEND_LINE = 0.2
LIMIT_COLOURS = "0.4", "0.7", "#8c6d31", "#d9a93a"


def draw(results, limits, paths):
    """limits: the names of contenders that are limits. Raises ImportError if there is no
    matplotlib."""
    import matplotlib  # pylint: disable=import-outside-toplevel

    matplotlib.use("Agg")
    # Equal pictures give equal files, small enough for git.
    matplotlib.rcParams.update({"svg.hashsalt": "pccl", "svg.fonttype": "none"})
    from matplotlib import pyplot  # pylint: disable=import-outside-toplevel

    columns = min(2, len(results))
    rows = -(-len(results) // columns)
    height = PANEL[1] * rows + 3 * LEGEND_LINE
    figure, axes = pyplot.subplots(rows, columns, figsize=(PANEL[0] * columns, height),
                                   sharey=True, squeeze=False)
    styles = _styles(list(dict.fromkeys(name for of in results.values() for name in of)), limits)
    for axis in axes.flat[len(results):]:
        axis.set_visible(False)
    legend = {}
    for axis, (setting, of_setting) in zip(axes.flat, results.items()):
        _draw_setting(axis, setting, of_setting, styles)
        legend.update({label: line for line, label in zip(*axis.get_legend_handles_labels())})
    shown = [name for name in styles if name in legend]
    figure.legend([legend[name] for name in shown], shown, loc="lower center",
                  ncol=5 if columns > 1 else 3, fontsize=9, frameon=False)
    figure.tight_layout(rect=(0, (2 if columns > 1 else 4) * LEGEND_LINE / height, 1, 1))
    for path in paths:
        figure.savefig(path, dpi=110, metadata={"Date": None} if path.suffix == ".svg" else None)
    pyplot.close(figure)


def _styles(names, limits):
    """Makes this library's lines stand out, and draws limits dashed in other colours."""
    styles = {}
    for name in names:
        if name not in limits:
            styles[name] = {"color": f"C{len(styles)}", "marker": "o", "markersize": 3.5,
                            "linewidth": 1.3}
            if name.startswith("ours"):
                styles[name].update(linewidth=2.6, zorder=3)
    for number, name in enumerate(name for name in names if name in limits):
        styles[name] = {"color": LIMIT_COLOURS[number % len(LIMIT_COLOURS)], "linestyle": "--",
                        "linewidth": 1.3, "zorder": 1}
    return styles


def _draw_setting(axis, setting, results, styles):
    for name, of_size in results.items():
        points = [(size, report.bus_bandwidth(setting.peers, size, times))
                  for size, times in sorted(of_size.items())]
        if points:
            axis.plot(*zip(*points), label=name, **styles[name])
    axis.set(title=str(setting), ylabel="bus bandwidth", yscale="log")
    axis.set_xscale("log", base=2)
    axis.yaxis.set_major_formatter(_rate_text)
    axis.yaxis.set_tick_params(labelleft=True)  # in every panel
    ticks = report.sizes_of(results)
    axis.set_xticks(ticks, [report.size_text(t) for t in ticks], rotation=45, ha="right",
                    fontsize=8)
    axis.grid(True, which="major", alpha=0.3)


def _rate_text(value, _position):
    for unit, name in ((1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s")):
        if value >= unit:
            return f"{value / unit:.0f} {name}"
    return f"{value:.0f} B/s"
