/* SPDX-License-Identifier: MIT
 *
 * A packet of a TAP device with a struct virtio_net_hdr in front may stand for many packets of a
 * wire, TCP segments that the other end's kernel would have cut it into. Here it is cut where one
 * of them is lost on the way.
 */
#ifndef TESTS_LAB_CUT_H
#define TESTS_LAB_CUT_H

#include <stddef.h>
#include <stdint.h>

/* The longest packet there is: struct virtio_net_hdr, Ethernet header, IP packet. */
#define CUT_PACKET_MAX (10u + 14u + 65536u)

/* How many packets of a wire this one is. */
unsigned cut_segments(const uint8_t *packet, size_t len);
/* How many bytes a wire would have for one of them. */
size_t cut_segment_bytes(const uint8_t *packet, size_t len, unsigned segment);
/* Makes the n > 0 ones from `first` on a packet of their own, in ret (as long as the whole one at
 * most). Returns its length. */
size_t cut_take(const uint8_t *packet, size_t len, unsigned first, unsigned n, uint8_t *ret);

#endif
