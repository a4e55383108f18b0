"""`python -m fairwarning.simulation` runs many worlds and shows the smallest one that fails."""

import sys
import time
from collections import Counter

import click

from fairwarning.simulation.run import Outcome, run_seed, shrink
from fairwarning.simulation.stores import StorePlace


@click.command(
    epilog="Examples: `python -m fairwarning.simulation --seeds 1000`; the same with `--seed 42`; "
    "`python -m fairwarning.simulation --store sqlite --seeds 50`"
)
@click.option(
    "--seeds",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="How many seeds to run.",
)
@click.option("--first", default=0, show_default=True, help="The first seed to run.")
@click.option("--seed", type=int, help="Run only this seed, and print its trace.")
@click.option(
    "--store",
    default="memory",
    show_default=True,
    metavar="KIND",
    help="The store of each world: memory, sqlite (a new file for each world), or "
    "postgresql://… (a new schema for each world, in a database that exists).",
)
def main(seeds: int, first: int, seed: int | None, store: str) -> None:
    """Run the engine through simulated disasters and check every promise after every step.

    At the first broken promise it prints the seed with a minimal trace, and exits with 1.
    """
    place = _place(store)
    chosen = range(first, first + seeds) if seed is None else range(seed, seed + 1)
    happened: Counter[str] = Counter()
    began = time.monotonic()
    for number, each in enumerate(chosen, 1):
        outcome = run_seed(each, place)
        if outcome.broken is not None:
            _tell(outcome, place)
            sys.exit(1)
        happened += outcome.happened
        if seed is not None:
            click.echo("\n".join(outcome.trace))
        if sys.stderr.isatty():
            click.echo(f"\r{number}/{len(chosen)} seeds", nl=False, err=True)
    took_s = time.monotonic() - began
    click.echo(f"{len(chosen)} seeds, every promise kept, {took_s:.1f} s")
    for what, count in sorted(happened.items()):
        click.echo(f"  {count:>8} {what}")


def _place(store: str) -> StorePlace:
    if store not in ("memory", "sqlite") and not store.startswith(("postgresql://", "postgres://")):
        raise click.BadParameter(
            f"{store!r} is no kind of store; use memory, sqlite or postgresql://USER@HOST/DATABASE",
            param_hint="'--store'",
        )
    return StorePlace(store)


def _tell(outcome: Outcome, place: StorePlace) -> None:
    click.echo(f"seed {outcome.seed} breaks a promise: {outcome.broken}")
    click.echo("shrinking …", err=True)
    small = shrink(outcome, place)
    click.echo(f"minimal trace, {len(small.steps)} of {len(outcome.steps)} steps:")
    click.echo("\n".join(small.trace))
    click.echo(small.broken)


if __name__ == "__main__":
    main()
