/* SPDX-License-Identifier: MIT */
#include "proto/wire_pb.h"

#include <string.h>

#include "common/cc_err.h"
#include "proto/wire_text.h"

int wire_bad(const char **why, const char *text)
{
	*why = text;
	return CC_ERR_PROTO;
}

int wire_get_id(struct cc_id *ret, ProtobufCBinaryData b, const char **why, const char *text)
{
	if (b.len != sizeof ret->b)
		return wire_bad(why, text);
	memcpy(ret->b, b.data, sizeof ret->b);
	return cc_id_is_zero(ret) ? wire_bad(why, text) : 0;
}

int wire_get_id_or_none(
	struct cc_id *ret, ProtobufCBinaryData b, const char **why, const char *text)
{
	if (b.len == 0) {
		*ret = (struct cc_id){{0}};
		return 0;
	}
	return wire_get_id(ret, b, why, text);
}

int wire_get_key(struct cc_key *ret, ProtobufCBinaryData b, const char **why, const char *text)
{
	static const struct cc_key none;

	if (b.len != sizeof ret->b)
		return wire_bad(why, text);
	memcpy(ret->b, b.data, sizeof ret->b);
	return memcmp(ret->b, none.b, sizeof none.b) == 0 ? wire_bad(why, text) : 0;
}

int wire_get_key_or_none(
	struct cc_key *ret, ProtobufCBinaryData b, const char **why, const char *text)
{
	if (b.len == 0) {
		*ret = (struct cc_key){{0}};
		return 0;
	}
	return wire_get_key(ret, b, why, text);
}

int wire_get_name(char *dst, size_t size, const char *s, const char **why, const char *text)
{
	size_t len = strlen(s);

	if (len >= size || !wire_text_is_clean(s))
		return wire_bad(why, text);
	memcpy(dst, s, len + 1);
	return 0;
}

int wire_get_text(char *dst, size_t size, const char *s, const char **why, const char *text)
{
	size_t len = strlen(s);

	if (len >= size)
		return wire_bad(why, text);
	wire_text_clean(dst, s, len);
	return 0;
}

int wire_get_addr(struct cc_addr *ret, ProtobufCBinaryData ip, uint32_t port, uint32_t port_min,
	const char **why, const char *text)
{
	if ((ip.len != 4 && ip.len != 16) || port < port_min || port > UINT16_MAX)
		return wire_bad(why, text);
	*ret = (struct cc_addr){
		.family = ip.len == 4 ? CC_INET4 : CC_INET6,
		.port = (uint16_t)port,
	};
	memcpy(ret->ip, ip.data, ip.len);
	return 0;
}

int wire_check_versions(uint32_t min, uint32_t max, const char **why, const char *text)
{
	if (min < 1 || max < min || max > UINT16_MAX)
		return wire_bad(why, text);
	return 0;
}

ProtobufCBinaryData wire_put_id(const struct cc_id *id)
{
	ProtobufCBinaryData b = {.len = sizeof id->b, .data = (uint8_t *)id->b};

	if (cc_id_is_zero(id))
		b.len = 0;
	return b;
}

ProtobufCBinaryData wire_put_key(const struct cc_key *key)
{
	static const struct cc_key none;
	ProtobufCBinaryData b = {.len = sizeof key->b, .data = (uint8_t *)key->b};

	if (memcmp(key->b, none.b, sizeof none.b) == 0)
		b.len = 0;
	return b;
}

ProtobufCBinaryData wire_put_ip(const struct cc_addr *a)
{
	ProtobufCBinaryData b = {.data = (uint8_t *)a->ip};

	if (a->family == CC_INET4)
		b.len = 4;
	else if (a->family == CC_INET6)
		b.len = 16;
	return b;
}

char *wire_put_text(struct wire_arena *a, const char *s, size_t size)
{
	char *copy = wire_arena_take(a, strnlen(s, size) + 1, 1);

	/* The arena remembers the failure, and nobody writes to this text. */
	if (copy == NULL)
		return (char *)(uintptr_t) "";
	wire_text_clean(copy, s, size);
	return copy;
}
