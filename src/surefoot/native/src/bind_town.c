/* Towns for Python: a capsule around the tables of a scenario, and the arrays of its state. */
#include "binding.h"
#include "town.h"
#include <stdlib.h>
#include <string.h>

#define CAPSULE_NAME "surefoot.town"
enum { MOST = 1 << 20 };

/* The tables belong to numpy arrays, which stay exported as long as the capsule lives. */
typedef struct {
    sf_town town;
    sf_views views;
} held_town;

static void free_town(PyObject *capsule) {
    held_town *held = PyCapsule_GetPointer(capsule, CAPSULE_NAME);
    sf_release(&held->views);
    free(held);
}

/* town_new(*, A, O, T, E, cells, day, events, rules, and the tables of Layout by their names) */
static PyObject *town_new(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    sf_town t = {0};
    SF_CALL(call);
    if (!sf_begin(&call, "town_new", args, count, names, 0) ||
        !sf_read(&call, INT(t, A, 1, MOST), INT(t, O, 0, INT16_MAX), INT(t, T, 0, 1024), INT(t, E, 1, 64), INT(t, cells, 1, MOST),
                 INT(t, day, 1, INT32_MAX), INT(t, events, 0, INT8_MAX)))
        return NULL;
    const int64_t A = t.A, O = t.O, T = t.T, cells = t.cells, places = (O + 1) * cells, shifts = (int64_t)t.day * A;
    if (!sf_read(&call, INPUT(t, rules, SF_F64, sizeof(sf_town_rules) / sizeof(double)), INPUT(t, step, SF_I32, 5 * cells),
                 INPUT(t, duration, SF_I32, T), INPUT(t, makes, SF_I32, T), INPUT(t, shift_elapsed, SF_I32, shifts),
                 INPUT(t, shift_left, SF_I32, shifts), INPUT(t, shift_ahead, SF_I32, shifts), INPUT(t, distance, SF_I16, places),
                 INPUT(t, kind, SF_I16, O), INPUT(t, reach_row, SF_I16, cells * T), INPUT(t, column, SF_I16, cells),
                 INPUT(t, row, SF_I16, cells), INPUT(t, job_object, SF_I16, A), INPUT(t, job_number, SF_I16, A),
                 INPUT(t, nearest_row, SF_I64, cells * T), INPUT(t, event_kind_of, SF_I64, t.events),
                 INPUT(t, way, SF_F32, places * SF_WAY), INPUT(t, way_to_types, SF_F32, cells * T * SF_WAY),
                 INPUT(t, clock, SF_F32, (int64_t)t.day * 2), INPUT(t, character, SF_F32, A * 3), INPUT(t, effect, SF_F64, T * 3),
                 INPUT(t, cost, SF_F64, T), INPUT(t, factor, SF_F64, A * 3), INPUT(t, wage, SF_F64, A), INPUT(t, late_fee, SF_F64, A),
                 INPUT(t, event_factor, SF_F64, t.events), INPUT(t, takes, SF_BOOL, T), INPUT(t, is_meal, SF_BOOL, T),
                 INPUT(t, power, SF_BOOL, T), INPUT(t, water, SF_BOOL, T), INPUT(t, has_job, SF_BOOL, A)) ||
        !sf_end(&call))
        return NULL;
    held_town *held = malloc(sizeof *held);
    if (!held) return PyErr_NoMemory();
    held->town = t;
    held->views = call.views;
    PyObject *capsule = PyCapsule_New(held, CAPSULE_NAME, free_town);
    if (!capsule) free(held);
    else call.views.count = 0; /* they are the capsule's now */
    return capsule;
}

typedef struct {
    held_town *held;
    int B;
    sf_town_state s;
    const int64_t *action;
    const sf_bitgen *random;
    sf_town_outcome out;
    float *features;
    uint8_t *mask;
} town_call;

#define WITHIN(array, n, low, high, what) \
    for (int64_t i = 0; i < (n); i++)     \
        if ((array)[i] < (low) || (array)[i] >= (high)) return what;

/* What is wrong with indices of the state, or NULL: they may come from a file. */
static const char *wrong(const sf_town *t, const sf_town_state *s, int64_t B) {
    WITHIN(s->cell, B * t->A, 0, t->cells, "cell")
    WITHIN(s->using_, B * t->A, -1, t->O, "using")
    WITHIN(s->queued, B * t->A, -1, t->O, "queued")
    WITHIN(s->shift, B * t->A, 0, SF_POST + 1, "shift")
    WITHIN(s->user, B * t->O, -1, t->A, "user")
    WITHIN(s->last_user, B * t->O, -1, t->A, "last_user")
    WITHIN(s->tie_with, B * t->A * t->E, -1, t->A, "tie_with")
    WITHIN(s->event, B, -1, t->events, "event")
    WITHIN(s->tick, B, 0, INT32_MAX, "tick")
    return NULL;
}

