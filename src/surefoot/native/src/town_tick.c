/* One tick of many towns (town.h): shifts, rewards and counters, and the order of the phases (town/sim/tick.py). */
#include "town_work.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

void sf_town_tell(sf_town_work *w, int kind, int actor, int other, int object, double value) {
    sf_town_events *e = w->events;
    if (e->count == e->room) {
        const size_t room = e->room ? 2 * e->room : 64;
        sf_town_event *list = realloc(e->list, room * sizeof *list);
        if (!list) {
            e->failed = 1;
            return;
        }
        e->list = list;
        e->room = room;
    }
    e->list[e->count++] = (sf_town_event){kind, w->b, actor, other, object, 0, value};
}

/* Let a present colleague stand in for each agent that is away. */
static void stand_in(sf_town_work *w, const uint8_t *away, const double delta[3], int count, int event) {
    const sf_town *t = w->t;
    for (int a = 0; a < t->A; a++) {
        if (!away[a]) continue;
        for (int b = 0; b < t->A; b++)
            if (b != a && t->job_number[b] == t->job_number[a] && w->at_job[b] && w->on_duty[b] && !away[b]) {
                sf_town_pair_up(w, a, b, delta[0], delta[1], delta[2]);
                add(w, count, 1.0);
                sf_town_tell(w, event, a, b, -1, 0.0);
                break;
            }
    }
    sf_town_apply_pairs(w);
}

/* jobs.py: advance all shifts by a tick. */
static void shifts(sf_town_work *w) {
    static const double helped[3] = {0.20, 0.10, -0.10}, took_shift[3] = {-0.10, 0.0, 0.30};
    const sf_town *t = w->t;
    const sf_town_rules *r = w->r;
    sf_town_state *s = &w->s;
    const int clock = *s->tick % t->day, *elapsed = t->shift_elapsed + (size_t)clock * t->A;
    const int *left = t->shift_left + (size_t)clock * t->A;
    uint8_t *late = w->flag, *absent = w->pushes, *early = w->punctual;
    int lates = 0, absents = 0;
    for (int a = 0; a < t->A; a++) {
        const int duty = w->on_duty[a] = (uint8_t)sf_town_on_duty(t, s, a);
        const int there = w->at_job[a] =
            s->present[a] && t->distance[(size_t)t->job_object[a] * t->cells + s->cell[a]] <= SF_REACH;
        if (t->has_job[a] && s->present[a] && elapsed[a] == 0) {
            s->shift[a] = SF_AWAIT;
            s->gone_for[a] = 0;
        }
        if (there) s->gone_for[a] = 0;
        else s->gone_for[a] += duty;
        const int awaits = s->shift[a] == SF_AWAIT, works = s->shift[a] == SF_ON_TIME || s->shift[a] == SF_LATE;
        late[a] = duty && there && awaits && elapsed[a] > r->grace;
        early[a] = duty && !there && works && s->gone_for[a] > r->absence_slack;
        absent[a] = early[a] || (duty && !there && awaits && elapsed[a] > r->absent_cutoff);
        if (duty && there && awaits) s->shift[a] = late[a] ? SF_LATE : SF_ON_TIME;
        if (absent[a]) s->shift[a] = SF_ABSENT;
        lates += late[a];
        absents += absent[a];
        w->earned[a] = -(late[a] * t->late_fee[a] * 0.5 + absent[a] * r->absence_penalty);
        if (late[a]) {
            s->lateness[a]++;
            s->wallet[a] = most(s->wallet[a] - t->late_fee[a], 0.0);
        }
    }
    for (int a = 0; lates && a < t->A; a++)
        if (late[a]) sf_town_tell(w, SF_E_LATE, a, -1, -1, 0.0);
    if (lates) stand_in(w, late, helped, SF_LATE_HELP, SF_E_HELPED);
    for (int a = 0; absents && a < t->A; a++)
        if (absent[a]) sf_town_tell(w, SF_E_ABSENT, a, -1, -1, 0.0);
    for (int a = 0; absents && a < t->A; a++)
        if (early[a]) sf_town_tell(w, SF_E_LEFT_EARLY, a, -1, -1, 0.0);
    if (absents) stand_in(w, absent, took_shift, SF_TAKEOVERS, SF_E_TOOK_SHIFT);
    if (clock == 0) *s->exits = 0;
    for (int a = 0; a < t->A; a++) {
        const int duty = w->on_duty[a], there = w->at_job[a], last = duty && left[a] == 1;
        const int working = duty && there && (s->shift[a] == SF_ON_TIME || s->shift[a] == SF_LATE);
        const double paid = t->wage[a] * working;
        const double withheld = r->late_tick_penalty * (duty && !there && elapsed[a] > r->grace) - w->earned[a];
        w->punctual[a] = working && s->shift[a] == SF_ON_TIME;
        w->must_leave[a] = 0;
        if (last && s->shift[a] == SF_ABSENT && ++s->absences[a] >= r->max_absent_shifts && *s->exits < r->daily_exits) {
            w->must_leave[a] = 1;
            ++*s->exits;
        }
        if (last && s->shift[a] != SF_ABSENT) s->shift[a] = SF_POST;
        s->wallet[a] += paid;
        s->wages[a] += paid;
        s->withheld[a] += withheld;
        s->shift_ticks[a] += duty;
        s->present_ticks[a] += duty && there;
        s->punctual_ticks[a] += w->punctual[a];
        add(w, SF_WAGES, paid);
        add(w, SF_SHIFT_TICKS, duty);
        add(w, SF_PUNCTUAL_TICKS, w->punctual[a]);
        w->earned[a] = paid - withheld;
    }
}

