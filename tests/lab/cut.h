/* SPDX-License-Identifier: MIT
 *
 * A packet of a TAP device that begins with a struct virtio_net_hdr may stand for many packets of a
 * wire: the TCP segments into which the other kernel would have cut it. These functions cut it
 * where one of the segments is lost on the path.
 */
#ifndef TESTS_LAB_CUT_H
#define TESTS_LAB_CUT_H

#include <stddef.h>
#include <stdint.h>

/* The size of the longest packet: struct virtio_net_hdr, Ethernet header, IP packet. */
#define CUT_PACKET_MAX (10u + 14u + 65536u)

/* Returns the number of wire packets that this packet stands for. */
unsigned cut_segments(const uint8_t *packet, size_t len);
/* Returns the number of bytes that one of these packets would have on a wire. */
size_t cut_segment_bytes(const uint8_t *packet, size_t len, unsigned segment);
/* Writes the n > 0 segments from `first` on as one packet into `ret`, which has room for the whole
 * packet. Returns the length. */
size_t cut_take(const uint8_t *packet, size_t len, unsigned first, unsigned n, uint8_t *ret);

#endif
