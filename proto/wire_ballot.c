/* SPDX-License-Identifier: MIT */
#include "proto/wire_ballot.h"

const struct wire_ballot_kind wire_ballot_kinds[WIRE_BALLOTS] = {
	[WIRE_TOPOLOGY] = {.name = "topology vote",
		.subject = "the topology",
		.call = "pcclUpdateTopology",
		.is_exclusive = true,
		.admits = true},
	[WIRE_PENDING] = {.name = "vote on pending peers",
		.subject = "pending peers",
		.call = "pcclArePeersPending"},
	[WIRE_OPTIMIZE] = {.name = "vote on optimization",
		.subject = "optimization",
		.call = "pcclOptimizeTopology",
		.is_exclusive = true,
		.unmet_answer = true},
};
