/* What agents observe and may do (town/sim/observe.py), and lookups that the tick needs too. */
#include "town.h"
#include <stdlib.h>
#include <string.h>

void sf_town_at(const sf_town *t, sf_town_state *s, const sf_town_state *all, int b) {
    const size_t n = (size_t)b, na = n * t->A, no = n * t->O, nae = na * t->E;
#define AT(member, offset) s->member = all->member + (offset)
    AT(tick, n), AT(meals, n), AT(event, n), AT(event_left, n), AT(event_next, n), AT(event_kind, n), AT(exits, n);
    AT(present, na), AT(back_at, na), AT(age, na), AT(cell, na), AT(needs, 3 * na), AT(wallet, na), AT(using_, na);
    AT(use_left, na), AT(queued, na), AT(ticket, na), AT(since, na), AT(ready_at, na * t->O), AT(chat_at, na), AT(ate_at, na);
    AT(shift, na), AT(gone_for, na), AT(lateness, na), AT(absences, na), AT(withheld, na), AT(wages, na), AT(shift_ticks, na);
    AT(present_ticks, na), AT(punctual_ticks, na), AT(last_action, na), AT(last_ok, na), AT(tie_with, nae), AT(ties, 3 * nae);
    AT(user, no), AT(last_user, no), AT(pushes, no), AT(tickets, no), AT(counts, n * SF_COUNTS);
#undef AT
}

double sf_town_price(const sf_town *t, const sf_town_state *s) {
    return *s->event >= 0 && t->event_kind_of[*s->event] == 0 ? t->event_factor[*s->event] : 1.0;
}

/* Whether a type has the power and water it needs. Events: 0 price spike, 1 blackout, 2 outage. */
int sf_town_usable(const sf_town *t, const sf_town_state *s, int kind) {
    const int64_t event = *s->event >= 0 ? t->event_kind_of[*s->event] : -1;
    return !(event == 1 && t->power[kind]) && !(event == 2 && t->water[kind]);
}

int sf_town_on_duty(const sf_town *t, const sf_town_state *s, int a) {
    const int elapsed = t->shift_elapsed[(size_t)(*s->tick % t->day) * t->A + a];
    return elapsed >= 0 && elapsed <= *s->tick && s->present[a];
}

int sf_town_apart(const sf_town *t, const sf_town_state *s, int one, int other) {
    const int a = s->cell[one], b = s->cell[other];
    return abs(t->column[a] - t->column[b]) + abs(t->row[a] - t->row[b]);
}

/* The nearest other agent in town, -1 for none, its distance, and how many are within five tiles. */
int sf_town_nearest(const sf_town *t, const sf_town_state *s, int a, int *apart, int *around) {
    int nearest = -1;
    *apart = SF_FAR;
    *around = 0;
    for (int b = 0; b < t->A; b++) {
        if (b == a || !s->present[b]) continue;
        const int far = sf_town_apart(t, s, a, b);
        *around += far <= 5;
        if (far < *apart) {
            *apart = far;
            nearest = b;
        }
    }
    return nearest;
}

/* In the order of OWN in observe.py. */
enum {
    F_HUNGER, F_HYGIENE, F_ENERGY, F_WALLET, F_LATENESS, F_ON_SHIFT, F_TIME_SIN, F_TIME_COS, F_ATTENDANCE, F_WITHHELD, F_PRE,
    F_ON_TIME, F_LATE, F_ABSENT, F_POST, F_SLOT, F_RESET, F_PROGRESS, F_RIVALRY_MAX, F_RIVALRY_AVOID, F_TRUST_MEAN, F_TRUST_MAX,
    F_RIVALRY_MEAN, F_FAMILIARITY_MAX, F_RIVAL_DX, F_RIVAL_DY, F_RIVAL_DISTANCE, F_NEAR_DX, F_NEAR_DY, F_NEAR_DISTANCE,
    F_NEIGHBOURS, F_CHAT_READY, F_LAST_ACTION, F_LAST_OK, F_USING, F_USE_LEFT, F_IN_QUEUE, F_WAITED, F_CHARACTER,
    F_POWER = F_CHARACTER + 3, F_WATER, F_PRICE, F_MEALS, F_STARTS_IN, F_ENDS_IN, F_AT_WORK, F_JOB
};
_Static_assert(F_JOB + SF_WAY == SF_OWN, "the features of observe.py");

static double least(double x, double y) { return x < y ? x : y; }
static double most(double x, double y) { return x > y ? x : y; }

