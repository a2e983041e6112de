/* SPDX-License-Identifier: MIT */
/*
 * The kernel of gpu_hash.h, with the names of the definition in kernels/hsh.h.
 *
 * A block of threads hashes a leaf. The leaf has 32 blocks of 2 KiB, and each block is read by 8
 * threads: a thread adds up two neighbouring lanes, so it loads 16 bytes of each of the 16 stripes.
 * The 8 threads load a whole stripe at a time, a line of the cache. The loads do not depend on each
 * other, so many of them are under way. No thread adds to the sums of another one.
 *
 * Then each thread of the first warp goes through the 32 sums of one lane, a or b, with a
 * scrambling before each. The products of step 3 are added up by a tree in the warp. All arithmetic
 * is of whole numbers, so each order gives the same sum.
 */
#include "kernels/cuda/gpu.h"
#include "kernels/cuda/gpu_hash.h"
#include "kernels/hsh_impl.h"

#define BLOCK       (HSH_BLOCK_STRIPES * HSH_STRIPE) /* bytes */
#define BLOCKS      (HSH_LEAF / BLOCK)               /* of a leaf */
#define LAST_STRIPE (BLOCK - HSH_STRIPE)             /* where it begins in a block */
#define READERS     8                                /* threads that read a block */
#define LANE_VALUES (2 * HSH_LANES)                  /* a and b of all lanes */

_Static_assert(GPU_HASH_THREADS == BLOCKS * READERS, "all threads read, each of them one block");
_Static_assert(LANE_VALUES == GPU_WARP, "the warp that combines has a thread for each a and b");
_Static_assert(GPU_HASH_SHARED == (HSH_KEY_COUNT + BLOCKS * LANE_VALUES) * sizeof(uint64_t),
	"keys and sums");
_Static_assert(HSH_KEY_B == HSH_KEY_A + HSH_LANES && HSH_KEY_OF_B == HSH_KEY_OF_A + HSH_LANES,
	"the number of the thread selects the key");

/* The bytes that may be read. */
struct span {
	uint64_t begin, end;
};

/* The sums of two lanes. */
struct sums {
	uint64_t a[2], b[2];
};

GPU_FUNCTION uint64_t mix(uint64_t x)
{
	x ^= x >> 32;
	x *= UINT64_C(0xbb67ae8584caa73b);
	x ^= x >> 28;
	x *= UINT64_C(0x6a09e667f3bcc909);
	return x ^ x >> 29;
}

GPU_FUNCTION uint64_t scramble(uint64_t x)
{
	return (x ^ x >> HSH_SCRAMBLE) * HSH_P;
}

/* ---- loads ---- */

GPU_FUNCTION const unsigned char *pointer(uint64_t at)
{
	return (const unsigned char *)(uintptr_t)at;
}

/* Loads four bytes. Those from the end on are zeros. */
GPU_FUNCTION uint32_t load_bytes(uint64_t at, uint64_t end)
{
	uint32_t w = 0;

	for (uint32_t i = 0; i < 4; i++)
		if (at + i < end)
			w |= (uint32_t)gpu_load_byte(pointer(at + i)) << 8 * i;
	return w;
}

/* Loads the words that contain the 16 bytes. */
GPU_FUNCTION struct gpu_vector load_words(uint64_t at)
{
	uint32_t shift = 8 * (uint32_t)(at % 4);
	uint64_t from = at - at % 4;
	uint32_t low = gpu_load_word(pointer(from));
	struct gpu_vector v;

	for (uint32_t i = 0; i < 4; i++) {
		uint32_t high = 0;

		if (i < 3 || shift > 0)
			high = gpu_load_word(pointer(from + 4 * (i + 1)));
		v.w[i] = (uint32_t)(((uint64_t)high << 32 | low) >> shift);
		low = high;
	}
	return v;
}

/* Loads 16 bytes at any address, and zeros for bytes after the end. */
GPU_FUNCTION struct gpu_vector load(uint64_t at, const struct span *in)
{
	struct gpu_vector v;

	if (at % 16 == 0 && at + 16 <= in->end)
		return gpu_load_vector(pointer(at));
	if (at - at % 4 >= in->begin && at + 16 + 3 - (at + 3) % 4 <= in->end)
		return load_words(at);
	for (uint32_t i = 0; i < 4; i++)
		v.w[i] = load_bytes(at + 4 * i, in->end);
	return v;
}

/* ---- step 2 ---- */

/* lo(f) * hi(f), f = lo and hi # key */
GPU_FUNCTION uint64_t product(uint32_t lo, uint32_t hi, uint64_t key)
{
	return (uint64_t)(lo + (uint32_t)key) * (hi + (uint32_t)(key >> 32));
}

/* Adds two words of a stripe. `key` is the key of the first one in this stripe. */
GPU_FUNCTION void add(struct sums *sums, struct gpu_vector v, const uint64_t *key, uint64_t s)
{
	for (uint32_t i = 0; i < 2; i++) {
		uint32_t lo = v.w[2 * i] + (uint32_t)s;
		uint32_t hi = v.w[2 * i + 1] + (uint32_t)(s >> 32);

		sums->a[i] += product(lo, hi, key[i]);
		sums->b[i] += product(lo, hi, key[i + HSH_LANES]);
	}
}

/* Adds up two lanes of a block of `stripes` stripes. `at` is the address of the first word, and
 * `key` that of its key. */
