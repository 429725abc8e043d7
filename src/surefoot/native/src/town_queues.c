/* Objects and their queues in a tick: town/sim/queues.py. */
#include "town_work.h"

void sf_town_release(sf_town_work *w, int a) {
    if (w->s.using_[a] >= 0) w->s.user[w->s.using_[a]] = -1;
    w->s.using_[a] = w->s.queued[a] = -1;
    w->s.use_left[a] = 0;
}

void sf_town_finish_uses(sf_town_work *w) {
    const sf_town *t = w->t;
    sf_town_state *s = &w->s;
    int meals = 0;
    for (int a = 0; a < t->A; a++) {
        w->flag[a] = 0;
        if (s->using_[a] < 0 || --s->use_left[a] > 0) continue;
        const int thing = s->using_[a], kind = t->kind[thing];
        for (int k = 0; k < 3; k++) s->needs[3 * a + k] = between(s->needs[3 * a + k] + t->effect[3 * kind + k], 0.0, 1.0);
        s->wallet[a] = most(s->wallet[a] - t->cost[kind] * w->price, 0.0);
        *s->meals += t->makes[kind];
        s->ready_at[a * t->O + thing] = *s->tick + (int32_t)w->r->cooldown;
        s->user[thing] = -1;
        s->last_user[thing] = (int16_t)a;
        s->using_[a] = -1;
        add(w, SF_USES, 1.0);
        if (kind == (int)w->r->shower) add(w, SF_SHOWERS, 1.0);
        if (kind == (int)w->r->bed) add(w, SF_SLEEPS, 1.0);
        sf_town_tell(w, SF_E_USE_DONE, a, -1, thing, 0.0);
        if (t->is_meal[kind]) {
            w->flag[a] = 1;
            s->ate_at[a] = *s->tick;
            meals++;
        }
    }
    for (int a = 0; meals && a < t->A; a++)
        for (int b = 0; w->flag[a] && b < t->A; b++) {
            /* Two agents who finish in the same tick are each other's neighbour: count the pair once. */
            if (b == a || !s->present[b] || *s->tick - s->ate_at[b] > 10 || (s->ate_at[b] == *s->tick && b < a)) continue;
            if (sf_town_apart(t, s, a, b) > 2) continue;
            sf_town_pair_up(w, a, b, 0.10, 0.25, 0.0);
            add(w, SF_SHARED_MEALS, 1.0);
            sf_town_tell(w, SF_E_SHARED_MEAL, a, b, -1, 0.0);
        }
    sf_town_apply_pairs(w);
}

void sf_town_move(sf_town_work *w) {
    const sf_town *t = w->t;
    sf_town_state *s = &w->s;
    for (int a = 0; a < t->A; a++) {
        const int64_t action = w->action[a];
        if (action >= SF_NORTH && action <= SF_WEST && s->using_[a] < 0) s->cell[a] = t->step[5 * s->cell[a] + action];
    }
    for (int a = 0; a < t->A; a++)
        if (w->action[a] == SF_LEAVE && (w->r->commit == 0.0 || s->using_[a] < 0)) sf_town_release(w, a);
    for (int a = 0; a < t->A; a++)
        if (s->queued[a] >= 0 && t->distance[(size_t)s->queued[a] * t->cells + s->cell[a]] > SF_REACH) s->queued[a] = -1;
}

static int can_pay(const sf_town_work *w, int a, int kind) {
    return w->s.wallet[a] >= w->t->cost[kind] * w->price && sf_town_usable(w->t, &w->s, kind) &&
           (!w->t->takes[kind] || *w->s.meals > 0);
}

static double priority(const sf_town_work *w, int a) {
    return w->s.ticket[a] - w->r->age_weight * (*w->s.tick - w->s.since[a]);
}

/* The agent whose turn is number `turn` in this tick: the order rotates from tick to tick. */
static int by_turn(const sf_town_work *w, int turn) {
    const int A = w->t->A;
    return ((turn - *w->s.tick) % A + A) % A;
}

