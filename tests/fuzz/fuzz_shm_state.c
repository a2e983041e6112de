/* SPDX-License-Identifier: MIT
 *
 * A manifest of shared state. The input begins with the fields of the submission
 * (fuzz_state_input). The rest is the beginning of the manifest's region, up to the window.
 */
#include <string.h>

#include "common/cc_err.h"
#include "tests/fuzz/fuzz.h"
#include "tests/proto/sample.h"

#define WINDOW ((size_t)SHM_STATE_SLOTS * SHM_STATE_SLOT)
#define MAX    ((size_t)1 << 20)

/* The region ends at the end of this array, so that a sanitizer sees each access beyond it. */
static _Alignas(SHM_STATE_PAGE) unsigned char memory[MAX + WINDOW];

/* Checks whether a range lies in a region. All numbers may be arbitrary. */
static bool lies_in(uint64_t off, uint64_t bytes, uint64_t size)
{
	return off + bytes >= off && off + bytes <= size;
}

/* Checks whether `a` comes before `b`. If one name is the beginning of the other, the shorter one
 * comes first. */
static bool in_order(const unsigned char *map, const struct shm_state_tensor *a,
	const struct shm_state_tensor *b)
{
	uint16_t n = a->name_len < b->name_len ? a->name_len : b->name_len;
	int order = memcmp(map + a->name_off, map + b->name_off, n);

	return order < 0 || (order == 0 && a->name_len < b->name_len);
}

static void check_tensor(const unsigned char *map, size_t size, const struct shm_state_tensor *t)
{
	uint64_t each = sample_dtype_size(t->dtype);
	char name[WIRE_TENSOR_NAME_MAX + 1];

	FUZZ_CHECK(each > 0 && t->bytes / each == t->count && t->bytes % each == 0);
	FUZZ_CHECK(t->name_len >= 1 && t->name_len <= WIRE_TENSOR_NAME_MAX);
	FUZZ_CHECK(lies_in(t->name_off, t->name_len, size));
	FUZZ_CHECK(memchr(map + t->name_off, '\0', t->name_len) == NULL);
	if (t->region != 0)
		FUZZ_CHECK(lies_in(t->region_off, t->bytes, sample_region_size(NULL, t->region)));
	FUZZ_CHECK(strlen(shm_state_name(map, t, name, sizeof name)) == t->name_len);
}

static void check_taken(
	const unsigned char *map, const struct shm_state_limits *lim, const struct shm_state *s)
{
	uint64_t leaves = 0, bytes = 0;

	FUZZ_CHECK(s->n_tensors == lim->vote->n_tensors && s->bytes == lim->vote->bytes);
	FUZZ_CHECK(lies_in(s->window_off, WINDOW, lim->size));
	for (uint32_t i = 0; i < s->n_tensors; i++) {
		const struct shm_state_tensor *t = &s->tensors[i];

		check_tensor(map, lim->size, t);
		FUZZ_CHECK(i == 0 || in_order(map, t - 1, t));
		FUZZ_CHECK(t->first_leaf == leaves);
		leaves += wire_leaf_count(t->bytes);
		bytes += t->bytes;
	}
	FUZZ_CHECK(leaves == s->n_leaves && bytes == s->bytes);
	FUZZ_CHECK(lies_in(s->leaves_off, leaves * 8, lim->size));
	for (uint64_t i = 0; i < leaves; i++)
		(void)shm_state_leaf(map, s, i);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t len)
{
	struct shm_state got, was;
	struct fuzz_state_input in;
	struct wm_sync_vote vote;
	struct shm_state_limits lim = {.vote = &vote, .region_size = sample_region_size};
	unsigned char *map;
	char why[SHM_TEXT];
	int err;

	if (len < sizeof in || len - sizeof in > MAX)
		return 0;
	memcpy(&in, p, sizeof in);
	p += sizeof in;
	len -= sizeof in;
	vote = (struct wm_sync_vote){.n_tensors = in.n_tensors, .bytes = in.bytes};
	lim.size = (len + SHM_STATE_PAGE - 1) / SHM_STATE_PAGE * SHM_STATE_PAGE + WINDOW;
	map = memory + sizeof memory - lim.size;
	memcpy(map, p, len);
	memset(&got, 0xa5, sizeof got);
	memset(&was, 0xa5, sizeof was);
	memset(why, 0xff, sizeof why);
	err = shm_state_get(map, &lim, &got, why);
	if (err < 0) {
		FUZZ_CHECK(err == CC_ERR_INVAL);
		FUZZ_CHECK(why[0] != '\0' && memchr(why, '\0', sizeof why) != NULL);
		/* `got` is unchanged. NOLINTNEXTLINE(bugprone-suspicious-memory-comparison) */
		FUZZ_CHECK(memcmp(&got, &was, sizeof got) == 0);
	} else {
		check_taken(map, &lim, &got);
		shm_state_clear(&got);
	}
	memset(map, 0, len);
	return 0;
}
