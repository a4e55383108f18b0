"""`python -m tests.simulation.known_seeds`: finds the seeds that show each mutation soonest.

It writes them into `mutations.py`, so that the test of the mutations stays quick.
"""

import re
import sys
from pathlib import Path

from tests.simulation.mutations import MUTATIONS
from tests.simulation.test_mutations import Forge

MUTATIONS_FILE = Path(__file__).with_name("mutations.py")


def main(chosen: list[str]) -> None:
    forge = Forge(seeds=3_000)
    text = MUTATIONS_FILE.read_text()
    for mutation in MUTATIONS:
        if chosen and not any(part in mutation.name for part in chosen):
            continue
        report = forge.try_out(mutation)
        told = str(report["broken"])
        is_right = bool(told) and mutation.promise in told
        print(
            f"{'  ' if is_right else '!!'} {mutation.name}: {report['seed']} {told[:160]}",
            flush=True,
        )
        if is_right:
            text = _with_seed(text, mutation.name, int(report["seed"]))
            MUTATIONS_FILE.write_text(text)
    forge.close()


def _with_seed(text: str, name: str, seed: int) -> str:
    begin = text.index(f'        "{name}",\n')
    end = text.index("\n    ),\n", begin)
    one = re.sub(r"\n        seeds=\([^)]*\),", "", text[begin:end])
    return text[:begin] + one + f"\n        seeds=({seed},)," + text[end:]


if __name__ == "__main__":
    main(sys.argv[1:])
