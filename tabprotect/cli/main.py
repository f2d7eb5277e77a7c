"""The ``tabprotect`` command: one file per subcommand, imported only when it is called."""

from __future__ import annotations

import importlib
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

# subcommand -> (module with a typer ``app``, one-line help)
COMMANDS: dict[str, tuple[str, str]] = {
    "demo": ("tabprotect.cli.demo", "Protect the built-in example, attack it and write the report."),
    "protect": ("tabprotect.cli.protect", "Suppress cells so that no sensitive cell can be inferred."),
    "attack": ("tabprotect.cli.attack", "Exact bounds of the hidden cells of any published table."),
    "verify": ("tabprotect.cli.verify", "Check a certificate with exact arithmetic and no solver."),
    "round": ("tabprotect.cli.round", "Controlled, nearest, 50/50 or unbiased rounding of a table."),
    "adjust": ("tabprotect.cli.adjust", "Controlled tabular adjustment."),
    "compare": ("tabprotect.cli.compare", "Suppression, rounding and adjustment of one table side by side."),
    "tabulate": ("tabprotect.cli.tabulate", "Make a table with contributor information from microdata."),
    "risk": ("tabprotect.cli.risk", "Disclosure risk of a microdata file."),
    "dp": ("tabprotect.cli.dp", "Differentially private counts and tests on them."),
    "substitute": ("tabprotect.cli.substitute", "Random substitution and reconstruction."),
    "solve": ("tabprotect.cli.solve", "Solver back end: JJ file in, JJ file out."),
    "bench": ("tabprotect.cli.bench", "Benchmarks on standard instances."),
    "reproduce": ("tabprotect.cli.reproduce", "Recompute the tables and figures of the five source documents."),
}


class LazyGroup(TyperGroup):
    """A command group whose members are imported when asked for, so that ``--help`` stays fast."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A stand-in with name and help line, enough for ``--help``."""
        if cmd_name not in COMMANDS:
            return None
        return TyperCommand(cmd_name, help=COMMANDS[cmd_name][1], short_help=COMMANDS[cmd_name][1])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The real command, imported now that it is called."""
        if args and args[0] in COMMANDS:
            command = typer.main.get_command(importlib.import_module(COMMANDS[args[0]][0]).app)
            command.name = args[0]
            return args[0], command, args[1:]
        return super().resolve_command(ctx, args)


app = typer.Typer(
    cls=LazyGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # its tracebacks can show local variables, and those hold confidential values
    add_completion=False,
    help="Protect published tables, prove that they are protected, and do it fast.",
)


@app.callback(invoke_without_command=True)
def root(version: bool = typer.Option(False, "--version", help="Print the version and stop.")) -> None:
    if version:
        from tabprotect import __version__

        typer.echo(f"tabprotect {__version__}")
        raise typer.Exit


def run() -> None:
    """Entry point of the console script: errors become one line and an exit code (1 unsafe or infeasible, 2 bad input)."""
    from tabprotect.cli.common import exit_code

    with exit_code():
        app()
