/* SPDX-License-Identifier: MIT
 *
 * Stands in for the engine: no data moves, streams are only kept. What the agent hands over can be
 * looked at, and links can be broken. Thread-safe, unlike the engine's own functions.
 */
#ifndef FAKE_ENGINE_H
#define FAKE_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "pcclagentd/engine/engine.h"

struct fake_counts {
	uint32_t engines, bells, rx_streams, tx_streams, links_dropped, xfers;
};
struct fake_counts fake_counts(void);
/* Transfers are done as soon as they start (the default), or only when cancelled. */
void fake_set_auto_done(bool on);
/* From now on no transfer starts: there is no memory. */
void fake_set_exhausted(bool on);
/* The transfer that was started last; false: none yet. */
bool fake_last_spec(struct eng_xfer_spec *ret);
/* The engine notices that the streams of this link broke. */
void fake_break_link(uint32_t link);
/* Number of the link that was given the last stream. */
uint32_t fake_last_link(void);
/* Those that an engine was given last. */
struct cc_bounds fake_bounds(void);

#endif
