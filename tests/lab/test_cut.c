/* SPDX-License-Identifier: MIT
 *
 * Checks that the segments that are cut from a packet equal those that a kernel would have sent:
 * headers, sums and data.
 */
#include "tests/lab/cut.h"

#include <linux/virtio_net.h>
#include <stdbool.h>
#include <string.h>

#include "tests/common/testlib.h"

#define VNET     sizeof(struct virtio_net_hdr)
#define IP       (VNET + 14)
#define STEP     1448u
#define SEGMENTS 5u
#define REST     100u /* bytes of the last segment */
#define DATA_LEN ((SEGMENTS - 1) * STEP + REST)
#define TCP_LEN  32u
#define SEQ      0xfffff000u /* wraps around */
#define FLAGS    0x19u       /* ACK, PSH, FIN */

static uint32_t get16(const uint8_t *p)
{
	return (uint32_t)p[0] << 8 | p[1];
}

static void put16(uint8_t *p, size_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static uint32_t sum_of(const uint8_t *p, size_t len, uint32_t sum)
{
	for (size_t i = 0; i < len; i += 2)
		sum += get16(p + i);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

static size_t tcp_at(bool v6)
{
	return IP + (v6 ? 40u : 24u); /* IPv4 with an option */
}

static uint32_t pseudo_sum(const uint8_t *packet, bool v6, size_t len)
{
	return sum_of(packet + IP + (v6 ? 8 : 12), v6 ? 32 : 8, 6 + (uint32_t)(len - tcp_at(v6)));
}

static size_t make(uint8_t *packet, bool v6)
{
	size_t tcp = tcp_at(v6), len = tcp + TCP_LEN + DATA_LEN;
	struct virtio_net_hdr vnet = {.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
		.gso_type = v6 ? VIRTIO_NET_HDR_GSO_TCPV6 : VIRTIO_NET_HDR_GSO_TCPV4,
		.hdr_len = (uint16_t)(tcp + TCP_LEN - VNET),
		.gso_size = STEP,
		.csum_start = (uint16_t)(tcp - VNET),
		.csum_offset = 16};

	for (size_t i = 0; i < len; i++)
		packet[i] = (uint8_t)(i * 7 + i / 256);
	memcpy(packet, &vnet, sizeof vnet);
	packet[IP] = v6 ? 0x60 : 0x46;
	if (v6) {
		put16(packet + IP + 4, len - IP - 40);
	} else {
		put16(packet + IP + 2, len - IP);
		put16(packet + IP + 4, 0xfffe);
	}
	put16(packet + tcp + 4, SEQ >> 16);
	put16(packet + tcp + 6, SEQ & 0xffff);
	packet[tcp + 12] = TCP_LEN / 4 << 4;
	packet[tcp + 13] = FLAGS;
	put16(packet + tcp + 16, pseudo_sum(packet, v6, len));
	return len;
}

static void check_taken(
	const uint8_t *whole, const uint8_t *part, size_t len, bool v6, unsigned first, unsigned n)
{
	size_t tcp = tcp_at(v6), data = tcp + TCP_LEN, bytes = 0;
	bool last = first + n == SEGMENTS;
	struct virtio_net_hdr vnet;

	for (unsigned i = first; i < first + n; i++)
		bytes += i + 1 == SEGMENTS ? REST : STEP;
	ck_assert_uint_eq(len, data + bytes);
	ck_assert_mem_eq(part + data, whole + data + (size_t)first * STEP, bytes);
	ck_assert_mem_eq(part + VNET, whole + VNET, 14);
	memcpy(&vnet, part, sizeof vnet);
	ck_assert_uint_eq(vnet.csum_start, tcp - VNET);
	ck_assert_uint_eq(vnet.gso_size, n > 1 ? STEP : 0);
	ck_assert_uint_eq(cut_segments(part, len), n);
	if (v6) {
		ck_assert_uint_eq(get16(part + IP + 4), TCP_LEN + bytes);
	} else {
		ck_assert_uint_eq(get16(part + IP + 2), len - IP);
		ck_assert_uint_eq(get16(part + IP + 4), (0xfffe + first) & 0xffff);
		ck_assert_uint_eq(sum_of(part + IP, tcp - IP, 0), 0xffff);
	}
	ck_assert_uint_eq(get16(part + tcp + 4) << 16 | get16(part + tcp + 6),
		(uint32_t)(SEQ + first * STEP));
	ck_assert_uint_eq(part[tcp + 13], last ? FLAGS : 0x10);
	ck_assert_uint_eq(get16(part + tcp + 16), pseudo_sum(part, v6, len));
}

static void check_cuts(bool v6)
{
	static uint8_t whole[CUT_PACKET_MAX], part[CUT_PACKET_MAX];
	size_t len = make(whole, v6), headers = tcp_at(v6) + TCP_LEN - VNET;

	ck_assert_uint_eq(cut_segments(whole, len), SEGMENTS);
	ck_assert_uint_eq(cut_segment_bytes(whole, len, 0), headers + STEP);
	ck_assert_uint_eq(cut_segment_bytes(whole, len, SEGMENTS - 1), headers + REST);
	ck_assert_uint_eq(cut_take(whole, len, 0, SEGMENTS, part), len);
	ck_assert_mem_eq(part, whole, len);
	for (unsigned first = 0; first < SEGMENTS; first++)
		for (unsigned n = 1; n <= SEGMENTS - first; n++)
			if (n < SEGMENTS)
				check_taken(whole, part, cut_take(whole, len, first, n, part), v6,
					first, n);
}

START_TEST(ipv4_packet_is_cut_into_correct_segments)
{
	check_cuts(false);
}
END_TEST

START_TEST(ipv6_packet_is_cut_into_correct_segments)
{
	check_cuts(true);
}
END_TEST

START_TEST(packet_of_one_segment_is_not_cut)
{
	static uint8_t whole[CUT_PACKET_MAX], part[CUT_PACKET_MAX];
	size_t len = make(whole, false);
	struct virtio_net_hdr none = {0};

	for (size_t i = VNET + 14; i < tcp_at(false) + TCP_LEN; i++)
		ck_assert_uint_eq(cut_segments(whole, i), 1);
	memcpy(whole, &none, sizeof none);
	ck_assert_uint_eq(cut_segments(whole, len), 1);
	ck_assert_uint_eq(cut_segment_bytes(whole, len, 0), len - VNET);
	ck_assert_uint_eq(cut_take(whole, len, 0, 1, part), len);
	ck_assert_mem_eq(part, whole, len);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("cut");
	TCase *c = tcase_create("cut");

	tcase_add_test(c, ipv4_packet_is_cut_into_correct_segments);
	tcase_add_test(c, ipv6_packet_is_cut_into_correct_segments);
	tcase_add_test(c, packet_of_one_segment_is_not_cut);
	suite_add_tcase(s, c);
	return tl_run(s);
}