GPU_FUNCTION struct sums add_up(
	uint64_t at, uint32_t stripes, const struct span *in, const uint64_t *key, uint64_t s)
{
	struct sums sums = {{0, 0}, {0, 0}};

	if (at % 16 == 0 && at + LAST_STRIPE + sizeof(struct gpu_vector) <= in->end) {
		/* All 16 stripes are there. */
		GPU_UNROLL(4)
		for (uint32_t t = 0; t < HSH_BLOCK_STRIPES; t++)
			add(&sums, gpu_load_vector(pointer(at + t * HSH_STRIPE)),
				key + t * HSH_LANES, s);
	} else {
		for (uint32_t t = 0; t < stripes; t++)
			add(&sums, load(at + t * HSH_STRIPE, in), key + t * HSH_LANES, s);
	}
	return sums;
}

/* ---- steps 3 and 4 ---- */

struct wide {
	uint64_t low, high;
};

GPU_FUNCTION struct wide multiply(uint64_t x, uint64_t y)
{
	uint64_t x0 = (uint32_t)x, x1 = x >> 32, y0 = (uint32_t)y, y1 = y >> 32;
	uint64_t middle = x1 * y0 + (x0 * y0 >> 32); /* does not overflow */
	uint64_t other = x0 * y1 + (uint32_t)middle; /* nor this */
	struct wide r = {x * y, x1 * y1 + (middle >> 32) + (other >> 32)};

	return r;
}

/* Called by the first warp. Each thread scrambles and adds up one of the 32 values of the lanes.
 * All threads get the hash of the leaf. */
GPU_FUNCTION uint64_t combine(
	const uint64_t *keys, const uint64_t *sums, uint32_t blocks, uint64_t s, uint64_t bytes)
{
	uint32_t i = gpu_thread();
	uint64_t x = keys[HSH_KEY_A + i], h;
	struct wide sum;

	for (uint32_t b = 0; b < blocks; b++)
		x = scramble(x) + sums[b * LANE_VALUES + i];
	x += keys[HSH_KEY_OF_A + i];
	sum = multiply(x, gpu_shuffle_xor(x, HSH_LANES));
	for (uint32_t mask = HSH_LANES / 2; mask > 0; mask /= 2) {
		uint64_t low = gpu_shuffle_xor(sum.low, mask);
		uint64_t high = gpu_shuffle_xor(sum.high, mask);

		sum.low += low;
		sum.high += high + (sum.low < low);
	}
	h = mix(s + bytes);
	h = mix(h ^ sum.high);
	return mix(h ^ sum.low);
}

/* ---- the kernel ---- */

/* Hashes one leaf into *ret. All threads of the block call this. */
GPU_FUNCTION void hash_leaf(const struct gpu_hash_range *range, uint64_t leaf, const uint64_t *keys,
	uint64_t *sums, uint64_t *ret)
{
	uint32_t block = gpu_thread() / READERS, pair = gpu_thread() % READERS;
	struct span in = {range->data, range->data + range->bytes};
	uint64_t at = in.begin + leaf * HSH_LEAF;
	uint32_t bytes = (uint32_t)(in.end - at < HSH_LEAF ? in.end - at : HSH_LEAF);
	uint32_t stripes = (bytes + (uint32_t)HSH_STRIPE - 1) / (uint32_t)HSH_STRIPE;
	uint32_t blocks = (stripes + HSH_BLOCK_STRIPES - 1) / HSH_BLOCK_STRIPES;
	uint64_t s = mix(range->index + leaf + UINT64_C(0x510e527fade682d1));

	if (block < blocks) {
		uint32_t left = stripes - block * HSH_BLOCK_STRIPES;
		struct sums mine = add_up(at + block * BLOCK + pair * sizeof(struct gpu_vector),
			left < HSH_BLOCK_STRIPES ? left : HSH_BLOCK_STRIPES, &in, keys + 2 * pair,
			s);
		uint64_t *slot = sums + block * LANE_VALUES + 2 * pair;

		for (uint32_t i = 0; i < 2; i++) {
			slot[i] = mine.a[i];
			slot[i + HSH_LANES] = mine.b[i];
		}
	}
	gpu_barrier();
	if (gpu_thread() < GPU_WARP) {
		uint64_t h = combine(keys, sums, blocks, s, bytes);

		if (gpu_thread() == 0)
			*ret = h;
	}
	/* The next leaf uses the sums again. */
	gpu_barrier();
}

GPU_KERNEL(pccl_gpu_hash_leaves, GPU_HASH_THREADS, struct gpu_hash_args)
{
	GPU_SHARED(uint64_t, shared);
	uint64_t *keys = shared, *sums = shared + HSH_KEY_COUNT;
	uint64_t *leaves = (uint64_t *)(uintptr_t)args.leaves;
	uint32_t r = 0;

	for (uint32_t i = gpu_thread(); i < HSH_KEY_COUNT; i += GPU_HASH_THREADS)
		keys[i] = mix((i + 1) * UINT64_C(0x3c6ef372fe94f82b));
	gpu_barrier();
	/* The numbers of the leaves of this block only grow, so it goes through the ranges once. */
	for (uint64_t i = gpu_block(); i < args.n_leaves; i += gpu_blocks()) {
		while (r + 1 < args.n_ranges && args.range[r + 1].start <= i)
			r++;
		hash_leaf(&args.range[r], i - args.range[r].start, keys, sums, leaves + i);
	}
}
