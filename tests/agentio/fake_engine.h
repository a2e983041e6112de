/* SPDX-License-Identifier: MIT
 *
 * A substitute for the engine. No data moves, and streams are only kept. Tests can see what the
 * agent hands over, and can break links. These functions are thread-safe, unlike those of the real
 * engine.
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
/* on: transfers are done as soon as they start (the default). Otherwise they end only when they are
 * cancelled. */
void fake_set_auto_done(bool on);
/* on: from now on no transfer starts, for lack of memory. */
void fake_set_exhausted(bool on);
/* Stores the transfer that was started last in *ret. Returns false if there was none yet. */
bool fake_last_spec(struct eng_xfer_spec *ret);
/* Lets the engine notice that the streams of this link broke. */
void fake_break_link(uint32_t link);
/* Lets the engines report that this link has carried `rate` bit/s, with a round trip of 7 us. */
void fake_carry(uint32_t link, uint64_t rate);
/* Returns the number of the link that got the last stream. */
uint32_t fake_last_link(void);
/* Returns the bounds that an engine got last. */
struct cc_bounds fake_bounds(void);

#endif
