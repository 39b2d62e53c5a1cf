"""Several loads of one step as one account. Pure."""

from collections import Counter
from collections.abc import Sequence

from loadtest.e2e.account import Account


def together(accounts: Sequence[Account]) -> Account:
    """Sums; of what is a maximum, the largest. Admissions are those of the whole site, so the largest, too."""
    closes: Counter[int] = Counter()
    wrong: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    for one in accounts:
        closes.update(one.closes)
        wrong.update(one.wrong)
        counts.update(one.counts)
    return Account(
        streams=sum(one.streams for one in accounts),
        published=sum(one.published for one in accounts),
        lost=sum(one.lost for one in accounts),
        repeated=sum(one.repeated for one in accounts),
        reordered=sum(one.reordered for one in accounts),
        abnormal_closes=sum(one.abnormal_closes for one in accounts),
        admitted_over_budget=max((one.admitted_over_budget for one in accounts), default=0),
        seconds=max((one.seconds for one in accounts), default=0.0),
        most_admitted=max((one.most_admitted for one in accounts), default=0),
        closes=dict(closes),
        wrong=dict(wrong),
        counts=dict(counts),
        longest_away_seconds=max((one.longest_away_seconds for one in accounts), default=0.0),
        problems=[problem for one in accounts for problem in one.problems],
    )


__all__ = ["together"]