/* rewards.py: the parts of an agent's reward. `rivals` are to be avoided, `near` of them are close. */
static double reward(sf_town_work *w, int a, int acted, int rivals, int near, double rivalry, int fainted, int evicted, double *parts) {
    const sf_town *t = w->t;
    const sf_town_rules *r = w->r;
    const sf_town_state *s = &w->s;
    memset(parts, 0, SF_PARTS * sizeof *parts);
    if (!acted) return 0.0;
    parts[SF_SURVIVAL] = r->survival * t->factor[3 * a];
    for (int k = 0; k < 3; k++) parts[SF_NEED] -= (1.0 - s->needs[3 * a + k]) * (1.0 - s->needs[3 * a + k]) * r->need_cost[k];
    if (r->works != 0.0) {
        parts[SF_WAGE] = r->wage * w->earned[a] * t->factor[3 * a + 1];
        parts[SF_PUNCTUALITY] = r->punctuality * w->punctual[a];
        const int ahead = t->shift_ahead[(size_t)(*s->tick % t->day) * t->A + a];
        if (r->commute != 0.0 && s->present[a] && (w->on_duty[a] || ahead <= r->commute_ahead)) {
            const double size = r->width + r->height;
            const int steps = t->distance[(size_t)t->job_object[a] * t->cells + s->cell[a]] - SF_REACH;
            parts[SF_PUNCTUALITY] -= r->commute * (least(steps < 0 ? 0 : steps, size) / size);
        }
    }
    if (r->social != 0.0) parts[SF_SOCIAL] = w->social[a] * t->factor[3 * a + 2] - r->waiting * (s->queued[a] >= 0);
    if (r->avoidance != 0.0 && rivals) parts[SF_AVOIDANCE] = r->avoidance * (near == 0) - 4.0 * r->avoidance * near;
    if (r->rivalry_cost != 0.0) parts[SF_AVOIDANCE] -= r->rivalry_cost * rivalry;
    if (fainted || evicted) {
        /* An agent that leaves gets no positive reward in that tick. */
        for (int k = 0; k < SF_PARTS; k++) parts[k] = least(parts[k], 0.0);
        parts[SF_TERMINAL] = -r->faint * fainted - r->eviction * evicted;
    }
    double total = 0.0;
    for (int k = 0; k < SF_PARTS; k++) total += parts[k];
    return between(total, -r->clip, r->clip);
}

