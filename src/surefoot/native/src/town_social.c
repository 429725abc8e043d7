/* Relationships and chats in a tick: town/sim/relationships.py, and `_chat` in tick.py. */
#include "town_work.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Change the relationship of `one` with `other`; a new one takes a free slot or the weakest. */
static void change(sf_town_work *w, int one, int other, const double delta[3]) {
    static const double low[3] = {-1.0, -1.0, 0.0};
    if (one == other || other < 0) return;
    const int E = w->t->E;
    int16_t *known = w->s.tie_with + one * E;
    double *ties = w->s.ties + (size_t)one * E * 3;
    int slot = 0;
    while (slot < E && known[slot] != other) slot++;
    if (slot == E) {
        double weakest = INFINITY;
        for (int e = E - 1; e >= 0; e--) {
            const double strength =
                known[e] < 0 ? -1.0 : most(most(fabs(ties[3 * e]), fabs(ties[3 * e + 1])), fabs(ties[3 * e + 2]));
            if (strength <= weakest) {
                weakest = strength;
                slot = e;
            }
        }
        known[slot] = (int16_t)other;
        memset(ties + 3 * slot, 0, 3 * sizeof *ties);
    }
    for (int k = 0; k < 3; k++) ties[3 * slot + k] = between(ties[3 * slot + k] + delta[k], low[k], 1.0);
}

void sf_town_pair_up(sf_town_work *w, int one, int other, double trust, double familiarity, double rivalry) {
    if (w->count == w->room) {
        const size_t room = w->room ? 2 * w->room : 64;
        sf_town_pair *pairs = realloc(w->pairs, room * sizeof *pairs);
        if (!pairs) {
            w->events->failed = 1;
            return;
        }
        w->pairs = pairs;
        w->room = room;
    }
    w->pairs[w->count++] = (sf_town_pair){one, other, {trust, familiarity, rivalry}};
}

/* Apply the pairs in one direction, then in the other, like `both_ways`. */
void sf_town_apply_pairs(sf_town_work *w) {
    for (size_t n = 0; n < w->count; n++) change(w, w->pairs[n].one, w->pairs[n].other, w->pairs[n].delta);
    for (size_t n = 0; n < w->count; n++) change(w, w->pairs[n].other, w->pairs[n].one, w->pairs[n].delta);
    w->count = 0;
}

static double worst_need(const sf_town_work *w, int a) {
    const double *needs = w->s.needs + 3 * a;
    return least(least(needs[0], needs[1]), needs[2]);
}

void sf_town_chats(sf_town_work *w, const sf_bitgen *random) {
    const sf_town *t = w->t;
    const sf_town_rules *r = w->r;
    sf_town_state *s = &w->s;
    for (int a = 0; a < t->A; a++) w->social[a] = 0.0;
    for (int a = 0; a < t->A; a++) {
        if (w->action[a] != SF_CHAT || s->chat_at[a] > *s->tick || s->using_[a] >= 0 || !s->present[a]) continue;
        int apart, around;
        const int other = sf_town_nearest(t, s, a, &apart, &around);
        if (apart > 1) continue;
        double tie[3] = {0.0, 0.0, 0.0};
        for (int e = 0; e < t->E; e++)
            if (s->tie_with[a * t->E + e] == other)
                for (int k = 0; k < 3; k++) tie[k] += s->ties[(size_t)(a * t->E + e) * 3 + k];
        const double mood = worst_need(w, a) * worst_need(w, other), quality = least(0.4 + 0.6 * mood, 1.0);
        const double likes = 0.5 + 0.3 * tie[0] + (double)(0.2f * t->character[3 * a]) - 0.6 * tie[2] + 0.4 * mood;
        const int good = random->next_double(random->state) < between(likes, 0.05, 0.95);
        const size_t n = w->count;
        w->flag[n] = (uint8_t)good;
        w->quality[n] = quality;
        w->gain[n] = good ? r->chat * (1.0 + 3.0 * tie[0] + 2.0 * tie[1]) * quality : -0.5 * r->chat;
        if (good) sf_town_pair_up(w, a, other, 0.05 * quality, 0.10 * quality, 0.0);
        else sf_town_pair_up(w, a, other, 0.0, -0.05, 0.05);
        if (w->events->failed) return;
        add(w, good ? SF_CHAT_SUCCESS : SF_CHAT_FAILURE, 1.0);
        add(w, SF_CHAT_QUALITY, quality * good);
    }
    /* The other agents' rewards and the relationships change after all have chatted. */
    for (size_t n = 0; n < w->count; n++) w->social[w->pairs[n].one] += w->gain[n];
    for (size_t n = 0; n < w->count; n++) w->social[w->pairs[n].other] += 0.5 * w->gain[n];
    for (int good = 1; good >= 0; good--)
        for (size_t n = 0; n < w->count; n++)
            if (w->flag[n] == good)
                sf_town_tell(w, good ? SF_E_CHAT_SUCCESS : SF_E_CHAT_FAILURE, w->pairs[n].one, w->pairs[n].other, -1,
                             good ? w->quality[n] : 0.0);
    for (size_t n = 0; n < w->count; n++) s->chat_at[w->pairs[n].one] = *s->tick + (int32_t)r->chat_cooldown;
    sf_town_apply_pairs(w);
}

void sf_town_decay_relations(sf_town_work *w) {
    const sf_town_rules *r = w->r;
    sf_town_state *s = &w->s;
    const int E = w->t->E;
    for (int i = 0; i < w->t->A * E; i++) {
        const int other = s->tie_with[i];
        if (other < 0) continue;
        double *tie = s->ties + (size_t)i * 3, rivalry = tie[2] - r->rivalry_decay;
        if (r->chafe > 0.0 && rivalry > 0.0 && s->present[other] && sf_town_apart(w->t, s, i / E, other) <= r->chafe_distance)
            rivalry = least(rivalry + r->chafe + r->rivalry_decay, 1.0);
        tie[2] = rivalry = most(rivalry, 0.0);
        const double friendship = most(fabs(tie[0]), fabs(tie[1]));
        if (rivalry <= r->eviction_threshold && (friendship < r->eviction_threshold || friendship == 0.0)) {
            s->tie_with[i] = -1;
            memset(tie, 0, 3 * sizeof *tie);
        }
    }
}

/* Remove the relationships of an agent that left, on both sides. */
void sf_town_forget(sf_town_work *w, int agent) {
    const int E = w->t->E;
    for (int i = 0; i < w->t->A * E; i++)
        if (w->s.tie_with[i] == agent || i / E == agent) {
            w->s.tie_with[i] = -1;
            memset(w->s.ties + (size_t)i * 3, 0, 3 * sizeof(double));
        }
}
