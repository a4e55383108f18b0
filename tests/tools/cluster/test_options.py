"""The command line of the suite that runs a cluster under faults."""

import pytest

from tools.cluster.options import parse
from tools.cluster.variants import VARIANTS, fault_names


def test_without_options_all_faults_of_all_variants_come() -> None:
    options = parse([])
    assert options.only == fault_names()
    assert options.variants == [each.name for each in VARIANTS]
    assert options.seed.isdigit()


def test_faults_and_variants_are_chosen_by_name() -> None:
    options = parse(["--only", "kill,blackhole", "--variants", "patroni", "--for", "2h"])
    assert options.only == ["kill", "blackhole"]
    assert options.variants == ["patroni"]
    assert options.load_s == 7200


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--only", "kil"], "no fault is called kil; there are kill,"),
        (["--variants", "mysql"], "no variant is called mysql; there are plain, pgbouncer"),
        (["--for", "soon"], "'soon' is no duration such as 90s or 10m"),
        (["--for", "0s"], "'0s' is no duration such as 90s or 10m"),
        (["--only", "kill", "--variants", "plain,patroni", "--round", "x"], "'x' is no duration"),
    ],
)
def test_a_wrong_option_is_answered_with_what_there_is(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(arguments)
    assert ended.value.code == 2
    assert words in capsys.readouterr().err


def test_the_shares_of_the_variants_are_the_whole_time() -> None:
    assert sum(each.share for each in VARIANTS) == pytest.approx(1)