/* Rewards, counters, and agents that faint or are evicted; the end of a tick. */
static void finish(sf_town_work *w, const sf_town_outcome *out, size_t first) {
    const sf_town *t = w->t;
    const sf_town_rules *r = w->r;
    sf_town_state *s = &w->s;
    for (int a = 0; a < t->A; a++) {
        const int acted = s->present[a], fainted = acted && s->needs[3 * a] <= r->faint_at;
        const int evicted = r->works != 0.0 && w->must_leave[a] && !fainted, waiting = s->queued[a] >= 0;
        int rivals = 0, near = 0, low = 0;
        double rivalry = s->ties[(size_t)a * t->E * 3 + 2];
        for (int e = 0; e < t->E; e++) {
            const double strength = s->ties[(size_t)(a * t->E + e) * 3 + 2];
            const int other = s->tie_with[a * t->E + e];
            rivalry = most(rivalry, strength);
            if (other < 0 || strength < r->avoid_threshold) continue;
            rivals++;
            near += s->present[other] && sf_town_apart(t, s, a, other) <= 2;
        }
        const double total = reward(w, a, acted, rivals, near, rivalry, fainted, evicted, out->parts + (first + a) * SF_PARTS);
        for (int k = 0; k < 3; k++) low |= s->needs[3 * a + k] < r->wanting[k];
        add(w, SF_WAITING, waiting);
        add(w, SF_UNSERVED, waiting || (low && s->using_[a] < 0 && acted));
        add(w, SF_AGENT_TICKS, acted);
        add(w, SF_DEFICIT, acted * (1.0 - (s->needs[3 * a] + s->needs[3 * a + 1] + s->needs[3 * a + 2]) * (1.0 / 3.0)));
        add(w, SF_RIVALRY_MAX, rivalry * acted);
        add(w, SF_RIVALRY_AVOID, rivals);
        add(w, SF_RETURN, total);
        s->last_action[a] = (int8_t)w->action[a];
        s->last_ok[a] = !w->denied[a];
        s->age[a] += acted;
        out->acted[first + a] = (uint8_t)acted;
        out->reward[first + a] = total;
        out->rivalry[first + a] = rivalry;
        out->avoid[first + a] = rivals;
        w->flag[a] = (uint8_t)(fainted + 2 * evicted);
        out->terminated[first + a] = w->flag[a] != 0;
    }
    for (int kind = 1; kind <= 2; kind++)
        for (int a = 0; a < t->A; a++)
            if (w->flag[a] == kind) {
                add(w, kind == 1 ? SF_FAINTS : SF_EVICTIONS, 1.0);
                sf_town_tell(w, kind == 1 ? SF_E_FAINT : SF_E_EVICTION, a, -1, -1, 0.0);
            }
    for (int a = 0; a < t->A; a++)
        if (w->flag[a]) {
            sf_town_release(w, a);
            s->present[a] = 0;
            s->back_at[a] = *s->tick + 1 + (int32_t)r->respawn_delay;
            sf_town_forget(w, a);
        }
    ++*s->tick;
}

int sf_town_tick(const sf_town *t, sf_town_state state, int B, const int64_t *action, const sf_bitgen *random,
                 sf_town_outcome out, sf_town_events *events) {
    const size_t A = (size_t)t->A;
    double *numbers = malloc(4 * A * sizeof *numbers);
    int64_t *actions = malloc(A * sizeof *actions);
    uint8_t *flags = calloc(7, A);
    int *chosen = malloc(((size_t)t->O + 1) * sizeof *chosen);
    sf_town_work w = {.t = t, .r = t->rules, .events = events, .action = actions, .chosen = chosen};
    if (numbers && actions && flags && chosen) {
        uint8_t **flag[] = {&w.denied, &w.pushes, &w.flag, &w.at_job, &w.on_duty, &w.punctual, &w.must_leave};
        double **number[] = {&w.social, &w.earned, &w.gain, &w.quality};
        for (int k = 0; k < 7; k++) *flag[k] = flags + (size_t)k * A;
        for (int k = 0; k < 4; k++) *number[k] = numbers + (size_t)k * A;
    } else events->failed = 1;
    for (w.b = 0; w.b < B && !events->failed; w.b++) {
        const size_t first = (size_t)w.b * A, before = events->count;
        sf_town_at(t, &w.s, &state, w.b);
        w.price = sf_town_price(t, &w.s);
        for (size_t a = 0; a < A; a++) actions[a] = w.s.present[a] ? action[first + a] : SF_WAIT;
        sf_town_finish_uses(&w);
        sf_town_move(&w);
        sf_town_request(&w);
        sf_town_promote(&w);
        sf_town_chats(&w, random);
        for (size_t a = 0; a < A; a++)
            for (int k = 0; k < 3; k++)
                w.s.needs[3 * a + k] = most(w.s.needs[3 * a + k] - w.r->decay[k] * w.s.present[a], 0.0);
        if (w.r->works != 0.0) shifts(&w);
        sf_town_decay_relations(&w);
        for (size_t i = before; i < events->count; i++)
            if (events->list[i].kind == SF_E_CONFLICT) {
                w.social[events->list[i].actor] -= w.r->conflict_cost * events->list[i].value;
                w.social[events->list[i].other] -= 0.5 * w.r->conflict_cost * events->list[i].value;
            }
        finish(&w, &out, first);
    }
    free(numbers);
    free(actions);
    free(flags);
    free(chosen);
    free(w.pairs);
    return !events->failed;
}
