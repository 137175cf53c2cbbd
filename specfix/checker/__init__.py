"""The rule engine: what a rule is, finding rules, their order, running them. Knows no particular rule."""

from specfix.checker.finding import Change, Confidence, Finding, Phase, Repair, Severity
from specfix.checker.rule import Rule, rule
from specfix.deployment import Location

__all__ = ["Change", "Confidence", "Finding", "Location", "Phase", "Repair", "Rule", "Severity", "rule"]