static void quarrel(sf_town_work *w, int agent, int thing) {
    sf_town_state *s = &w->s;
    int head = -1, length = 0;
    for (int a = 0; a < w->t->A; a++)
        if (s->queued[a] == thing) {
            length++;
            if (head < 0 || priority(w, a) < priority(w, head)) head = a;
        }
    s->pushes[thing] = 0;
    const int rotates = head != agent, rival = rotates ? head : s->user[thing];
    if (rotates) s->ticket[head] = s->tickets[thing]++;
    const double intensity = between(1.5 + 0.25 * (length - 1), 0.1, 5.0);
    add(w, SF_ROTATIONS, rotates);
    add(w, SF_GHOST_STEPS, 1.0);
    add(w, SF_CONFLICTS, 1.0);
    add(w, SF_INTENSITY, intensity);
    const float forgives = 1.0f - 0.3f * w->t->character[3 * agent + 1];
    sf_town_pair_up(w, agent, rival, 0.0, -0.05, w->r->conflict * intensity * (double)forgives);
    sf_town_tell(w, SF_E_CONFLICT, agent, rival, thing, intensity);
}

/* Agents that request an object join its queue, or push if they are in it already. */
void sf_town_request(sf_town_work *w) {
    const sf_town *t = w->t;
    sf_town_state *s = &w->s;
    int pushing = 0;
    for (int a = 0; a < t->A; a++) {
        w->denied[a] = w->pushes[a] = w->flag[a] = 0;
        if (w->action[a] < SF_USE || s->using_[a] >= 0 || !s->present[a]) continue;
        const int kind = (int)w->action[a] - SF_USE, thing = t->reach_row[s->cell[a] * t->T + kind];
        const int cooling = thing >= 0 && s->ready_at[a * t->O + thing] > *s->tick;
        if (cooling) add(w, SF_COOLDOWNS, 1.0);
        if (thing < 0 || cooling || !can_pay(w, a, kind)) w->denied[a] = 1;
        else if (s->queued[a] == thing) pushing += w->pushes[a] = 1;
        else {
            w->flag[a] = 1;
            s->queued[a] = (int16_t)thing;
            s->since[a] = *s->tick;
        }
    }
    for (int turn = 0; turn < t->A; turn++) {
        const int a = by_turn(w, turn);
        if (w->flag[a]) s->ticket[a] = s->tickets[s->queued[a]]++;
    }
    if (!pushing) return;
    for (int a = 0; a < t->A; a++) {
        w->pushes[a] = w->pushes[a] && s->user[s->queued[a]] >= 0;
        if (w->pushes[a]) s->pushes[s->queued[a]]++;
    }
    for (int thing = 0; thing < t->O; thing++) {
        if (s->pushes[thing] < w->r->ghost_step_after) continue;
        for (int turn = 0; turn < t->A; turn++) {
            const int a = by_turn(w, turn);
            if (w->pushes[a] && s->queued[a] == thing) {
                quarrel(w, a, thing);
                break;
            }
        }
    }
    sf_town_apply_pairs(w);
}

/* Give free objects to the first agent in their queue. */
void sf_town_promote(sf_town_work *w) {
    const sf_town *t = w->t;
    sf_town_state *s = &w->s;
    int waiting = 0;
    for (int thing = 0; thing < t->O; thing++) w->chosen[thing] = -1;
    for (int a = 0; a < t->A; a++) {
        const int thing = s->queued[a];
        if (thing < 0 || s->user[thing] >= 0 || !can_pay(w, a, t->kind[thing])) continue;
        if (w->chosen[thing] < 0 || priority(w, a) < priority(w, w->chosen[thing])) w->chosen[thing] = a;
        waiting = 1;
    }
    for (int thing = 0; waiting && thing < t->O; thing++) {
        const int a = w->chosen[thing], kind = t->kind[thing], before = s->last_user[thing];
        if (a < 0 || (t->takes[kind] && *s->meals <= 0)) continue;
        *s->meals -= t->takes[kind];
        s->user[thing] = (int16_t)a;
        s->using_[a] = (int16_t)thing;
        s->queued[a] = -1;
        s->use_left[a] = t->duration[kind];
        s->pushes[thing] = 0;
        if (s->since[a] < *s->tick && before >= 0 && before != a) {
            sf_town_pair_up(w, a, before, 0.05, 0.05, -0.05);
            add(w, SF_HANDOVERS, 1.0);
            sf_town_tell(w, SF_E_HANDOVER, a, before, thing, 0.0);
        }
    }
    sf_town_apply_pairs(w);
}