static void social(const sf_town *t, const sf_town_state *s, int a, int nearest, int apart, int around, float *out) {
    const double scale = 1.0 / (t->rules->width + t->rules->height);
    const int cell = s->cell[a];
    if (nearest >= 0) {
        out[F_NEAR_DX] = (float)((t->column[s->cell[nearest]] - t->column[cell]) * (1.0 / t->rules->width));
        out[F_NEAR_DY] = (float)((t->row[s->cell[nearest]] - t->row[cell]) * (1.0 / t->rules->height));
    }
    out[F_NEAR_DISTANCE] = (float)least(apart * scale, 1.0);
    out[F_NEIGHBOURS] = (float)((double)around / (t->A > 2 ? t->A - 1 : 1));
    out[F_RIVAL_DISTANCE] = 1.0f;
    const double *ties = s->ties + (size_t)a * t->E * 3;
    const double threshold = most(t->rules->avoid_threshold, 1e-9);
    double sum[3] = {0.0, 0.0, 0.0}, peak[3] = {ties[0], ties[1], ties[2]};
    int rival = 0, avoid = 0;
    for (int e = 0; e < t->E; e++, ties += 3) {
        avoid += ties[2] >= threshold;
        if (ties[2] > peak[2]) rival = e;
        for (int k = 0; k < 3; k++) {
            sum[k] += ties[k];
            peak[k] = most(peak[k], ties[k]);
        }
    }
    out[F_RIVALRY_MAX] = (float)peak[2];
    out[F_RIVALRY_AVOID] = (float)avoid;
    out[F_TRUST_MEAN] = (float)(sum[0] / t->E);
    out[F_TRUST_MAX] = (float)peak[0];
    out[F_RIVALRY_MEAN] = (float)(sum[2] / t->E);
    out[F_FAMILIARITY_MAX] = (float)peak[1];
    const int who = s->tie_with[a * t->E + rival];
    if (peak[2] > 0.0 && who >= 0) {
        const int dx = t->column[s->cell[who]] - t->column[cell], dy = t->row[s->cell[who]] - t->row[cell];
        out[F_RIVAL_DX] = (float)(dx / t->rules->width);
        out[F_RIVAL_DY] = (float)(dy / t->rules->height);
        out[F_RIVAL_DISTANCE] = (float)least((abs(dx) + abs(dy)) * scale, 1.0);
    }
}

static void job(const sf_town *t, const sf_town_state *s, int a, float *out) {
    const size_t now = (size_t)(*s->tick % t->day) * t->A + a;
    const int has = t->has_job[a], duty = sf_town_on_duty(t, s, a), shift = s->shift[a];
    const size_t way = (size_t)t->job_object[a] * t->cells + s->cell[a];
    out[F_LATENESS] = (float)(least(s->lateness[a], 10) * 0.1);
    out[F_ON_SHIFT] = (float)duty;
    out[F_ATTENDANCE] = (float)((double)s->present_ticks[a] / most(s->shift_ticks[a], 1));
    out[F_WITHHELD] = (float)(least(s->withheld[a], 2.0) * 0.5);
    if (has) out[shift <= SF_AWAIT ? F_PRE : F_ON_TIME + shift - SF_ON_TIME] = 1.0f;
    out[F_STARTS_IN] = has && !duty ? (float)(least(t->shift_ahead[now], 50) * 0.02) : 0.0f;
    out[F_ENDS_IN] = duty ? (float)(t->shift_left[now] * (1.0 / t->day)) : 0.0f;
    out[F_AT_WORK] = has && t->distance[way] <= 1;
    memcpy(out + F_JOB, t->way + way * SF_WAY, SF_WAY * sizeof *out);
}

static void own(const sf_town *t, const sf_town_state *s, int a, float *out) {
    for (int k = 0; k < 3; k++) {
        out[F_HUNGER + k] = (float)s->needs[3 * a + k];
        out[F_CHARACTER + k] = t->character[3 * a + k];
    }
    memcpy(out + F_TIME_SIN, t->clock + 2 * (*s->tick % t->day), 2 * sizeof *out);
    out[F_WALLET] = (float)(least(s->wallet[a], 5.0) * 0.2);
    out[F_SLOT] = (float)((double)a / (t->A > 2 ? t->A - 1 : 1));
    out[F_RESET] = s->age[a] == 0;
    out[F_PROGRESS] = (float)(*s->tick / t->rules->ticks);
    out[F_CHAT_READY] = s->chat_at[a] <= *s->tick;
    out[F_LAST_ACTION] = (float)(s->last_action[a] * (1.0 / (SF_USE + t->T)));
    out[F_LAST_OK] = s->last_ok[a];
    out[F_USING] = s->using_[a] >= 0;
    out[F_USE_LEFT] = (float)(s->use_left[a] * 0.02);
    out[F_IN_QUEUE] = s->queued[a] >= 0;
    out[F_WAITED] = s->queued[a] >= 0 ? (float)(least(*s->tick - s->since[a], 50) * 0.02) : 0.0f;
    out[F_POWER] = out[F_WATER] = 1.0f;
    for (int k = 0; t->events && k < t->T; k++) {
        if (t->power[k] && !sf_town_usable(t, s, k)) out[F_POWER] = 0.0f;
        if (t->water[k] && !sf_town_usable(t, s, k)) out[F_WATER] = 0.0f;
    }
    out[F_PRICE] = (float)(sf_town_price(t, s) * 0.5);
    out[F_MEALS] = (float)(least(*s->meals, 10) * 0.1);
}

