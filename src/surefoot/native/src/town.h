/* Towns: one tick and what agents observe, for many towns per call. The numpy code in surefoot/town/sim (tick.py, observe.py)
 * is the definition; the names are its names. Sizes: B towns, A agents, O objects, T types, E relationships per agent. */
#ifndef SF_TOWN_H
#define SF_TOWN_H

#include <stddef.h>
#include <stdint.h>

enum { SF_WAIT, SF_NORTH, SF_EAST, SF_SOUTH, SF_WEST, SF_LEAVE, SF_CHAT, SF_USE };
enum { SF_IDLE, SF_AWAIT, SF_ON_TIME, SF_LATE, SF_ABSENT, SF_POST };
enum { SF_SURVIVAL, SF_NEED, SF_WAGE, SF_PUNCTUALITY, SF_SOCIAL, SF_AVOIDANCE, SF_TERMINAL, SF_PARTS };
/* OWN: features that every town has (observe.py). */
enum { SF_FAR = 30000, SF_REACH = 1, SF_WAY = 7, SF_OF_A_TYPE = 4, SF_OWN = 55 };

/* In the order of COUNTS in state.py. */
enum {
    SF_CONFLICTS, SF_INTENSITY, SF_SHARED_MEALS, SF_LATE_HELP, SF_TAKEOVERS, SF_CHAT_SUCCESS, SF_CHAT_FAILURE, SF_CHAT_QUALITY,
    SF_OUTAGES, SF_SHOWERS, SF_SLEEPS, SF_COOLDOWNS, SF_GHOST_STEPS, SF_ROTATIONS, SF_HANDOVERS, SF_USES, SF_WAITING, SF_UNSERVED,
    SF_AGENT_TICKS, SF_DEFICIT, SF_RIVALRY_MAX, SF_RIVALRY_AVOID, SF_WAGES, SF_SHIFT_TICKS, SF_PUNCTUAL_TICKS, SF_FAINTS,
    SF_EVICTIONS, SF_RETURN, SF_COUNTS
};

/* In the order of KINDS in events.py. */
enum {
    SF_E_USE_DONE, SF_E_SHARED_MEAL, SF_E_CONFLICT, SF_E_HANDOVER, SF_E_CHAT_SUCCESS, SF_E_CHAT_FAILURE, SF_E_LATE, SF_E_HELPED,
    SF_E_ABSENT, SF_E_LEFT_EARLY, SF_E_TOOK_SHIFT, SF_E_FAINT, SF_E_EVICTION
};

/* Numbers of a scenario, in the order of `_rules` in engine.py. */
typedef struct {
    double cooldown, ghost_step_after, age_weight, commit, guardrail;
    double conflict, rivalry_decay, avoid_threshold, eviction_threshold, chafe, chafe_distance, chat_cooldown;
    double grace, absent_cutoff, absence_slack, late_tick_penalty, absence_penalty, max_absent_shifts, daily_exits;
    double survival, wage, punctuality, commute, commute_ahead, chat, conflict_cost, waiting, avoidance, rivalry_cost, faint,
        eviction, clip, social;
    double faint_at, respawn_delay, ticks, ticks_per_day, width, height, shower, bed, works;
    double decay[3], need_cost[3], wanting[3];
} sf_town_rules;

/* Tables of a scenario (layout.py) and its sizes. */
typedef struct {
    int A, O, T, E, cells, day, events;
    const sf_town_rules *rules;
    const int32_t *step, *duration, *makes, *shift_elapsed, *shift_left, *shift_ahead;
    const int16_t *distance, *kind, *reach_row, *column, *row, *job_object, *job_number;
    const int64_t *nearest_row, *event_kind_of;
    const float *way, *way_to_types, *clock, *character;
    const double *effect, *cost, *factor, *wage, *late_fee, *event_factor;
    const uint8_t *takes, *is_meal, *power, *water, *has_job;
} sf_town;

/* The state (state.py) of B towns. */
typedef struct {
    int32_t *tick, *back_at, *age, *cell, *use_left, *ticket, *since, *ready_at, *tickets, *meals, *chat_at, *ate_at, *gone_for,
        *lateness, *absences, *shift_ticks, *present_ticks, *punctual_ticks, *event_left, *event_next, *exits;
    uint8_t *present, *last_ok;
    double *needs, *wallet, *ties, *withheld, *wages, *counts;
    int16_t *using_, *queued, *user, *last_user, *pushes, *tie_with;
    int8_t *shift, *last_action, *event, *event_kind;
} sf_town_state;

typedef struct {
    int32_t kind, town, actor, other, object, unused;
    double value;
} sf_town_event;

typedef struct {
    sf_town_event *list;
    size_t count, room;
    int failed; /* out of memory */
} sf_town_events;

/* numpy's bit generator (numpy/random/bitgen.h), as its capsule holds it. */
typedef struct {
    void *state;
    uint64_t (*next_uint64)(void *);
    uint32_t (*next_uint32)(void *);
    double (*next_double)(void *);
    uint64_t (*next_raw)(void *);
} sf_bitgen;

/* The result of a tick, [B, A] each, parts [B, A, SF_PARTS]. */
typedef struct {
    uint8_t *acted, *terminated;
    double *reward, *parts, *rivalry;
    int64_t *avoid;
} sf_town_outcome;

/* Advance every town by one tick, in place. Returns 0 if there is no memory for the work. */
int sf_town_tick(const sf_town *town, sf_town_state state, int B, const int64_t *action, const sf_bitgen *random,
                 sf_town_outcome out, sf_town_events *events);
/* Write features [B, A, F] and masks [B, A, SF_USE + T]; `mask` may be NULL. Returns 0 if there is no memory. */
int sf_town_view(const sf_town *town, sf_town_state state, int B, float *features, uint8_t *mask);

/* What both parts need, of the town whose arrays begin at the pointers of `s`. */
void sf_town_at(const sf_town *town, sf_town_state *s, const sf_town_state *all, int b);
double sf_town_price(const sf_town *town, const sf_town_state *s);
int sf_town_usable(const sf_town *town, const sf_town_state *s, int kind);
int sf_town_on_duty(const sf_town *town, const sf_town_state *s, int agent);
int sf_town_apart(const sf_town *town, const sf_town_state *s, int one, int other);
int sf_town_nearest(const sf_town *town, const sf_town_state *s, int agent, int *apart, int *around);

#endif
