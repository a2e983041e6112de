/* SPDX-License-Identifier: MIT
 *
 * Packets of a process's connection, with their descriptors. Nothing here blocks.
 */
#ifndef PACKET_H
#define PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/wire_local.h"

/* 0, CC_ERR_LIMIT: the socket's buffer is full; CC_ERR_EOF: nobody reads it; or CC_ERR_*. The
 * descriptors stay with the caller. */
int loc_packet_send(int sock, const struct wl_reply *r, const int *fds, size_t n_fds);

struct packet {
	size_t len;
	int fd;         /* that came with it, -1: none; the caller's */
	bool surplus;   /* more descriptors came, or one that found no room here */
	bool truncated; /* longer than WL_PACKET_MAX */
	uint8_t buf[WL_PACKET_MAX + 1];
};

/* 0; CC_ERR_AGAIN: there is none; CC_ERR_EOF: there will be none; CC_ERR_IO. */
int loc_packet_receive(int sock, struct packet *ret);

/*
 * Closes a descriptor from outside whatever it is: closing a file of a file system that answers
 * when it likes may take for ever, so it is left to a thread of its own. Only few of those are
 * granted; while they are taken no descriptors are received at all.
 */
void loc_packet_close_foreign(int fd);

#endif
