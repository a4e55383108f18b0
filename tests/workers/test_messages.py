"""What goes wrong in the engine's process is told to workers as it was."""

import pytest

from fairwarning.core.refusals import Code, Refused
from fairwarning.engine.protocols import SchemaTooNew, StoreDown
from fairwarning.workers.messages import Frame, Kind, failure, raised_by


@pytest.mark.parametrize(
    "error",
    [Refused(Code.UNKNOWN_SCOPE, "no such scope"), StoreDown("away"), SchemaTooNew("too old")],
)
def test_an_error_arrives_as_what_it_was(error: Exception) -> None:
    arrived = raised_by(failure(Frame(Kind.CALL, "submit", 7), error))
    assert type(arrived) is type(error)
    assert str(arrived) == str(error)
