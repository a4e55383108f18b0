"""`python -m fairwarning.sim`: as many worlds as you like, and the smallest one that fails."""

import sys
import time
from collections import Counter

import click

from fairwarning.sim.run import Outcome, run_seed, shrink


@click.command(
    epilog="Examples: `python -m fairwarning.sim --seeds 1000`; the same with `--seed 42`"
)
@click.option(
    "--seeds",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="How many seeds to run.",
)
@click.option("--first", default=0, show_default=True, help="The first of them.")
@click.option("--seed", type=int, help="Run this one only, and print its trace.")
def main(seeds: int, first: int, seed: int | None) -> None:
    """Run the engine through simulated disasters and check every promise after every step.

    Exits with 1 at the first broken promise and prints its seed with a minimal trace.
    """
    chosen = range(first, first + seeds) if seed is None else range(seed, seed + 1)
    happened: Counter[str] = Counter()
    began = time.monotonic()
    for number, each in enumerate(chosen, 1):
        outcome = run_seed(each)
        if outcome.broken is not None:
            _tell(outcome)
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


def _tell(outcome: Outcome) -> None:
    click.echo(f"seed {outcome.seed} breaks a promise: {outcome.broken}")
    click.echo("shrinking …", err=True)
    small = shrink(outcome)
    click.echo(f"minimal trace, {len(small.steps)} of {len(outcome.steps)} steps:")
    click.echo("\n".join(small.trace))
    click.echo(small.broken)


if __name__ == "__main__":
    main()
