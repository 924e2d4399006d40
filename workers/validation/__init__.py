"""Checks of an uploaded adapter: pure of Django, torch and pickle; run by workers and in front of a pipeline."""

from workers.validation.limits import DeclaredFile, Limits
from workers.validation.pipeline import check_folder
from workers.validation.report import POLICY_VERSION, Check, Facts, FileFact, Outcome, Report, Verdict

__all__ = [
    "POLICY_VERSION",
    "Check",
    "DeclaredFile",
    "Facts",
    "FileFact",
    "Limits",
    "Outcome",
    "Report",
    "Verdict",
    "check_folder",
]
