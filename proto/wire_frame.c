/* SPDX-License-Identifier: MIT */
#include "proto/wire_frame.h"

#include "common/cc_err.h"
#include "proto/wire_bytes.h"

void wire_frame_put(uint8_t hdr[WIRE_FRAME_HDR], enum wire_kind kind, uint32_t len)
{
	wire_put32(hdr, WIRE_FRAME_MAGIC);
	wire_put16(hdr + 4, WIRE_FRAME_VERSION);
	wire_put16(hdr + 6, (uint16_t)kind);
	wire_put32(hdr + 8, len);
}

int wire_frame_peek(const uint8_t *buf, size_t len, enum wire_kind kind)
{
	uint8_t magic[4];
	uint32_t payload;

	wire_put32(magic, WIRE_FRAME_MAGIC);
	for (size_t i = 0; i < sizeof magic && i < len; i++)
		if (buf[i] != magic[i])
			return CC_ERR_PROTO;
	if (len >= 6 && wire_get16(buf + 4) != WIRE_FRAME_VERSION)
		return CC_ERR_VERSION;
	if (len >= 8 && wire_get16(buf + 6) != (uint16_t)kind)
		return CC_ERR_PROTO;
	if (len < WIRE_FRAME_HDR)
		return CC_ERR_AGAIN;
	payload = wire_get32(buf + 8);
	return payload > WIRE_FRAME_MAX ? CC_ERR_LIMIT : (int)payload;
}