/* The nearest object of each type: in use, length of its queue, the agent's cooldown, and whether it is the agent's. */
static void queues(const sf_town *t, const sf_town_state *s, int a, const int *length, float *out) {
    for (int k = 0; k < t->T; k++, out += SF_OF_A_TYPE) {
        const int thing = (int)t->nearest_row[(size_t)s->cell[a] * t->T + k];
        out[0] = s->user[thing] >= 0;
        out[1] = (float)(least(length[thing], 8) * 0.25);
        out[2] = (float)(least(most(s->ready_at[(size_t)a * t->O + thing] - *s->tick, 0), 50) * 0.02);
        out[3] = s->queued[a] == thing || s->using_[a] == thing;
    }
}

/* Whether the agent's rivalry with another one is so strong that it must be avoided. */
static int avoids(const sf_town *t, const sf_town_state *s, int a, int other) {
    for (int e = 0; other >= 0 && e < t->E; e++)
        if (s->tie_with[a * t->E + e] == other && s->ties[(size_t)(a * t->E + e) * 3 + 2] >= t->rules->avoid_threshold) return 1;
    return 0;
}

static void allowed(const sf_town *t, const sf_town_state *s, int a, int nearest, int apart, uint8_t *mask) {
    const sf_town_rules *r = t->rules;
    const int idle = s->present[a] && s->using_[a] < 0, cell = s->cell[a];
    memset(mask, 0, (size_t)(SF_USE + t->T));
    mask[SF_WAIT] = 1;
    mask[SF_LEAVE] = s->present[a] && (s->queued[a] >= 0 || (r->commit == 0.0 && s->using_[a] >= 0));
    if (!idle) return;
    for (int k = 1; k <= 4; k++) mask[k] = t->step[5 * cell + k] != cell;
    mask[SF_CHAT] = apart <= 1 && s->chat_at[a] <= *s->tick;
    /* A threshold of 0 forbids every chat, also with somebody without a relationship. */
    if (mask[SF_CHAT] && r->guardrail != 0.0) mask[SF_CHAT] = !avoids(t, s, a, nearest) && r->avoid_threshold > 0.0;
    const double price = sf_town_price(t, s);
    for (int k = 0; k < t->T; k++) {
        const int thing = t->reach_row[(size_t)cell * t->T + k];
        mask[SF_USE + k] = thing >= 0 && s->ready_at[(size_t)a * t->O + thing] <= *s->tick && sf_town_usable(t, s, k) &&
                           s->wallet[a] >= t->cost[k] * price && (!t->takes[k] || *s->meals > 0) &&
                           !(r->guardrail != 0.0 && avoids(t, s, a, s->user[thing]));
    }
}

int sf_town_view(const sf_town *t, sf_town_state state, int B, float *features, uint8_t *mask) {
    const size_t size = (size_t)(SF_OWN + t->T * (SF_WAY + SF_OF_A_TYPE)), actions = (size_t)(SF_USE + t->T);
    int *length = malloc(((size_t)t->O + 1) * sizeof *length);
    if (!length) return 0;
    memset(features, 0, (size_t)B * t->A * size * sizeof *features);
    for (int b = 0; b < B; b++) {
        sf_town_state s;
        sf_town_at(t, &s, &state, b);
        memset(length, 0, (size_t)t->O * sizeof *length);
        for (int a = 0; a < t->A; a++)
            if (s.queued[a] >= 0) length[s.queued[a]]++;
        for (int a = 0; a < t->A; a++, features += size) {
            int apart, around;
            const int nearest = sf_town_nearest(t, &s, a, &apart, &around);
            if (mask) allowed(t, &s, a, nearest, apart, mask + ((size_t)b * t->A + a) * actions);
            if (!s.present[a]) continue;
            own(t, &s, a, features);
            social(t, &s, a, nearest, apart, around, features);
            if (t->rules->works != 0.0) job(t, &s, a, features);
            memcpy(features + SF_OWN, t->way_to_types + (size_t)s.cell[a] * t->T * SF_WAY, (size_t)t->T * SF_WAY * sizeof *features);
            queues(t, &s, a, length, features + SF_OWN + t->T * SF_WAY);
        }
    }
    free(length);
    return 1;
}
