"""The table of all pages."""

from fairwarning.portal.app import Page
from fairwarning.portal.pages import (
    events,
    fleet,
    history,
    instance,
    overview,
    plan,
    rehearse,
    rollouts,
    scale_sets,
    search,
    settings,
)

PAGES: tuple[Page, ...] = (
    *overview.PAGES,
    *events.PAGES,
    *fleet.PAGES,
    *instance.PAGES,
    *scale_sets.PAGES,
    *plan.PAGES,
    *rollouts.PAGES,
    *rehearse.PAGES,
    *history.PAGES,
    *search.PAGES,
    *settings.PAGES,
)
