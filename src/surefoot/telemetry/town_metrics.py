"""Names of the numbers that trainings of towns add to an update, by subject."""

from __future__ import annotations

CONFLICT = (
    "conflict.rivalry_max_mean_avg",
    "conflict.rivalry_max_max_avg",
    "conflict.rivalry_avoid_count_mean_avg",
    "conflict.rivalry_avoid_count_max_avg",
)
SOCIAL = (
    "shared_meal_events",
    "late_help_events",
    "shift_takeover_events",
    "chat_success_events",
    "chat_failure_events",
    "chat_quality_mean",
    "utility_outage_events",
    "shower_complete_events",
    "sleep_complete_events",
)
ANNEAL_NUMBERS = (
    "anneal_cycle",
    "anneal_bc_accuracy",
    "anneal_bc_threshold",
    "anneal_loss_baseline",
    "anneal_queue_baseline",
    "anneal_intensity_baseline",
)
ANNEAL_FLAGS = ("anneal_bc_passed", "anneal_loss_flag", "anneal_queue_flag", "anneal_intensity_flag")
