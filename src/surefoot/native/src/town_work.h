/* Work space of one town during a tick, shared by town_tick.c, town_queues.c and town_social.c. */
#ifndef SF_TOWN_WORK_H
#define SF_TOWN_WORK_H

#include "town.h"

/* A change of the relationship of two agents; those of a phase are applied together. */
typedef struct {
    int one, other;
    double delta[3]; /* trust, familiarity, rivalry */
} sf_town_pair;

typedef struct {
    const sf_town *t;
    const sf_town_rules *r;
    sf_town_state s; /* the arrays of this town */
    sf_town_events *events;
    int b;
    double price;
    const int64_t *action;                              /* 0 for agents that are not in town */
    uint8_t *denied, *pushes, *flag, *at_job, *on_duty, *punctual, *must_leave; /* [A] */
    double *social, *earned, *gain, *quality;           /* [A] */
    int *chosen;                                        /* [O] */
    sf_town_pair *pairs;
    size_t count, room;
} sf_town_work;

static inline double least(double x, double y) { return x < y ? x : y; }
static inline double most(double x, double y) { return x > y ? x : y; }
static inline double between(double x, double low, double high) { return least(most(x, low), high); }
static inline void add(sf_town_work *w, int count, double amount) { w->s.counts[count] += amount; }

void sf_town_tell(sf_town_work *w, int kind, int actor, int other, int object, double value);
void sf_town_pair_up(sf_town_work *w, int one, int other, double trust, double familiarity, double rivalry);
void sf_town_apply_pairs(sf_town_work *w);
void sf_town_release(sf_town_work *w, int agent);

/* The phases of a tick, in this order. */
void sf_town_finish_uses(sf_town_work *w);
void sf_town_move(sf_town_work *w);
void sf_town_request(sf_town_work *w);
void sf_town_promote(sf_town_work *w);
void sf_town_chats(sf_town_work *w, const sf_bitgen *random);
void sf_town_decay_relations(sf_town_work *w);
void sf_town_forget(sf_town_work *w, int agent);

#endif