/* Read the town, the number of copies and the arrays of State, in its order. */
static int begin(sf_call *call, const char *function, PyObject *const *args, Py_ssize_t count, Py_ssize_t wanted, town_call *in) {
    if (!sf_begin(call, function, args, count, NULL, wanted) ||
        !sf_read(call, CAPSULE(*in, held, CAPSULE_NAME), INT(*in, B, 1, MOST)))
        return 0;
    const sf_town *t = &in->held->town;
    const int64_t B = in->B, BA = B * t->A, BO = B * t->O;
    const char *what = NULL;
    if (!sf_read(call, OUTPUT(in->s, tick, SF_I32, B), OUTPUT(in->s, present, SF_BOOL, BA), OUTPUT(in->s, back_at, SF_I32, BA),
                 OUTPUT(in->s, age, SF_I32, BA), OUTPUT(in->s, cell, SF_I32, BA), OUTPUT(in->s, needs, SF_F64, 3 * BA),
                 OUTPUT(in->s, wallet, SF_F64, BA), OUTPUT(in->s, using_, SF_I16, BA), OUTPUT(in->s, use_left, SF_I32, BA),
                 OUTPUT(in->s, queued, SF_I16, BA), OUTPUT(in->s, ticket, SF_I32, BA), OUTPUT(in->s, since, SF_I32, BA),
                 OUTPUT(in->s, ready_at, SF_I32, BA * t->O), OUTPUT(in->s, user, SF_I16, BO), OUTPUT(in->s, last_user, SF_I16, BO),
                 OUTPUT(in->s, pushes, SF_I16, BO), OUTPUT(in->s, tickets, SF_I32, BO), OUTPUT(in->s, meals, SF_I32, B),
                 OUTPUT(in->s, tie_with, SF_I16, BA * t->E), OUTPUT(in->s, ties, SF_F64, 3 * BA * t->E),
                 OUTPUT(in->s, chat_at, SF_I32, BA), OUTPUT(in->s, ate_at, SF_I32, BA), OUTPUT(in->s, shift, SF_I8, BA),
                 OUTPUT(in->s, gone_for, SF_I32, BA), OUTPUT(in->s, lateness, SF_I32, BA), OUTPUT(in->s, absences, SF_I32, BA),
                 OUTPUT(in->s, withheld, SF_F64, BA), OUTPUT(in->s, wages, SF_F64, BA), OUTPUT(in->s, shift_ticks, SF_I32, BA),
                 OUTPUT(in->s, present_ticks, SF_I32, BA), OUTPUT(in->s, punctual_ticks, SF_I32, BA),
                 OUTPUT(in->s, last_action, SF_I8, BA), OUTPUT(in->s, last_ok, SF_BOOL, BA), OUTPUT(in->s, event, SF_I8, B),
                 OUTPUT(in->s, event_left, SF_I32, B), OUTPUT(in->s, event_next, SF_I32, B), OUTPUT(in->s, event_kind, SF_I8, B),
                 OUTPUT(in->s, exits, SF_I32, B), OUTPUT(in->s, counts, SF_F64, B * SF_COUNTS)))
        return 0;
    if (!(what = wrong(t, &in->s, B))) return 1;
    PyErr_Format(PyExc_ValueError, "%s of the town's state is out of range", what);
    return 0;
}

/* town_tick(town, B, *state, action, random, acted, terminated, reward, parts, rivalry, avoid) → the events, as bytes of
 * `sf_town_event` */
static PyObject *town_tick(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    town_call in = {0};
    SF_CALL(call);
    if (!begin(&call, "town_tick", args, count, 49, &in)) return NULL;
    const sf_town *t = &in.held->town;
    const int64_t BA = (int64_t)in.B * t->A;
    if (!sf_read(&call, INPUT(in, action, SF_I64, BA), CAPSULE(in, random, "BitGenerator"), OUTPUT(in.out, acted, SF_BOOL, BA),
                 OUTPUT(in.out, terminated, SF_BOOL, BA), OUTPUT(in.out, reward, SF_F64, BA),
                 OUTPUT(in.out, parts, SF_F64, BA * SF_PARTS), OUTPUT(in.out, rivalry, SF_F64, BA), OUTPUT(in.out, avoid, SF_I64, BA)))
        return NULL;
    for (int64_t i = 0; i < BA; i++)
        if (in.action[i] < 0 || in.action[i] >= SF_USE + t->T)
            return PyErr_Format(PyExc_ValueError, "an action is %lld; there are %d", (long long)in.action[i], SF_USE + t->T);
    sf_town_events events = {0};
    PyObject *result = NULL;
    if (sf_town_tick(t, in.s, in.B, in.action, in.random, in.out, &events))
        result = PyBytes_FromStringAndSize((const char *)events.list, (Py_ssize_t)(events.count * sizeof *events.list));
    else PyErr_NoMemory();
    free(events.list);
    return result;
}

/* town_view(town, B, *state, features, mask or None) */
static PyObject *town_view(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    town_call in = {0};
    SF_CALL(call);
    if (!begin(&call, "town_view", args, count, 43, &in)) return NULL;
    const sf_town *t = &in.held->town;
    const int64_t BA = (int64_t)in.B * t->A;
    if (!sf_read(&call, OUTPUT(in, features, SF_F32, BA * (SF_OWN + t->T * (SF_WAY + SF_OF_A_TYPE))),
                 OUTPUT_OR_NONE(in, mask, SF_BOOL, BA * (SF_USE + t->T))))
        return NULL;
    if (!sf_town_view(t, in.s, in.B, in.features, in.mask)) return PyErr_NoMemory();
    Py_RETURN_NONE;
}

PyMethodDef sf_town_methods[] = {SF_KEYWORDS(town_new), SF_POSITIONAL(town_tick), SF_POSITIONAL(town_view), {NULL, NULL, 0, NULL}};
