/* SPDX-License-Identifier: MIT
 *
 * The framing of all byte streams that carry protobuf: the connections between master and agents,
 * and those to the admin sockets. Pure.
 *
 *   0       4        6        8        12
 *   +-------+--------+--------+--------+---------...
 *   | magic | version| kind   | length | payload
 *   +-------+--------+--------+--------+---------...
 *   all little endian; magic "PCCF"; version of the framing, 1; kind: enum wire_kind;
 *   length of the payload in bytes, at most WIRE_FRAME_MAX
 */
#ifndef WIRE_FRAME_H
#define WIRE_FRAME_H

#include <stddef.h>
#include <stdint.h>

#define WIRE_FRAME_MAGIC   0x46434350u
#define WIRE_FRAME_VERSION 1u
#define WIRE_FRAME_HDR     12u
#define WIRE_FRAME_MAX     (1u << 20)

/* SEALED: a sealed message between an agent and the master; see common/cc_seal.h */
enum wire_kind { WIRE_KIND_MASTER = 1, WIRE_KIND_ADMIN = 2, WIRE_KIND_SEALED = 3 };

/* Writes a header for a payload of len bytes (<= WIRE_FRAME_MAX). */
void wire_frame_put(uint8_t hdr[WIRE_FRAME_HDR], enum wire_kind kind, uint32_t len);
/*
 * Checks the header at the beginning of a stream. Returns the payload length (>= 0) if the header
 * is complete and valid; the payload itself may still be missing. Returns CC_ERR_AGAIN if more
 * header bytes are needed, CC_ERR_VERSION if the framing version differs, CC_ERR_LIMIT for a length
 * over the limit, and otherwise CC_ERR_PROTO. A wrong magic is refused at its first wrong byte.
 */
int wire_frame_peek(const uint8_t *buf, size_t len, enum wire_kind kind);

#endif
