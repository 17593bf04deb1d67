"""How often something may be asked: counts of requests by minute and month, held against limits, in one transaction.

The counts lie in the control database, which every web process shares: a tenant's store and its writer are not touched.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil

from django.db import DatabaseError, transaction

from tenants.models import RequestCount

MINUTE, MONTH = RequestCount.Period.MINUTE, RequestCount.Period.MONTH
MINUTE_SECONDS = 60
# Counts of other minutes than these are of no use; those that lie ahead were made by a clock that was set back since.
KEPT_AROUND = timedelta(minutes=2)


class LimitReached(Exception):
    """So many requests were made in a minute, or in a calendar month, that this one is refused."""

    def __init__(self, limit: "Limit", standing: "Standing"):
        requests = f"{limit.most:,} request{'' if limit.most == 1 else 's'} a {limit.period}"
        super().__init__(f"{limit.what} may make {requests}. {_advice(limit, standing)}")
        self.limit, self.standing = limit, standing


class LimitsUnavailable(Exception):
    """The counts cannot be read or written for now. Nobody is let in unseen."""

    def __init__(self):
        super().__init__("Requests cannot be counted for now, so none is answered. Try again in a moment.")


@dataclass(frozen=True)
class Limit:
    """At most so many requests of a subject in a period."""

    subject: str  # whose requests are counted, such as "key:7"
    what: str  # the same in words, to begin a sentence with
    most: int
    period: str = MINUTE


@dataclass(frozen=True)
class Standing:
    """How far a limit is used, this request included."""

    most: int
    remaining: int
    reset_seconds: float  # until nothing of it is used any more
    retry_seconds: float  # until one more request is let in; 0 while there is room


def admit(limits: Sequence[Limit], now: datetime) -> Standing | None:
    """Count one request under all of the limits, or under none of them; returns the minute's tightest standing.

    Raises LimitReached, which counts nothing: who goes on asking too often gets in as often as allowed. Raises
    LimitsUnavailable.
    """
    if not limits:
        return None
    try:
        with transaction.atomic():  # noqa: TID251  the counts lie in the control database
            counts = _counts(limits, now)
            standings = [_standing(limit, counts, now) for limit in limits]
            for limit, standing in zip(limits, standings, strict=True):
                if standing.remaining < 0:
                    raise LimitReached(limit, standing)
            _add_one(limits, counts, now)
    except DatabaseError as error:
        raise LimitsUnavailable from error
    minutes = [each for limit, each in zip(limits, standings, strict=True) if limit.period == MINUTE]
    return min(minutes, key=lambda each: each.remaining, default=None)


def used_this_month(subject: str, now: datetime) -> int:
    """Return how many requests of the subject were let in since the month began."""
    counts = RequestCount.objects.filter(subject=subject, period=MONTH, starts_at=_start(MONTH, now))
    return counts.values_list("count", flat=True).first() or 0


def _counts(limits: Sequence[Limit], now: datetime) -> dict[tuple[str, str, datetime], int]:
    minute = _start(MINUTE, now)
    starts = (minute, minute - timedelta(minutes=1), _start(MONTH, now))
    rows = RequestCount.objects.filter(subject__in={limit.subject for limit in limits}, starts_at__in=starts)
    return {(row.subject, row.period, row.starts_at): row.count for row in rows}


def _standing(limit: Limit, counts: dict, now: datetime) -> Standing:
    start = _start(limit.period, now)
    current = counts.get((limit.subject, limit.period, start), 0)
    if limit.period == MONTH:
        until_end = (_next_month(start) - now).total_seconds()
        remaining = limit.most - current - 1
        return Standing(limit.most, remaining, until_end, until_end if remaining < 0 else 0)
    # A window that slides: of the minute before, as much counts as still lies within the last sixty seconds.
    earlier = counts.get((limit.subject, MINUTE, start - timedelta(minutes=1)), 0)
    passed = (now - start).total_seconds()
    used = earlier * (1 - passed / MINUTE_SECONDS) + current
    remaining = int(limit.most - used - 1) if used + 1 <= limit.most else -1
    retry = _seconds_until_room(limit.most, earlier, current, passed) if remaining < 0 else 0
    return Standing(limit.most, remaining, MINUTE_SECONDS - passed + MINUTE_SECONDS, retry)


def _seconds_until_room(most: int, earlier: int, current: int, passed: float) -> float:
    """Return when one more fits: as the minute before slides out, or else as this one does after its end."""
    if current + 1 <= most:
        return MINUTE_SECONDS * (1 - (most - 1 - current) / earlier) - passed
    return MINUTE_SECONDS - passed + MINUTE_SECONDS * (1 - (most - 1) / current)


def _add_one(limits: Sequence[Limit], counts: dict, now: datetime) -> None:
    wanted = {(limit.subject, limit.period, _start(limit.period, now)) for limit in limits}
    if not RequestCount.objects.filter(period=MINUTE, starts_at=_start(MINUTE, now)).exists():
        _forget_other_minutes(now)
    rows = [
        RequestCount(subject=key[0], period=key[1], starts_at=key[2], count=counts.get(key, 0) + 1) for key in wanted
    ]
    RequestCount.objects.bulk_create(
        rows, update_conflicts=True, unique_fields=["period", "starts_at", "subject"], update_fields=["count"]
    )


def _forget_other_minutes(now: datetime) -> None:
    around = (now - KEPT_AROUND, now + KEPT_AROUND)
    RequestCount.objects.filter(period=MINUTE).exclude(starts_at__range=around).delete()


def _start(period: str, now: datetime) -> datetime:
    minute = now.replace(second=0, microsecond=0)
    return minute if period == MINUTE else minute.replace(day=1, hour=0, minute=0)


def _next_month(start: datetime) -> datetime:
    return (start + timedelta(days=32)).replace(day=1)


def _advice(limit: Limit, standing: Standing) -> str:
    if limit.period == MONTH:
        return "They are used up until the month ends."
    return f"Try again in {ceil(standing.retry_seconds)} s."
