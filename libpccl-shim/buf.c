/* SPDX-License-Identifier: MIT */
#include "libpccl-shim/buf.h"

#include <string.h>

#include "libpccl-shim/copy.h"

/* ---- host memory */

static uint64_t hash_leaf(hsh_leaf_fn *leaf, const void *at, size_t n, uint64_t index)
{
	return leaf(at, n, index);
}

const struct pccl_buf_kind pccl_buf_host = {
	.device = pcclDeviceCpu,
	.copy_in = memcpy,
	.copy_out = pccl_copy_out,
	.swap = pccl_copy_swap,
	.leaf = hash_leaf,
	.hash = hsh_tensors,
};

/* ---- all kinds */

#define POINTER(name) &pccl_buf_##name,

static const struct pccl_buf_kind *const kinds[] = {PCCL_BUF_KINDS(POINTER) & pccl_buf_host};

const struct pccl_buf_kind *pccl_buf_of_device(pcclDeviceType_t device)
{
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		if (kinds[i]->device == device)
			return kinds[i];
	return NULL;
}

void pccl_buf_swap(const struct pccl_buf *b, uint64_t off, uint8_t *host, size_t n)
{
	uint8_t kept[4096];

	if (b->kind->swap) {
		b->kind->swap(b->at + off, host, n);
		return;
	}
	for (size_t part; n > 0; off += part, host += part, n -= part) {
		part = n < sizeof kept ? n : sizeof kept;
		pccl_buf_copy_in(b, off, kept, part);
		pccl_buf_copy_out(b, off, host, part, 0);
		memcpy(host, kept, part);
	}
}

uint64_t pccl_buf_leaf(
	const struct pccl_buf *b, uint64_t off, size_t n, hsh_leaf_fn *leaf, uint64_t index)
{
	return b->kind->leaf(leaf, b->at + off, n, index);
}

static void hash_by_leaf(
	const struct pccl_buf_kind *kind, hsh_leaf_fn *leaf, struct hsh_tensor_work *t)
{
	const uint8_t *at = t->data;

	for (uint64_t i = 0; i < hsh_leaf_count(t->bytes); i++) {
		uint64_t off = i * HSH_LEAF, left = t->bytes - off;

		t->leaves[i] =
			kind->leaf(leaf, at + off, left < HSH_LEAF ? (size_t)left : HSH_LEAF, i);
	}
	t->hash = hsh_tensor(t->leaves, t->bytes);
}

void pccl_buf_hash(const struct pccl_buf_kind *kind, hsh_leaf_fn *leaf,
	struct hsh_tensor_work *tensors, size_t n, unsigned threads)
{
	if (kind->hash) {
		kind->hash(leaf, tensors, n, threads);
		return;
	}
	for (size_t i = 0; i < n; i++)
		hash_by_leaf(kind, leaf, &tensors[i]);
}
