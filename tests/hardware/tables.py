# SPDX-License-Identifier: Apache-2.0
"""tables.py - what the checks measured, as comments of the test protocol and as
Markdown for docs/hardware.md."""

_tables = []


def show(title, columns, rows, note=""):
    """Prints a table, and keeps it for write_markdown()."""
    rows = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(columns, *rows)]
    print(f"# {title}")
    for row in [columns, *rows]:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths))
        print(f"#   {line.rstrip()}")
    if note:
        print(f"#   {note}")
    print(end="", flush=True)
    _tables.append((title, columns, rows, note))


def write_markdown(path, heading):
    with open(path, "w", encoding="utf-8") as out:
        out.write(f"# {heading}\n")
        for title, columns, rows, note in _tables:
            out.write(f"\n## {title}\n")
            for row in [columns, ["---"] * len(columns), *rows]:
                out.write("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |\n")
            if note:
                out.write(f"\n{note}\n")
