/* SPDX-License-Identifier: MIT
 *
 * The packets of a process's connection, with their descriptors. Nothing here blocks.
 */
#ifndef PACKET_H
#define PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/wire_local.h"

/* Sends a reply. The caller keeps the descriptors. Returns 0; CC_ERR_LIMIT: the socket's buffer is
 * full; CC_ERR_EOF: no process reads it; or CC_ERR_*. */
int loc_packet_send(int sock, const struct wl_reply *r, const int *fds, size_t n_fds);

struct packet {
	size_t len;
	int fd;       /* the descriptor that came with the packet, owned by the caller; -1: none */
	bool surplus; /* more descriptors came, or one for which there was no room */
	bool truncated; /* the packet was longer than WL_PACKET_MAX */
	uint8_t buf[WL_PACKET_MAX + 1];
};

/* Receives a packet. Returns 0; CC_ERR_AGAIN: there is none now; CC_ERR_EOF: no more will come;
 * CC_ERR_IO. */
int loc_packet_receive(int sock, struct packet *ret);

/* Closes a descriptor that came from outside. Closing a file can block without limit if its file
 * system does not answer, so a separate thread closes it, unless it is a memfd. The number of these
 * threads is small; while all are busy, no descriptors are received. */
void loc_packet_close_foreign(int fd);

#endif
