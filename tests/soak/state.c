/* SPDX-License-Identifier: MIT
 *
 * The trainer's shared state. All contents follow from one number, the seed, which is the first
 * element. So contents that were received, in whole or in part, can be checked with this element
 * alone. After each success the seed and the contents change, in the same way for all trainers. So
 * a member that goes on always offers the right contents: it must receive nothing, and a call that
 * fails must not change its contents. Newcomers have their own seed and an old revision, and must
 * get the state.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "tests/soak/trainer.h"

#define OWN 5000u

enum { BIASES_AT, WEIGHTS_AT, OWN_AT, NOTHING_AT, TENSORS };

static uint64_t own[OWN], *biases, *weights;
static pcclTensorInfo_t tensors[TENSORS];
static pcclSharedState_t state = {.count = TENSORS, .infos = tensors};
static uint64_t me, seed;
static bool newcomer = true; /* no synchronization has succeeded in this membership */
static bool torn;            /* the tensors were written in part */

static uint64_t weight(uint64_t i)
{
	return mix(seed ^ i << 20);
}

static uint64_t bias(uint64_t i)
{
	return i ? mix(seed + i) : seed;
}

static void fill(void)
{
	for (uint64_t i = 0; i < STATE_BIASES; i++)
		biases[i] = bias(i);
	for (uint64_t i = 0; i < STATE_WEIGHTS; i++)
		weights[i] = weight(i);
}

/* Creates contents that no other trainer has, at a revision that counts only if there is no other
 * one. */
static void begin_anew(void)
{
	state.revision = 0;
	seed = mix(me);
	torn = false;
	fill();
}

void state_make(uint64_t serial, uint64_t *room_of_biases, uint64_t *room_of_weights)
{
	biases = room_of_biases;
	weights = room_of_weights;
	me = serial;
	for (uint64_t i = 0; i < OWN; i++)
		own[i] = mix(me ^ i);
	tensors[BIASES_AT] = (pcclTensorInfo_t){
		.name = "biases", .data = biases, .count = STATE_BIASES, .datatype = pcclUint64};
	tensors[WEIGHTS_AT] = (pcclTensorInfo_t){
		.name = "weights", .data = weights, .count = STATE_WEIGHTS, .datatype = pcclUint64};
	tensors[OWN_AT] = (pcclTensorInfo_t){.name = "own",
		.data = own,
		.count = OWN,
		.datatype = pcclUint64,
		.allow_content_inequality = true};
	tensors[NOTHING_AT] = (pcclTensorInfo_t){.name = "nothing", .datatype = pcclUint64};
	begin_anew();
}

void state_joined(void)
{
	newcomer = true;
}

void state_communicator_ends(void)
{
	if (torn)
		begin_anew();
}

/* Describes the first element that does not follow from the seed, or returns NULL. */
static const char *strange(void)
{
	static char text[64];

	for (uint64_t i = 0; i < STATE_BIASES; i++)
		if (biases[i] != bias(i)) {
			snprintf(text, sizeof text, "element %" PRIu64 " of biases", i);
			return text;
		}
	for (uint64_t i = 0; i < STATE_WEIGHTS; i++)
		if (weights[i] != weight(i)) {
			snprintf(text, sizeof text, "element %" PRIu64 " of weights", i);
			return text;
		}
	return NULL;
}

static void check_own(void)
{
	for (uint64_t i = 0; i < OWN; i++)
		if (own[i] != mix(me ^ i))
			wrong("element %" PRIu64 " of the trainer's own tensor was changed", i);
}

static void check_failed(uint64_t offered)
{
	const char *where = strange();

	if (state.revision != offered)
		wrong("a call that failed changed revision %" PRIu64 " to %" PRIu64, offered,
			state.revision);
	if (where && !newcomer)
		wrong("a call that failed changed %s, although the member had revision %" PRIu64,
			where, offered);
	torn |= where != NULL;
}

/* Returns whether only this host learned of the last success, because the master died before the
 * others did. */
static bool is_ahead(void)
{
	return strstr(pcclGetLastError(), "REVISION_INCREMENT_VIOLATION: it has") != NULL;
}

static void check_success(uint64_t offered)
{
	uint64_t had = seed;
	const char *where;

	seed = biases[0];
	where = strange();
	if (where)
		wrong("%s does not follow from the received seed", where);
	if (!newcomer && (state.revision != offered || seed != had))
		wrong("a member that went on with revision %" PRIu64 " (%016" PRIx64
		      ") was given %" PRIu64 " (%016" PRIx64 ")",
			offered, had, state.revision, seed);
	torn = false;
}

static void advance(void)
{
	newcomer = false;
	state.revision++;
	seed = mix(seed + state.revision);
	fill();
}

pcclResult_t state_synchronize(void)
{
	uint64_t began, offered = state.revision, had = seed;
	unsigned lost = 0;
	pcclResult_t r;

	for (;; lost++) {
		began = now();
		enter("pcclSynchronizeSharedState");
		r = leave(pcclSynchronizeSharedState(
			comm, &state, PCCL_SHARED_STATE_SYNC_STRATEGY_ENFORCE_POPULAR, NULL));
		check_own();
		if (r == pcclSuccess)
			break;
		check_failed(offered);
		if (r == pcclInvalidUsage && is_ahead())
			begin_anew();
		if (r != pcclRankConnectionLost)
			return r;
	}
	check_success(offered);
	printf("sync step=%" PRIu64 " revision=%" PRIu64 " state=%016" PRIx64 " began=%" PRIu64
	       " end=%" PRIu64 " lost=%u got=%d\n",
		step, state.revision, seed, began, now(), lost, newcomer && seed != had);
	advance();
	return r;
}
