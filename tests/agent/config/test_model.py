"""What is shown of an action."""

from fairwarning.agent.config.model import Action, Http


def test_the_secrets_of_an_address_are_not_shown() -> None:
    hook = Action(settings=Http(url="https://me:word@hooks.example/services/T0/key?token=abc"))
    assert hook.title == "http POST https://…@hooks.example/…"
