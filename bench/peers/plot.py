# SPDX-License-Identifier: MIT
"""Bus bandwidth over size, one picture of all settings (matplotlib)."""

from . import report


def draw(results, limits, paths):
    """limits: names of those that are no libraries. ImportError where there is no matplotlib."""
    import matplotlib  # pylint: disable=import-outside-toplevel

    matplotlib.use("Agg")
    # The same picture is the same file, of a size to be kept in git.
    matplotlib.rcParams.update({"svg.hashsalt": "pccl", "svg.fonttype": "none"})
    from matplotlib import pyplot  # pylint: disable=import-outside-toplevel

    columns = min(2, len(results))
    rows = -(-len(results) // columns)
    figure, axes = pyplot.subplots(rows, columns, figsize=(6.4 * columns, 4.2 * rows),
                                   squeeze=False)
    names = list(dict.fromkeys(name for of in results.values() for name in of))
    styles = {name: _style(k, name, name in limits) for k, name in enumerate(names)}
    for axis in axes.flat[len(results):]:
        axis.set_visible(False)
    legend = {}
    for axis, (setting, of_setting) in zip(axes.flat, results.items()):
        _draw_setting(axis, setting, of_setting, styles)
        legend.update({label: line for line, label in zip(*axis.get_legend_handles_labels())})
    figure.legend(legend.values(), legend.keys(), loc="lower center", ncol=5, fontsize=8,
                  frameon=False)
    figure.tight_layout(rect=(0, 0.4 / (4.2 * rows), 1, 1))
    for path in paths:
        figure.savefig(path, dpi=110, metadata={"Date": None} if path.suffix == ".svg" else None)
    pyplot.close(figure)


def _style(number, name, is_limit):
    return {"label": name, "color": f"C{number}", "linestyle": "--" if is_limit else "-",
            "linewidth": 2.2 if name.startswith("ours") else 1.2,
            "marker": "." if is_limit else "o", "markersize": 3}


def _draw_setting(axis, setting, results, styles):
    for name, of_size in results.items():
        points = [(size, report.bus_bandwidth(setting.peers, size, times) / 1e9)
                  for size, times in sorted(of_size.items())]
        if points:
            axis.plot(*zip(*points), **styles[name])
    axis.set(title=str(setting), ylabel="busbw, GB/s", yscale="log")
    axis.set_xscale("log", base=2)
    ticks = report.sizes_of(results)
    axis.set_xticks(ticks, [report.size_text(t) for t in ticks], rotation=45, ha="right",
                    fontsize=7)
    axis.grid(True, which="major", alpha=0.3)
