"""Python 2's print statements are read as calls; every line stays where it was."""

import pytest

from tools.seeds.python2 import with_print_calls


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('print "a" + b\n', 'print( "a" + b)\n'),
        ("if x:\n   print x # why\n", "if x:\n   print( x) # why\n"),
        ("# first\nprint\n", "# first\nprint()\n"),
        ('print "a", \\\n  "b"\nprint 1\n', 'print( "a", \\\n  "b")\nprint( 1)\n'),
        ('print("call")\n', 'print("call")\n'),
        ('s = "print x"\nprinted = 1\n', 's = "print x"\nprinted = 1\n'),
    ],
)
def test_print_statements_become_calls(source: str, expected: str) -> None:
    assert with_print_calls(source) == expected
    compile(expected, "sample", "exec")
