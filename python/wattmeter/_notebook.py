# SPDX-License-Identifier: Apache-2.0
"""What notebooks have: texts as HTML, %wattmeter and %%wattmeter."""

from __future__ import annotations

from html import escape

from wattmeter._results.listing import MOST_LINES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def as_html(text: str) -> str:
    """Its first lines; the others unfold."""
    lines = text.splitlines()
    if len(lines) <= MOST_LINES:
        return f"<pre>{escape(text)}</pre>"
    shown, more = lines[: MOST_LINES - 1], lines[MOST_LINES - 1 :]
    return (
        f"<pre>{escape(chr(10).join(shown))}</pre><details><summary>{len(more)} lines "
        f"more</summary><pre>{escape(chr(10).join(more))}</pre></details>"
    )


def _parser() -> Any:
    """The parser of %%wattmeter, which raises where argparse would end the program."""
    import argparse

    from IPython.core.error import UsageError

    class Parser(argparse.ArgumentParser):
        def error(self, message: str) -> Any:
            raise UsageError(f"{message}\n{self.format_usage()}".rstrip())

    parser = Parser(prog="%%wattmeter", add_help=False)
    parser.add_argument("-i", "--interval", type=float, default=0.1, metavar="SECONDS")
    parser.add_argument("-r", "--record", metavar="FILE")
    parser.add_argument("--overwrite", action="store_true")
    parser.add_argument("--gpu", metavar="GPUS")
    parser.add_argument("-o", "--output", metavar="NAME")
    return parser


def _run_cell(shell: Any, cell: str) -> Any:
    """Its result. What it raises is shown by whom it is raised to, once."""
    shell._showtraceback = lambda *_: None
    try:
        return shell.run_cell(cell)
    finally:
        del shell._showtraceback


def load(shell: Any) -> None:
    """Gives the shell %%wattmeter and %wattmeter, which show what a cell or a statement
    costs."""

    def wattmeter(line: str, cell: str | None = None) -> None:
        """Shows what the cell, or the statement on the line, costs.

        %%wattmeter [-i SECONDS] [-r FILE [--overwrite]] [--gpu GPUS] [-o NAME]
        %wattmeter STATEMENT

        NAME is a variable that gets the report. What the cell raises is shown, and ends a
        notebook that is run as a whole, after the report.
        """
        import shlex

        from IPython.core.error import UsageError
        from IPython.display import display
        from wattmeter import track

        if cell is None:
            line, cell = "", line
            if not cell.strip():
                raise UsageError("%wattmeter needs a statement, as in %wattmeter f()")
        if shell.should_run_async(cell, transformed_cell=shell.transform_cell(cell)):
            raise UsageError(
                "a cell with an await of its own cannot have %%wattmeter: put "
                "'with wattmeter.track() as t:' around it, and t.report on the last line"
            )
        try:
            words = shlex.split(line)
        except ValueError as error:
            raise UsageError(f"{line}: {error}") from None
        options = _parser().parse_args(words)
        mode = "overwrite" if options.overwrite else "new"
        with track(
            options.record, mode=mode, interval=options.interval, gpus=options.gpu
        ) as tracking:
            result = _run_cell(shell, cell)
        if options.output:
            shell.user_ns[options.output] = tracking.report
        display(tracking.report)
        # Otherwise a notebook that is run as a whole would go on after it.
        result.raise_error()

    shell.register_magic_function(wattmeter, "line_cell", "wattmeter")
