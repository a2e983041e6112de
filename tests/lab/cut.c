/* SPDX-License-Identifier: MIT */
#include "tests/lab/cut.h"

#include <linux/virtio_net.h>
#include <stdbool.h>
#include <string.h>

#define VNET_LEN     sizeof(struct virtio_net_hdr)
#define ETH_LEN      14u
#define IP4_LEN_MIN  20u
#define IP6_LEN      40u
#define TCP_LEN_MIN  20u
#define TCP_SEQ      4u /* offsets in the header */
#define TCP_DOFF     12u
#define TCP_FLAGS    13u
#define TCP_CSUM     16u
#define TCP_FIN_PUSH 0x09u
#define IP4_TOTAL    2u
#define IP4_ID       4u
#define IP4_CSUM     10u
#define IP6_PAYLOAD  4u

/* Offsets in the packet, and the bytes of data per segment. */
struct shape {
	size_t ip, tcp, data, step;
	bool v6;
};

static uint16_t get16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static void put16(uint8_t *p, size_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static uint16_t fold(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

/* Returns false if the packet stands for one wire packet, whatever its contents. */
static bool shape_of(const uint8_t *packet, size_t len, struct shape *ret)
{
	struct virtio_net_hdr vnet;
	struct shape s = {.ip = VNET_LEN + ETH_LEN};

	if (len < s.ip + IP4_LEN_MIN + TCP_LEN_MIN)
		return false;
	memcpy(&vnet, packet, sizeof vnet);
	if ((vnet.gso_type != VIRTIO_NET_HDR_GSO_TCPV4 &&
		    vnet.gso_type != VIRTIO_NET_HDR_GSO_TCPV6) ||
		!(vnet.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM))
		return false;
	s.v6 = vnet.gso_type == VIRTIO_NET_HDR_GSO_TCPV6;
	s.tcp = VNET_LEN + vnet.csum_start;
	s.step = vnet.gso_size;
	if (s.tcp < s.ip + (s.v6 ? IP6_LEN : IP4_LEN_MIN) || s.tcp + TCP_LEN_MIN > len)
		return false;
	s.data = s.tcp + (size_t)(packet[s.tcp + TCP_DOFF] >> 4) * 4;
	if (s.data < s.tcp + TCP_LEN_MIN || s.data >= len || s.step == 0)
		return false;
	*ret = s;
	return true;
}

unsigned cut_segments(const uint8_t *packet, size_t len)
{
	struct shape s;

	if (!shape_of(packet, len, &s))
		return 1;
	return (unsigned)((len - s.data + s.step - 1) / s.step);
}

static size_t min(size_t a, size_t b)
{
	return a < b ? a : b;
}

size_t cut_segment_bytes(const uint8_t *packet, size_t len, unsigned segment)
{
	struct shape s;

	if (!shape_of(packet, len, &s))
		return len - VNET_LEN;
	return s.data - VNET_LEN + min(s.step, len - s.data - segment * s.step);
}

/* Sets the lengths in the headers, and adjusts the sums that include them. */
static void set_length(uint8_t *packet, const struct shape *s, size_t old, size_t new)
{
	uint8_t *ip = packet + s->ip, *csum = packet + s->tcp + TCP_CSUM;
	uint32_t sum = 0;

	/* This sum covers only the pseudo header, in which only the length has changed. A device
	 * adds the rest of the sum. */
	sum = get16(csum) + (0xffffu & ~(uint32_t)(old - s->tcp)) + (uint32_t)(new - s->tcp);
	put16(csum, fold(sum));
	if (s->v6) {
		put16(ip + IP6_PAYLOAD, new - s->ip - IP6_LEN);
		return;
	}
	put16(ip + IP4_TOTAL, new - s->ip);
	put16(ip + IP4_CSUM, 0);
	sum = 0;
	for (const uint8_t *p = ip; p < packet + s->tcp; p += 2)
		sum += get16(p);
	put16(ip + IP4_CSUM, 0xffffu & ~(uint32_t)fold(sum));
}

size_t cut_take(const uint8_t *packet, size_t len, unsigned first, unsigned n, uint8_t *ret)
{
	struct virtio_net_hdr vnet;
	struct shape s;
	size_t from, size;
	uint8_t *tcp;
	uint32_t seq;

	if (!shape_of(packet, len, &s) || (first == 0 && n == cut_segments(packet, len))) {
		memcpy(ret, packet, len);
		return len;
	}
	from = s.data + first * s.step;
	size = min(n * s.step, len - from);
	memcpy(ret, packet, s.data);
	memcpy(ret + s.data, packet + from, size);
	tcp = ret + s.tcp;
	seq = ((uint32_t)get16(tcp + TCP_SEQ) << 16 | get16(tcp + TCP_SEQ + 2)) +
	      (uint32_t)(from - s.data);
	put16(tcp + TCP_SEQ, seq >> 16);
	put16(tcp + TCP_SEQ + 2, seq);
	if (from + size < len)
		tcp[TCP_FLAGS] &= (uint8_t)~TCP_FIN_PUSH;
	if (!s.v6)
		put16(ret + s.ip + IP4_ID, get16(ret + s.ip + IP4_ID) + first);
	set_length(ret, &s, len, s.data + size);
	memcpy(&vnet, ret, sizeof vnet);
	vnet.hdr_len = (uint16_t)(s.data - VNET_LEN);
	if (size <= s.step) {
		vnet.gso_type = VIRTIO_NET_HDR_GSO_NONE;
		vnet.gso_size = 0;
	}
	memcpy(ret, &vnet, sizeof vnet);
	return s.data + size;
}
